// SPDX-License-Identifier: BSL-1.0
// The connections of a rank to others of its host, in memory: made on demand, looked at in every turn. The transports
// of backends cpu and mpi each own one; what arrives is theirs.
#pragma once

#include <cohort/transport/peer_connection.hpp>
#include <cohort/transport/shm/copy_choice.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/stream.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace cohort::transport {

/// Receives the next message if it is what is expected and comes soon. `c` runs over `memory`.
///
/// Needs:  nobody else waits for it, `between_frames`
/// Result: false: a request is needed, and the connection may have ended
[[gnu::always_inline]] [[nodiscard]] inline bool receive_soon(shm_stream& memory, peer_connection& c, patience& how,
                                                              const envelope& expected, const piece& into,
                                                              std::uint64_t& came) {
  if (!memory.comes_soon(how, frame::size + into.bytes)) return false;
  if (c.take_in_place(memory, expected, into, came)) return true;
  return frame::size + into.bytes > ring_head::beside &&
         c.take_in_parts(memory, expected, into, came,
                         [&](std::size_t bytes) { return memory.goes_on_soon(how, bytes); });
}

class shm_links {
 public:
  struct link {
    std::shared_ptr<peer_connection> connection{};
    shm_stream* memory = nullptr;  ///< null: there is none to this rank
  };

  /// The ranks that this one is connected with.
  [[nodiscard]] const std::vector<int>& ranks() const noexcept { return ranks_; }
  [[nodiscard]] bool empty() const noexcept { return ranks_.empty(); }
  [[nodiscard]] const link& to(int rank) const noexcept {
    static const link none{};
    const auto at = static_cast<std::size_t>(rank);
    return at < links_.size() ? links_[at] : none;
  }

  /// The connection that `place` points to; null if it points to none of these.
  [[nodiscard]] peer_connection* at(const void* place) const noexcept {
    const auto is_there = [this, place](int r) { return to(r).connection.get() == place; };
    const auto rank = std::find_if(ranks_.begin(), ranks_.end(), is_there);
    return rank != ranks_.end() ? to(*rank).connection.get() : nullptr;
  }

  /// How long messages are copied; without a value, as is faster between this rank and each other.
  ///
  /// Needs: no connection has been opened yet
  void copy_by(std::optional<copying> how) noexcept { copies_ = how; }
  /// Whether the user leaves any of it to the kernel.
  [[nodiscard]] bool kernel_may_copy() const noexcept { return copies_ != copying::through_ring; }
  /// The ring in either direction is made by whoever writes to it. `pid` is that of the rank.
  ///
  /// Needs:    there is none yet
  /// Lifetime: `here` and `owner` outlive it
  const link& open(neighbours& here, peer_connection_owner& owner, int rank, long pid) {
    const auto at = static_cast<std::size_t>(rank);
    if (links_.size() <= at) links_.resize(at + 1);
    auto stream = std::make_unique<shm_stream>(here, rank, pid);
    links_[at].memory = stream.get();
    links_[at].connection = std::make_shared<peer_connection>(owner, std::move(stream), rank);
    links_[at].connection->copy_by(copies_);
    ranks_.push_back(rank);
    return links_[at];
  }
  /// It is not looked at any more. The connection is closed by whom it belongs to.
  void remove(int rank) noexcept { ranks_.erase(std::remove(ranks_.begin(), ranks_.end(), rank), ranks_.end()); }

  /// Takes the rings that have come: `linked(rank)` gives the connection of one, null when there can be none,
  /// `unusable(rank, error)` is told of a ring that cannot be used.
  template <class Linked, class Unusable>
  static void take_rings(neighbours& here, Linked linked, Unusable unusable) {
    const auto is_ring = [](const letter& l) { return l.kind == letter_kind::link; };
    while (std::optional<received_letter> l = here.take(is_ring)) {
      shm_stream* const memory = linked(l->text.from);
      if (memory == nullptr || memory->attached()) continue;
      try {
        memory->attach(std::move(l->enclosed));
      } catch (const error& e) {
        unusable(l->text.from, e);
      }
    }
  }

  /// Moves what can be moved.
  bool move() {
    bool moved = false;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const link& l = links_[static_cast<std::size_t>(ranks_[i])];
      const bool writes = has_room(l);
      const bool reads = l.memory->has_data();
      if (!writes && !reads && !l.connection->waits_for_parts() && !l.connection->has_shares()) continue;
      const std::shared_ptr<peer_connection> c = l.connection;
      if (writes) moved = c->try_write() || moved;
      if (reads && c->open()) {
        moved = c->try_read() || moved;
      } else if (c->open()) {
        moved = c->read_overdue(false) || moved;
      }
      if (c->open() && c->has_shares()) moved = c->copy_share() || moved;
    }
    return moved;
  }
  /// Before a rank leaves: letters that wait for room leave, and what has been written behind them.
  ///
  /// Needs: `read_mail()` takes letters, as others may be leaving too
  template <class ReadMail>
  void push_out(neighbours& here, std::chrono::milliseconds patience, ReadMail read_mail) {
    for (const auto until = neighbours::clock::now() + patience;
         here.has_waiting() && neighbours::clock::now() < until;) {
      read_mail();
      ::sched_yield();
    }
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      const std::shared_ptr<peer_connection> c = to(ranks_[i]).connection;
      if (c->has_output()) (void)c->try_write();
    }
  }
  /// Whether a rank has written something that this one has not seen, or made room that it waits for, or there are more shares of
  /// messages to copy: one of each is, a turn.
  [[nodiscard]] bool any_ready() const noexcept {
    return std::any_of(ranks_.begin(), ranks_.end(), [this](int r) {
      const link& l = links_[static_cast<std::size_t>(r)];
      return l.memory->has_data() || has_room(l) || l.connection->has_shares() ||
             (l.connection->waits_for_parts() && l.connection->shares_have_come());
    });
  }
  /// Before a rank sleeps: whoever sends it parts of a message may not go on before it would wake up, so what it can read
  /// itself it reads now. True when there was something.
  bool read_all_overdue() {
    for (const int r : ranks_) {
      const link& l = links_[static_cast<std::size_t>(r)];
      if (!l.connection->waits_for_parts() || l.memory->has_data()) continue;
      const std::shared_ptr<peer_connection> c = l.connection;
      if (c->read_overdue(true)) return true;
    }
    return false;
  }

 private:
  [[nodiscard]] static bool has_room(const link& l) noexcept {
    return l.connection->has_output() && l.memory->has_room(l.connection->room_needed());
  }

  std::optional<copying> copies_{};
  std::vector<link> links_{};  // of every rank of the world, as far as they are needed
  std::vector<int> ranks_{};
};

}  // namespace cohort::transport
