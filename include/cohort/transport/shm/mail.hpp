// SPDX-License-Identifier: BSL-1.0
// Letters between the processes of one host, with a descriptor enclosed: a Unix datagram socket whose name nobody can
// guess. The kernel vouches for the sender's user; a letter carries a word that only readers of the store know.
#pragma once

#include <cohort/transport/shm/segment.hpp>

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort::transport {

enum class letter_kind : std::uint32_t {
  bell = 1,     ///< wake up: something was written where you look
  desk,         ///< the sender's page of flags
  window,       ///< the sender's part of a communicator's window
  refusal,      ///< the sender has no part of that window to give
  link,         ///< the memory of a connection between the two
  buffer,       ///< a registered buffer
  buffer_gone,  ///< it is registered no more
};

struct letter {
  letter_kind kind{};
  std::int32_t from = -1;     ///< world rank
  std::uint64_t word = 0;     ///< the receiver's, as the store told
  std::uint64_t context = 0;  ///< the communicator, or what else the kind needs
  std::uint64_t number = 0;
  std::uint64_t bytes = 0;  ///< of the enclosed memory
};

struct received_letter {
  letter text{};
  owned_fd enclosed{};
};

class host_mail {
 public:
  /// Errors: io_error
  explicit host_mail(const std::string& name, std::uint64_t word) : word_(word) {
    socket_ = owned_fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_un where{};
    const socklen_t length = address_of(name, where);
    const int on = 1;
    if (!socket_ || ::setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&where), length) != 0) {
      throw error(errc::io_error, std::string{"cannot open a Unix socket for this host's ranks: "} +
                                      std::strerror(errno) + "; set COHORT_SHM=0 to do without");
    }
  }

  [[nodiscard]] int descriptor() const noexcept { return socket_.get(); }

  /// Sends at once, or when `flush` finds room. A peer that is gone is the monitor's business.
  void send(const std::string& to, const letter& text, int enclosed = -1) {
    outgoing o{to, text, {}};
    if (enclosed >= 0) {
      // It may have to wait: then the owner's may be closed meanwhile.
      o.enclosed = owned_fd(::fcntl(enclosed, F_DUPFD_CLOEXEC, 3));
      if (!o.enclosed) {
        throw error(errc::io_error, std::string{"no descriptor left to hand shared memory over: "} +
                                        std::strerror(errno) + "; raise the limit (ulimit -n)");
      }
    }
    if (!has_waiting(to) && try_send(o)) return;
    waiting_.push_back(std::move(o));
  }
  /// A bell is only a hint: if there is no room, the receiver has letters to wake for.
  void ring(const std::string& to, const letter& text) noexcept {
    sockaddr_un where{};
    const socklen_t length = address_of(to, where);
    (void)::sendto(socket_.get(), &text, sizeof text, MSG_DONTWAIT | MSG_NOSIGNAL,
                   reinterpret_cast<const sockaddr*>(&where), length);
  }
  [[nodiscard]] bool has_waiting() const noexcept { return !waiting_.empty(); }
  [[nodiscard]] bool has_waiting(const std::string& to) const noexcept {
    return std::any_of(waiting_.begin(), waiting_.end(), [&to](const outgoing& o) { return o.to == to; });
  }
  [[nodiscard]] std::size_t waiting() const noexcept { return waiting_.size(); }
  /// Letters to one rank stay in their order; one whose mailbox is full holds up nobody else's.
  void flush() {
    std::vector<std::string_view> full;  // of letters that stay in the list
    waiting_.remove_if([&](const outgoing& o) {
      if (std::find(full.begin(), full.end(), o.to) != full.end()) return false;
      if (try_send(o)) return true;
      full.emplace_back(o.to);
      return false;
    });
  }

  /// The next letter; nothing when there is none. Strangers' are thrown away.
  [[nodiscard]] std::optional<received_letter> receive() {
    for (;;) {
      received_letter got;
      iovec into{&got.text, sizeof got.text};
      alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(ucred))] = {};
      msghdr m{};
      m.msg_iov = &into;
      m.msg_iovlen = 1;
      m.msg_control = control;
      m.msg_controllen = sizeof control;
      const ssize_t n = ::recvmsg(socket_.get(), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
      if (n < 0) {
        if (errno == EINTR) continue;
        return std::nullopt;
      }
      bool ours = false;
      for (cmsghdr* c = CMSG_FIRSTHDR(&m); c != nullptr; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level != SOL_SOCKET) continue;
        if (c->cmsg_type == SCM_RIGHTS) {
          int fd = -1;
          std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
          got.enclosed = owned_fd(fd);
        } else if (c->cmsg_type == SCM_CREDENTIALS) {
          ucred sender{};
          std::memcpy(&sender, CMSG_DATA(c), sizeof sender);
          ours = sender.uid == ::geteuid();
        }
      }
      if (!ours || (m.msg_flags & MSG_TRUNC) != 0 || n != sizeof got.text || got.text.word != word_) continue;
      return got;
    }
  }

 private:
  struct outgoing {
    std::string to;
    letter text;
    owned_fd enclosed;
  };

  static socklen_t address_of(const std::string& name, sockaddr_un& where) noexcept {
    where.sun_family = AF_UNIX;  // the zero byte before the name: it is in no file system and goes with its socket
    const std::size_t n = std::min(name.size(), sizeof where.sun_path - 1);
    std::memcpy(where.sun_path + 1, name.data(), n);
    return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + n);
  }

  // False when there is no room yet.
  [[nodiscard]] bool try_send(const outgoing& o) {
    sockaddr_un where{};
    const socklen_t length = address_of(o.to, where);
    letter text = o.text;
    iovec from{&text, sizeof text};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr m{};
    m.msg_name = &where;
    m.msg_namelen = length;
    m.msg_iov = &from;
    m.msg_iovlen = 1;
    if (o.enclosed) {
      m.msg_control = control;
      m.msg_controllen = sizeof control;
      cmsghdr* const c = CMSG_FIRSTHDR(&m);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      const int fd = o.enclosed.get();
      std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    ssize_t n = 0;
    do {
      n = ::sendmsg(socket_.get(), &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n >= 0 || (errno != EAGAIN && errno != ENOBUFS && errno != ETOOMANYREFS);
  }

  owned_fd socket_{};
  std::uint64_t word_;
  std::list<outgoing> waiting_{};
};

}  // namespace cohort::transport
