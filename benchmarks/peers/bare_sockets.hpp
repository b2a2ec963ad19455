// SPDX-License-Identifier: BSL-1.0
// What each operation needs at least over sockets: nothing but the bytes, one connection between every two ranks, system
// calls that never wait. Used by bare.cpp.
#pragma once

#include "bare_fold.hpp"
#include "bare_shared.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace bare {

/// The connections of one rank, each made by the higher rank of the two.
class mesh {
 public:
  mesh(rank_area* areas, int rank, int ranks) : sockets_(static_cast<std::size_t>(ranks), -1), wait_(ranks) {
    const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in here = loopback(0);
    socklen_t size = sizeof here;
    do_not_pace(listener);
    if (listener < 0 || ::bind(listener, address(here), size) != 0 || ::listen(listener, ranks) != 0 ||
        ::getsockname(listener, address(here), &size) != 0) {
      fail("listening on the loopback");
    }
    areas[rank].port.store(here.sin_port, std::memory_order_release);
    for (int k = 0; k < rank; ++k) {
      wait_.until([&] { return areas[k].port.load(std::memory_order_acquire) != 0; });
      const sockaddr_in there = loopback(static_cast<in_port_t>(areas[k].port.load()));
      const int made = ::socket(AF_INET, SOCK_STREAM, 0);
      do_not_pace(made);
      if (::connect(made, address(there), sizeof there) != 0) fail("connecting over the loopback");
      if (::send(made, &rank, sizeof rank, 0) != sizeof rank) fail("saying who connects");
      take(k, made);
    }
    for (int k = rank + 1; k < ranks; ++k) {
      const int made = ::accept(listener, nullptr, nullptr);
      int who = -1;
      if (made < 0 || ::recv(made, &who, sizeof who, MSG_WAITALL) != sizeof who) fail("accepting over the loopback");
      take(who, made);
    }
    ::close(listener);
  }
  mesh(const mesh&) = delete;
  mesh& operator=(const mesh&) = delete;
  ~mesh() {
    for (const int each : sockets_) ::close(each);
  }
  [[nodiscard]] int to(int rank) const { return sockets_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const patience& wait() const { return wait_; }

 private:
  static sockaddr_in loopback(in_port_t port) {
    sockaddr_in a{};
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = port;
    return a;
  }
  static sockaddr* address(sockaddr_in& a) { return reinterpret_cast<sockaddr*>(&a); }
  static const sockaddr* address(const sockaddr_in& a) { return reinterpret_cast<const sockaddr*>(&a); }
  /// Some hosts pace by default (BBR), which a loopback does not need; only before it is connected can that be prevented.
  static void do_not_pace(int socket) { ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, "reno", 4); }
  void take(int rank, int socket) {
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sockets_[static_cast<std::size_t>(rank)] = socket;
  }

  std::vector<int> sockets_;
  patience wait_;
};

/// What is under way between this rank and others; run() ends when all of it has.
class exchange {
 public:
  explicit exchange(const mesh& links) : links_(&links) {}
  template <class T>
  exchange& send(const T* data, std::size_t n, int to) {
    if (n > 0) add({links_->to(to), const_cast<char*>(reinterpret_cast<const char*>(data)), n * sizeof(T), true, {}});
    return *this;
  }
  template <class T>
  exchange& receive(T* data, std::size_t n, int from) {
    if (n > 0) add({links_->to(from), reinterpret_cast<char*>(data), n * sizeof(T), false, {}});
    return *this;
  }
  /// `in_out` combined with what arrives, piece by piece.
  template <class T, class Op>
  exchange& receive_into(T* in_out, std::size_t n, int from, const Op& op) {
    if (n == 0) return *this;
    pieces_.push_back(std::make_unique<std::byte[]>(std::min(piece_bytes, n * sizeof(T))));
    auto* const piece = reinterpret_cast<char*>(pieces_.back().get());
    add({links_->to(from), piece, n * sizeof(T), false,
         [in_out, piece, op, have = std::size_t{0}](std::size_t bytes) mutable {
           have += bytes;
           const std::size_t whole = have / sizeof(T);
           fold_two(in_out, in_out, reinterpret_cast<const T*>(piece), whole, op);
           in_out += whole;
           have -= whole * sizeof(T);
           std::memmove(piece, piece + whole * sizeof(T), have);
           return piece + have;
         }});
    return *this;
  }
  void run() {
    for (int polls = 0; left_ > 0;) {
      bool moved = false;
      for (transfer& each : all_) moved = (each.left > 0 && move(each)) || moved;
      if (moved) polls = 0;
      else links_->wait().rest(++polls);
    }
    all_.clear();
    pieces_.clear();
  }

