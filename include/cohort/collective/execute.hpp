// SPDX-License-Identifier: BSL-1.0
// The one executor of schedules: posts a round's transfers, waits for all of them, combines what arrived.
// Called by the collectives, calls the transport; knows bytes, not element types.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/fold.hpp>
#include <cohort/detail/frame_pool.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/channel.hpp>

#include <cstddef>
#include <cstring>
#include <vector>

namespace cohort::collective {
namespace detail {

using cohort::detail::reducer;

template <class T>
using short_vector = std::vector<T, cohort::detail::pool_allocator<T>>;

/// Calls f(to, from, bytes) for what two regions of one size have in the same place; their runs may be cut differently.
template <class F>
void each_pair(const layout& from, region a, const layout& to, region b, F f) {
  short_vector<transport::piece> target;
  to.each_piece(b.first, b.count, [&](std::byte* data, std::size_t n) { target.push_back({data, n}); });
  auto at = target.begin();
  std::size_t used = 0;
  from.each_piece(a.first, a.count, [&](std::byte* data, std::size_t n) {
    while (n > 0 && at != target.end()) {
      const std::size_t part = std::min(n, at->bytes - used);
      f(at->data + used, data, part);
      data += part;
      n -= part;
      used += part;
      if (used == at->bytes) {
        ++at;
        used = 0;
      }
    }
  });
}

inline void copy_region(const layout& from, region a, const layout& to, region b) {
  each_pair(from, a, to, b, [](std::byte* into, const std::byte* data, std::size_t n) {
    if (into != data) std::memmove(into, data, n);
  });
}

/// What one round does on this rank. Local actions take place while it is being filled.
class round_plan {
 public:
  round_plan(const layouts& where, const reducer* op) noexcept : where_(&where), op_(op) {}

  void clear() noexcept {
    transfers_.clear();
    pieces_.clear();
    requests_.clear();
  }
  [[nodiscard]] bool empty() const noexcept { return transfers_.empty(); }

  void send(int peer, region r) { add(peer, r, kind::send, side::right); }
  void receive(int peer, region r) { add(peer, r, kind::receive, side::right); }
  void receive_reduce(int peer, region r, side s) { add(peer, r, kind::receive_reduce, s); }
  void copy(region from, region to) const { copy_region(where_->of(from.where), from, where_->of(to.where), to); }
  void reduce(region from, region into, side s) const {
    each_pair(where_->of(from.where), from, where_->of(into.where), into,
              [this, s](std::byte* target, const std::byte* data, std::size_t n) {
                op_->fold(op_->op, target, data, n / op_->element_bytes, s);
              });
  }

  /// Turns the transfers into requests, receives first: a message that finds its receive posted lands in place.
  template <class Channel>
  void start(const Channel& ch, transport::transfer_scope& scope, cohort::detail::buffer_cache& cache) {
    std::size_t to_combine = 0;
    for (const transfer& t : transfers_) {
      if (t.what == kind::receive_reduce) to_combine += aligned(t.bytes);
    }
    if (to_combine > staging_.capacity()) {
      staging_ = cohort::detail::borrowed_buffer{};
      staging_ = cohort::detail::borrowed_buffer(cache, to_combine);
    }
    std::size_t staged = 0;
    pieces_.clear();
    for (transfer& t : transfers_) {
      t.first_piece = pieces_.size();
      if (t.what == kind::receive_reduce) {
        t.staged = staged;
        if (t.bytes > 0) pieces_.push_back({staging_.data() + staged, t.bytes});
        staged += aligned(t.bytes);
      } else {
        where_->of(t.where.where).each_piece(t.where.first, t.where.count, [&](std::byte* d, std::size_t n) {
          pieces_.push_back({d, n});
        });
      }
      t.pieces = pieces_.size() - t.first_piece;
    }
    requests_.clear();
    requests_.resize(transfers_.size());
    std::size_t next = 0;
    for (const bool sending : {false, true}) {
      for (const transfer& t : transfers_) {
        if ((t.what == kind::send) != sending) continue;
        transport::request& r = requests_[next++];
        r.peer = ch.world_rank(t.peer);
        r.header = ch.header(t.bytes);
        r.pieces = pieces_.data() + t.first_piece;
        r.piece_count = t.pieces;
        r.sending = sending;
      }
    }
    scope.hold(requests_.data(), requests_.size());
    for (std::size_t i = 0; i < requests_.size(); ++i) scope.start(ch.transport(), i);
  }

  void combine() const {
    for (const transfer& t : transfers_) {
      if (t.what != kind::receive_reduce) continue;
      const std::byte* arrived = staging_.data() + t.staged;
      where_->of(t.where.where).each_piece(t.where.first, t.where.count, [&](std::byte* d, std::size_t n) {
        op_->fold(op_->op, d, arrived, n / op_->element_bytes, t.arriving);
        arrived += n;
      });
    }
  }

 private:
  enum class kind : unsigned char { send, receive, receive_reduce };
  struct transfer {
    int peer;
    region where;
    kind what;
    side arriving;
    std::size_t bytes;
    std::size_t first_piece;
    std::size_t pieces;
    std::size_t staged;
  };

  static constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
  void add(int peer, region r, kind what, side s) {
    transfers_.push_back({peer, r, what, s, where_->of(r.where).bytes(r.first, r.count), 0, 0, 0});
  }

  const layouts* where_;
  const reducer* op_;
  short_vector<transfer> transfers_{};
  short_vector<transport::piece> pieces_{};
  short_vector<transport::request> requests_{};
  cohort::detail::borrowed_buffer staging_{};
};

}  // namespace detail

/// Carries out one rank's part of a collective. One without elements sends its messages all the same, empty: a rank
/// that believes otherwise is found out before it goes on.
///
/// Shapes: `where` gives every buffer that the schedule names, cut into the blocks that it counts
/// Needs:  `op` when the schedule reduces; it and the buffers stay until the task has ended
/// Errors: what the communicator failed with; what the reduction's functor throws
/// Cost:   one suspension a round, none when everything was there already
template <class Channel, schedule Schedule>
task<> execute(const Channel& ch, Schedule steps, layouts where, const cohort::detail::reducer* op) {
  detail::round_plan plan(where, op);
  for (int k = 0; k < steps.rounds(); ++k) {
    plan.clear();
    steps.round(k, plan);
    if (plan.empty()) continue;
    transport::transfer_scope scope(ch.current());
    plan.start(ch, scope, ch.transport().scratch());
    co_await scope.done();
    plan.combine();
  }
}

}  // namespace cohort::collective
