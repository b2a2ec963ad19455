// SPDX-License-Identifier: BSL-1.0
#include "job.hpp"

#include <cohort/detail/secret_file.hpp>

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>

namespace cohort::tool {
namespace {

std::string random_hex(std::size_t bytes) {
  std::array<unsigned char, 32> random{};
  std::size_t have = 0;
  while (have < bytes) {
    const ssize_t got = ::getrandom(random.data() + have, bytes - have, 0);
    if (got > 0) have += static_cast<std::size_t>(got);
    if (got < 0 && errno != EINTR) throw_errno("cannot get random numbers");
  }
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    text += "0123456789abcdef"[random[i] >> 4];
    text += "0123456789abcdef"[random[i] & 15];
  }
  return text;
}

std::string host_name() {
  std::array<char, 256> buffer{};
  return ::gethostname(buffer.data(), buffer.size() - 1) == 0 ? buffer.data() : "localhost";
}

// The system hands no other process this port while the socket is bound. It never listens, so closing it leaves
// nothing behind that would keep rank 0 from binding. Without SO_REUSEADDR on purpose: with it, another process that
// sets it as well could bind the same port meanwhile.
unique_fd hold_port(bool loopback, int& port) {
  unique_fd holder(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!holder) throw_errno("cannot open a socket to find a free port");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY);
  socklen_t size = sizeof address;
  if (::bind(holder.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(holder.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_errno("cannot find a free port");
  }
  port = ntohs(address.sin_port);
  return holder;
}

// Nodes do not know each other before their ranks meet: what they share comes from outside.
std::string secret_of_all_nodes() {
  if (const char* const given = std::getenv("COHORT_SECRET"); given != nullptr) return given;
  if (const char* const file = std::getenv("COHORT_SECRET_FILE"); file != nullptr) {
    return cohort::detail::read_secret_file(file, "COHORT_SECRET_FILE");
  }
  if (const char* const careless = std::getenv("COHORT_INSECURE_NETWORK"); careless != nullptr && careless[0] == '1') {
    return {};
  }
  throw std::runtime_error(
      "several nodes need one secret: make one (openssl rand -hex 32) and set COHORT_SECRET or COHORT_SECRET_FILE to "
      "it on "
      "every node, or COHORT_INSECURE_NETWORK=1 where nobody else can reach the network");
}

}  // namespace

job make_job(const run_options& options) {
  job made;
  made.run_id = !options.run_id.empty() ? options.run_id : random_hex(8);
  made.secret = options.nodes == 1 ? random_hex(32) : secret_of_all_nodes();
  made.host = host_name();
  made.master_port = options.master_port;
  if (made.master_port == 0) {
    const bool loopback = options.master_addr == "127.0.0.1" || options.master_addr == "localhost";
    made.port_holder = hold_port(loopback, made.master_port);
  }
  made.status_number = unique_fd(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!made.status_number) throw_errno("cannot open /dev/null");
  return made;
}

}  // namespace cohort::tool