 private:
  static constexpr std::size_t piece_bytes = std::size_t{128} << 10;
  struct transfer {
    int socket;
    char* data;
    std::size_t left;
    bool sends;
    std::function<char*(std::size_t)> arrived;  ///< takes so many bytes; where the next go
    char* start = data;
  };
  void add(transfer t) {
    all_.push_back(std::move(t));
    ++left_;
  }
  bool move(transfer& t) {
    std::size_t room = t.left;
    if (t.arrived) room = std::min(room, piece_bytes - static_cast<std::size_t>(t.data - t.start));
    const ssize_t moved = t.sends ? ::send(t.socket, t.data, room, MSG_DONTWAIT | MSG_NOSIGNAL)
                                  : ::recv(t.socket, t.data, room, MSG_DONTWAIT);
    if (moved == 0 || (moved < 0 && errno != EAGAIN)) fail("a connection has ended");
    if (moved < 0) return false;
    t.left -= static_cast<std::size_t>(moved);
    t.data = t.arrived ? t.arrived(static_cast<std::size_t>(moved)) : t.data + moved;
    if (t.left == 0) --left_;
    return true;
  }

  const mesh* links_;
  std::vector<transfer> all_{};
  std::vector<std::unique_ptr<std::byte[]>> pieces_{};
  std::size_t left_ = 0;
};

