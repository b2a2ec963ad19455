// SPDX-License-Identifier: BSL-1.0
// communicator<Backend>: the ranks that a program talks to, and everything it can say to them. The calls are in
// communicator/, one header for each family; each starts an operation<T>.
#pragma once

#include <cohort/detail/config.hpp>  // first: what a compiler lacks is said before it trips

#include <cohort/backend/backend.hpp>
#include <cohort/communicator/coalesced.hpp>
#include <cohort/communicator/declaration.hpp>
#include <cohort/communicator/exchanges.hpp>
#include <cohort/communicator/front.hpp>
#include <cohort/communicator/gathers.hpp>
#include <cohort/communicator/groups.hpp>
#include <cohort/communicator/memory.hpp>
#include <cohort/communicator/messages.hpp>
#include <cohort/communicator/objects.hpp>
#include <cohort/communicator/reductions.hpp>
#include <cohort/communicator/rooted.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

/// A group of ranks on one backend.
///
/// Order:    the n-th collective called on a communicator is the n-th on every rank; messages are not counted
/// Lifetime: move-only; operations in flight keep what they need of it alive
/// Needs:    the process that connected, one thread at a time: the one that drives its engine
/// Errors:   every call: closed, not_a_member, forked (in a child of that process), concurrent_use (another thread is
///           inside), and the first cause of an earlier failure
template <backend Backend>
class [[nodiscard]] communicator<Backend> : public detail::message_calls<communicator<Backend>, Backend>,
                                            public detail::rooted_calls<communicator<Backend>, Backend>,
                                            public detail::reduction_calls<communicator<Backend>, Backend>,
                                            public detail::gather_calls<communicator<Backend>, Backend>,
                                            public detail::exchange_calls<communicator<Backend>, Backend>,
                                            public detail::coalesced_calls<communicator<Backend>, Backend>,
                                            public detail::object_calls<communicator<Backend>, Backend>,
                                            public detail::memory_calls<communicator<Backend>, Backend>,
                                            public detail::group_calls<communicator<Backend>, Backend> {
 public:
  using backend_type = Backend;
  using transport_type = typename Backend::transport_type;

  /// For backends: the communicator of a group that is connected.
  explicit communicator(std::shared_ptr<group> state) noexcept : front_(std::move(state)) {}
  communicator(communicator&&) noexcept = default;
  communicator& operator=(communicator&&) noexcept = default;
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() = default;

  /// This process's rank, 0 .. size()-1; -1 if it is not a member.
  [[nodiscard]] int rank() const noexcept { return front_.rank(); }
  [[nodiscard]] int size() const noexcept { return front_.size(); }
  [[nodiscard]] bool is_member() const noexcept { return rank() >= 0; }
  /// The name that errors use.
  [[nodiscard]] const std::string& name() const noexcept { return front_.state()->name(); }

  /// Rank of this communicator to rank of the world, and back; -1 if there is none.
  [[nodiscard]] int world_rank_of(int r) const noexcept {
    return r < 0 || r >= size() ? -1 : front_.state()->world_rank(r);
  }
  [[nodiscard]] int rank_of(int world_rank) const noexcept { return front_.state()->rank_of(world_rank); }

  /// Whether an error has made this communicator unusable; every later call reports that error.
  [[nodiscard]] bool failed() const noexcept { return front_.state()->failure() != nullptr; }

  /// The time after which an operation fails if none is given with it. Five minutes unless set.
  void set_timeout(std::chrono::nanoseconds after) const noexcept { front_.state()->default_timeout = after; }
  [[nodiscard]] std::chrono::nanoseconds timeout_after() const noexcept { return front_.state()->default_timeout; }

  /// Which algorithm carries out which call; to be changed alike on every rank.
  [[nodiscard]] collective::selection_table& algorithms() const noexcept { return front_.state()->selection; }

  /// With `true`, reductions combine in one grouping whatever the size of the vector, for every functor: the result is
  /// the one that a functor which does not commute would get. To be set alike on every rank.
  ///
  /// Cost: up to one vector more on the wire for long ones
  void set_ordered(bool ordered) const noexcept { front_.state()->ordered = ordered; }

  /// Moves what can be moved without waiting: for compute loops with operations in flight.
  ///
  /// Result: whether anything moved
  /// Errors: forked, concurrent_use
  bool poll() const {
    engine().require_use("poll");
    // What is resumed may let go of this communicator.
    const std::shared_ptr<transport::engine> keep = engine().weak_from_this().lock();
    return engine().turn();
  }

  [[nodiscard]] transport::engine& engine() const noexcept { return front_.state()->engine(); }
  /// For headers that add calls.
  [[nodiscard]] const detail::front<Backend>& calls() const noexcept { return front_; }

 private:
  detail::front<Backend> front_;
};

}  // namespace cohort
