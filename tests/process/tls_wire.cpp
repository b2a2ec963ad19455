// SPDX-License-Identifier: BSL-1.0
// What a whole job gives to the network: every byte that its ranks write to a TCP socket is kept, whichever part of the
// library wrote it. Without TLS the copy holds the payload, the keys of the store and every hello; with TLS none of them.
#include "fault_support.hpp"

#ifdef COHORT_WITH_TLS

#include "../support/tls_pair.hpp"

#include <cohort/transport/hello.hpp>

#include <dlfcn.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace {

/// Of this process, which is one rank.
struct recorder {
  std::mutex mutex{};
  std::string bytes{};

  void keep(int socket, const void* data, ssize_t count) {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (count <= 0 || ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
    if (address.ss_family != AF_INET) return;
    const std::lock_guard lock(mutex);
    bytes.append(static_cast<const char*>(data), static_cast<std::size_t>(count));
  }
  void keep(int socket, const iovec* parts, std::size_t count, ssize_t written) {
    for (std::size_t i = 0; i < count && written > 0; ++i) {
      const auto part = std::min(static_cast<ssize_t>(parts[i].iov_len), written);
      keep(socket, parts[i].iov_base, part);
      written -= part;
    }
  }
};

recorder& recording() {
  static auto* const all = new recorder;  // threads may write until the process is gone
  return *all;
}

template <class Function>
Function* next_of(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// The library's own calls come here first, in this program as in each that defines them.
extern "C" {
ssize_t send(int socket, const void* data, size_t size, int flags) {
  static auto* const next = next_of<decltype(::send)>("send");
  const ssize_t n = next(socket, data, size, flags);
  recording().keep(socket, data, n);
  return n;
}
ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static auto* const next = next_of<decltype(::sendmsg)>("sendmsg");
  const ssize_t n = next(socket, message, flags);
  recording().keep(socket, message->msg_iov, message->msg_iovlen, n);
  return n;
}
ssize_t write(int file, const void* data, size_t size) {
  static auto* const next = next_of<decltype(::write)>("write");
  const ssize_t n = next(file, data, size);
  recording().keep(file, data, n);
  return n;
}
ssize_t writev(int file, const iovec* parts, int count) {
  static auto* const next = next_of<decltype(::writev)>("writev");
  const ssize_t n = next(file, parts, count);
  recording().keep(file, parts, static_cast<std::size_t>(count), n);
  return n;
}
}

using namespace cohort;
using harness::run_ranks;
using harness::tls_files;

namespace {

const std::string payload = "a payload that nobody else may read; ";

/// Runs three ranks that talk by store, heartbeats and messages short and long, and hands what each has written to
/// `judge`, in that rank.
void run_recorded(const harness::variables& environment, const std::function<void(const std::string&)>& judge) {
  harness::rank_options options;
  options.environment = environment;
  options.environment.emplace_back("COHORT_SHM", "0");
  const auto ranks = run_ranks(
      3,
      [&](int) {
        const auto rank_main = [&](communicator<cpu> world) -> task<> {
          for (const std::size_t repeats : {std::size_t{1}, std::size_t{100000}}) {
            std::string text;
            for (std::size_t i = 0; i < repeats; ++i) text += payload;
            std::vector<char> all(text.begin(), text.end());
            co_await world.all_reduce(all, max{});
            harness::expect(std::string(all.begin(), all.end()) == text, "the payload as it was");
          }
        };
        const int code = cohort::run(rank_main);
        const std::lock_guard lock(recording().mutex);
        judge(recording().bytes);
        return code;
      },
      options);
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

bool holds(const std::string& bytes, std::string_view text) { return bytes.find(text) != std::string::npos; }

// The greeting of every connection, the prefix of the store's keys, what the store is told about a rank, and the payload.
const std::vector<std::string> secrets{"cohort>\n", "cohort<\n", "cohort/meet", "127.0.0.1", payload};

}  // namespace

TEST_CASE("tls wire: without TLS everything can be read") {
  run_recorded({}, [](const std::string& bytes) {
    harness::expect(bytes.size() > 100000 * payload.size(), "the payload at least");
    for (const std::string& each : secrets) {
      if (each != "cohort<\n") harness::expect(holds(bytes, each), each + " in what was written");
    }
  });
}

TEST_CASE(
    "tls wire: with TLS nothing can be read of what the ranks say to each other, to the store and by heartbeats") {
  const tls_options files = tls_files().options();
  run_recorded({{"COHORT_TLS_CERTIFICATE", files.certificate},
                {"COHORT_TLS_KEY", files.key},
                {"COHORT_TLS_AUTHORITY", files.authority}},
               [](const std::string& bytes) {
                 harness::expect(bytes.size() > 100000 * payload.size(), "the payload at least, sealed");
                 for (const std::string& each : secrets) harness::expect(!holds(bytes, each), "no " + each);
               });
}

#else

TEST_CASE("tls wire") { std::puts("SKIPPED: no OpenSSL here (Debian 12: apt-get install libssl-dev)"); }

#endif
