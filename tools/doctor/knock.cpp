// SPDX-License-Identifier: BSL-1.0
#include "../unique_fd.hpp"
#include "mesh.hpp"

#include <cohort/transport/tcp_address.hpp>

#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace cohort::tool {
namespace {

using transport::tcp_endpoint;
using moment = std::chrono::steady_clock::time_point;

// Longer than a packet may be on any network: a path that drops long packets carries connections, and no answers.
constexpr std::size_t answer_bytes = 16384;
constexpr std::chrono::seconds patience{5};
// Limits on open files are often 1024, and this is not what shall reach them.
constexpr std::size_t most_at_once = 128;

std::string answer_of(int rank) {
  std::string text = "cohort doctor, rank " + std::to_string(rank) + "\n";
  text.resize(answer_bytes, '.');
  return text;
}

/// Answers whoever knocks, on a thread of its own.
class door {
 public:
  door(const std::string& address, int rank) : answer_(answer_of(rank)) {
    tcp_endpoint where(boost::asio::ip::make_address(address), 0);
    socket_ = unique_fd(::socket(where.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket_ || ::bind(socket_.get(), where.data(), static_cast<socklen_t>(where.size())) != 0 ||
        ::listen(socket_.get(), SOMAXCONN) != 0) {
      throw_errno("cannot listen on " + address);
    }
    auto length = static_cast<socklen_t>(where.capacity());
    if (::getsockname(socket_.get(), where.data(), &length) != 0) throw_errno("cannot tell the port");
    port_ = where.port();
    thread_ = std::thread([this] { serve(); });
  }
  door(const door&) = delete;
  door& operator=(const door&) = delete;
  ~door() {
    over_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint16_t port() const noexcept { return port_; }

 private:
  void serve() noexcept {
    while (!over_) {
      pollfd waiting{socket_.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 50) <= 0) continue;
      const unique_fd guest(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!guest) continue;
      // It fits in the buffer of the socket: nobody can hold this thread up for long.
      const timeval limit{1, 0};
      ::setsockopt(guest.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
      std::size_t sent = 0;
      while (sent < answer_.size()) {
        const ssize_t n = ::send(guest.get(), answer_.data() + sent, answer_.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
    }
  }

  std::string answer_;
  unique_fd socket_{};
  std::uint16_t port_ = 0;
  std::atomic<bool> over_{false};
  std::thread thread_{};
};

struct visit {
  int rank = 0;
  tcp_endpoint where{};
  unique_fd socket{};
  bool connected = false;
  std::string heard{};
  moment until{};
};

enum class progress { waits, done, failed };

progress failed(std::string& why, const std::string& text) {
  why = text;
  return progress::failed;
}

progress begin(visit& v, std::string& why) {
  v.until = std::chrono::steady_clock::now() + patience;
  v.socket = unique_fd(::socket(v.where.protocol().family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!v.socket) return failed(why, std::string("no socket: ") + std::strerror(errno));
  if (::connect(v.socket.get(), v.where.data(), static_cast<socklen_t>(v.where.size())) != 0 && errno != EINPROGRESS) {
    return failed(why, std::strerror(errno));
  }
  return progress::waits;
}

progress advance(visit& v, std::string& why) {
  if (!v.connected) {
    int code = 0;
    socklen_t length = sizeof code;
    ::getsockopt(v.socket.get(), SOL_SOCKET, SO_ERROR, &code, &length);
    if (code != 0) return failed(why, std::strerror(code));
    v.connected = true;
  }
  char buffer[4096];
  for (;;) {
    const ssize_t n = ::recv(v.socket.get(), buffer, sizeof buffer, 0);
    if (n > 0) {
      v.heard.append(buffer, static_cast<std::size_t>(n));
      if (v.heard.size() > answer_bytes) return failed(why, "somebody else answers there");
      continue;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return progress::waits;
    if (v.heard == answer_of(v.rank)) return progress::done;
    return failed(why, v.heard.empty() && n < 0 ? std::strerror(errno) : "somebody else answers there");
  }
}

std::string what_is_overdue(const visit& v) {
  if (!v.connected) return "no answer to the connection within 5 s";
  return "it accepts the connection, but a message of 16 KiB does not come within 5 s: " +
         std::to_string(v.heard.size()) + " bytes have";
}

finding unreachable(const visit& v, const rank_record& mine, const std::string& host, const std::string& why,
                    bool overdue) {
  const std::string place = v.where.address().to_string();
  std::string advice = v.connected && overdue
                           ? "long packets are lost on the way: give both ends, and what is between, the same MTU"
                           : "let TCP connections through between the hosts of the job, at all ports: ranks listen at "
                             "ports that the system chooses";
  if (v.where.address().is_loopback() && host != mine.host) {
    advice = "that address is this host itself: let rank " + std::to_string(v.rank) +
             " listen on another, by COHORT_BIND_ADDRESS";
  }
  return {severity::problem,
          "mesh",
          "rank " + std::to_string(mine.rank) + " (" + mine.host + ", " + mine.address + ") cannot reach rank " +
              std::to_string(v.rank) + " (" + host + ", " + place + "): " + why,
          advice,
          {},
          {mine.rank}};
}

// All at once, as far as descriptors go, and each for as long as it may take.
std::vector<finding> visit_all(std::vector<visit> all, const rank_record& mine, const std::vector<std::string>& hosts) {
  std::vector<finding> findings;
  std::vector<visit> open;
  const auto give_up = [&](const visit& v, const std::string& why, bool overdue) {
    findings.push_back(unreachable(v, mine, hosts[static_cast<std::size_t>(v.rank)], why, overdue));
  };
  while (!all.empty() || !open.empty()) {
    while (open.size() < most_at_once && !all.empty()) {
      visit next = std::move(all.back());
      all.pop_back();
      std::string why;
      if (begin(next, why) == progress::failed) {
        give_up(next, why, false);
      } else {
        open.push_back(std::move(next));
      }
    }
    std::vector<pollfd> waiting;
    for (const visit& v : open) {
      waiting.push_back({v.socket.get(), static_cast<short>(v.connected ? POLLIN : POLLOUT), 0});
    }
    ::poll(waiting.data(), waiting.size(), 100);
    std::vector<visit> left;
    for (std::size_t i = 0; i < open.size(); ++i) {
      std::string why;
      progress now = waiting[i].revents == 0 ? progress::waits : advance(open[i], why);
      const bool overdue = now == progress::waits && std::chrono::steady_clock::now() > open[i].until;
      if (overdue) now = failed(why, what_is_overdue(open[i]));
      if (now == progress::failed) give_up(open[i], why, overdue);
      if (now == progress::waits) left.push_back(std::move(open[i]));
    }
    open = std::move(left);
  }
  return findings;
}

}  // namespace

std::vector<finding> knock_at_all_doors(const rank_record& mine, meeting& m) {
  std::vector<finding> findings;
  std::optional<door> own;
  try {
    own.emplace(mine.address, mine.rank);
  } catch (const std::exception& e) {
    findings.push_back({severity::problem,
                        "address",
                        e.what(),
                        "name an address of this host",
                        "unset COHORT_BIND_ADDRESS",
                        {mine.rank}});
  }
  m.tell("door", own ? std::to_string(own->port()) + " " + mine.address + " " + mine.host : "");
  const std::vector<std::optional<std::string>> doors = m.hear("door", deadline_after(std::chrono::seconds{30}));
  std::vector<visit> visits;
  std::vector<std::string> hosts(doors.size());
  for (int r = 0; r < m.size(); ++r) {
    const std::optional<std::string>& text = doors[static_cast<std::size_t>(r)];
    if (r == mine.rank || !text || text->empty()) continue;
    const std::size_t first = text->find(' ');
    const std::size_t second = text->find(' ', first + 1);
    hosts[static_cast<std::size_t>(r)] = text->substr(second + 1);
    visit v;
    v.rank = r;
    v.where = tcp_endpoint(boost::asio::ip::make_address(text->substr(first + 1, second - first - 1)),
                           static_cast<std::uint16_t>(std::stoi(*text)));
    visits.push_back(std::move(v));
  }
  for (finding& each : visit_all(std::move(visits), mine, hosts)) findings.push_back(std::move(each));
  m.tell("visited", "1");
  // The door stays open until everybody has knocked.
  (void)m.missing("visited", deadline_after(std::chrono::seconds{60}));
  return findings;
}

}  // namespace cohort::tool