class over_sockets {
 public:
  over_sockets(rank_area* areas, int rank, int ranks)
      : links_(areas, rank, ranks), go_(links_), rank_(rank), ranks_(ranks) {}
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return ranks_; }
  template <class T>
  std::shared_ptr<void> keep(T*, std::size_t) {
    return nullptr;
  }

  void barrier() {
    for (int step = 1; step < ranks_; step *= 2) {
      char out = 0, in = 0;
      go_.send(&out, 1, (rank_ + step) % ranks_).receive(&in, 1, (rank_ + ranks_ - step) % ranks_).run();
    }
  }
  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    if (n * sizeof(T) <= short_bytes && (ranks_ & (ranks_ - 1)) == 0) {
      std::vector<T>& theirs = scratch<T>(n);
      std::memcpy(out, in, n * sizeof(T));
      for (int step = 1; step < ranks_; step *= 2) {
        const int peer = rank_ ^ step;
        go_.send(out, n, peer).receive(theirs.data(), n, peer).run();
        peer < rank_ ? fold_two(out, theirs.data(), out, n, op) : fold_two(out, out, theirs.data(), n, op);
      }
      return;
    }
    const share cut(n, ranks_);
    reduce_slices(in, out, cut, op);
    for (int k = 0; k < ranks_; ++k) {
      if (k == rank_) continue;
      go_.send(out + cut.begin(rank_), cut.size(rank_), k).receive(out + cut.begin(k), cut.size(k), k);
    }
    go_.run();
  }
  /// A tree for what is short; else a chain, through which pieces pass.
  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    const int me = (rank_ - root + ranks_) % ranks_;
    const auto rank_at = [&](int place) { return (place + root) % ranks_; };
    if (n * sizeof(T) <= short_bytes) {
      int step = 1;
      for (; step < ranks_; step *= 2) {
        if ((me & step) == 0) continue;
        go_.receive(inout, n, rank_at(me - step)).run();
        break;
      }
      for (step /= 2; step > 0; step /= 2) {
        if (me + step < ranks_) go_.send(inout, n, rank_at(me + step));
      }
      go_.run();
      return;
    }
    along_chain<T>(n, [&](std::size_t at, std::size_t here, std::size_t before, std::size_t bytes_before) {
      if (me > 0) go_.receive(inout + at, here, rank_at(me - 1));
      if (me + 1 < ranks_) go_.send(inout + before, bytes_before, rank_at(me + 1));
      go_.run();
    });
  }
  template <class T, class Op>
  void reduce(const T* in, T* out, std::size_t n, const Op& op, int root) {
    if (ranks_ > 2 && n * sizeof(T) > short_bytes) {
      const share cut(n, ranks_);
      T* const to = rank_ == root ? out : scratch<T>(n).data();
      reduce_slices(in, to, cut, op);
      if (rank_ != root) go_.send(to + cut.begin(rank_), cut.size(rank_), root);
      for (int k = 0; rank_ == root && k < ranks_; ++k) {
        if (k != root) go_.receive(to + cut.begin(k), cut.size(k), k);
      }
      go_.run();
      return;
    }
    const int me = (rank_ - root + ranks_) % ranks_;
    T* const sum = me == 0 ? out : scratch<T>(n).data();
    bool first = true;
    for (int step = 1; step < ranks_; step *= 2) {
      if ((me & step) != 0) {
        go_.send(first ? in : sum, n, (me - step + root) % ranks_).run();
        return;
      }
      if (me + step >= ranks_) continue;
      if (first) std::memcpy(sum, in, n * sizeof(T));
      first = false;
      go_.receive_into(sum, n, (me + step + root) % ranks_, op).run();
    }
  }
  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    for (int i = 1; i < ranks_; ++i) {
      const int k = (rank_ + i) % ranks_;
      go_.send(in, block, k).receive(at(out, block, k), block, k);
    }
    own(out, block, in);
    go_.run();
  }
  template <class T, class Op>
  void reduce_scatter(const T* in, T* out, std::size_t block, const Op& op) {
    std::memcpy(out, at(in, block, rank_), block * sizeof(T));
    for (int i = 1; i < ranks_; ++i) {
      const int k = (rank_ + i) % ranks_;
      go_.send(at(in, block, k), block, k).receive_into(out, block, k, op);
    }
    go_.run();
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    for (int i = 1; i < ranks_; ++i) {
      const int k = (rank_ + i) % ranks_;
      go_.send(at(in, block, k), block, k).receive(at(out, block, k), block, k);
    }
    own(out, block, at(in, block, rank_));
    go_.run();
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    if (rank_ != root) {
      go_.send(in, block, root).run();
      return;
    }
    for (int k = 0; k < ranks_; ++k) {
      if (k != root) go_.receive(at(out, block, k), block, k);
    }
    own(out, block, in);
    go_.run();
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    if (rank_ != root) {
      go_.receive(out, block, root).run();
      return;
    }
    for (int k = 0; k < ranks_; ++k) {
      if (k != root) go_.send(at(in, block, k), block, k);
    }
    std::memcpy(out, at(in, block, root), block * sizeof(T));
    go_.run();
  }
  template <class T, class Op>
  void scan(const T* in, T* out, std::size_t n, const Op& op) {
    along_chain<T>(n, [&](std::size_t first, std::size_t here, std::size_t before, std::size_t count_before) {
      std::memcpy(out + first, in + first, here * sizeof(T));
      if (rank_ > 0) go_.receive_into(out + first, here, rank_ - 1, op);
      if (rank_ + 1 < ranks_) go_.send(out + before, count_before, rank_ + 1);
      go_.run();
    });
  }
  template <class T>
  void send(const T* data, std::size_t n, int peer) {
    go_.send(data, n, peer).run();
  }
  template <class T>
  void receive(T* data, std::size_t n, int peer) {
    go_.receive(data, n, peer).run();
  }

 private:
  static constexpr std::size_t short_bytes = std::size_t{32} << 10;
  static constexpr std::size_t link_bytes = std::size_t{256} << 10;

  template <class T>
  static T* at(T* data, std::size_t block, int k) {
    return data + static_cast<std::size_t>(k) * block;
  }
  template <class T>
  void own(T* out, std::size_t block, const T* in) const {
    std::memcpy(at(out, block, rank_), in, block * sizeof(T));
  }
  /// Slice r of everybody's `in` into slice r of `out` on rank r.
  template <class T, class Op>
  void reduce_slices(const T* in, T* out, const share& cut, const Op& op) {
    const std::size_t mine = cut.begin(rank_);
    std::memcpy(out + mine, in + mine, cut.size(rank_) * sizeof(T));
    for (int i = 1; i < ranks_; ++i) {
      const int k = (rank_ + i) % ranks_;
      go_.send(in + cut.begin(k), cut.size(k), k).receive_into(out + mine, cut.size(rank_), k, op);
    }
    go_.run();
  }
  /// call(at, n, before, n before): the piece that arrives, and the one before it, which is passed on meanwhile.
  template <class T, class Call>
  static void along_chain(std::size_t n, const Call& call) {
    const std::size_t most = link_bytes / sizeof(T);
    std::size_t before = 0, count_before = 0;
    for (std::size_t first = 0; first < n || count_before > 0;) {
      const std::size_t here = std::min(most, n - first);
      call(first, here, before, count_before);
      before = first, count_before = here;
      first += here;
    }
  }
  /// `n` elements, or more, for what arrives.
  template <class T>
  std::vector<T>& scratch(std::size_t n) {
    static std::vector<T> room;
    if (room.size() < n) room.resize(n);
    return room;
  }

  mesh links_;
  exchange go_;
  int rank_, ranks_;
};

}  // namespace bare
