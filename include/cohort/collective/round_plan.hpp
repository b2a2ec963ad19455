// SPDX-License-Identifier: BSL-1.0
// What one round of a schedule does on one rank: the sink that a schedule is written into, and the requests that come
// out. Used by execute.hpp.
#pragma once

#include <cohort/collective/copy_region.hpp>
#include <cohort/collective/each_pair.hpp>
#include <cohort/collective/layout.hpp>
#include <cohort/collective/put_off.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/collective/short_vector.hpp>
#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>

namespace cohort::collective {
namespace detail {

using cohort::detail::reducer;

/// A transport that fills the pieces of a receive in order and tells when one is full: what is long is then combined
/// while it arrives.
template <class Transport>
concept tells_of_pieces = Transport::tells_of_pieces;

/// What each round does on this rank. Local actions take place while it is being filled. But a long copy of the input waits: in a
/// round that only sends until the sends are under way, as others wait for those, or have left, where this rank writes
/// them; in one that combines what arrives with it, for that, which reads it from the input.
class round_plan {
 public:
  round_plan(const layouts& where, const reducer* op) noexcept : where_(&where), op_(op) {}

  /// The rank's own operand, which is still elsewhere.
  ///
  /// `lasting`: as of put_off_copies
  /// Needs: nobody writes to `from` before `finish`, and it does not overlap with any buffer
  void begin_with(std::byte* to, const std::byte* from, std::size_t bytes, bool lasting) {
    put_off_.add(to, from, bytes, lasting);
  }

  void clear() noexcept {
    transfers_.clear();
    pieces_.clear();
    requests_.clear();
    targets_.clear();
    arriving_.clear();
    copied_.clear();
  }
  [[nodiscard]] bool empty() const noexcept { return transfers_.empty(); }

  void send(int peer, region r) { add(peer, r, kind::send, side::right); }
  void receive(int peer, region r) { add(peer, r, kind::receive, side::right); }
  void receive_reduce(int peer, region r, side s) { add(peer, r, kind::receive_reduce, s); }
  void copy(region from, region to) {
    if (!input_stays()) make_copies();
    make(from);
    forget(to);
    const layout& source = where_->of(from.where);
    const layout& target = where_->of(to.where);
    if (from.where == buffer::in) {
      const transport::piece data = source.together(from.first, from.count);
      const transport::piece place = target.together(to.first, to.count);
      if (may_wait(data, place)) {
        put_off_.add(place.data, data.data, data.bytes, to.where == buffer::out);
        copied_.push_back(place);
        return;
      }
    }
    copy_region(source, from, target, to);
  }
  void reduce(region from, region into, side s) {
    if (!input_stays()) make_copies();
    make(from);
    make(into);
    each_pair(where_->of(from.where), from, where_->of(into.where), into,
              [this, s](std::byte* target, const std::byte* data, std::size_t n) {
                op_->fold(op_->op, target, data, n / op_->element_bytes, s);
              });
  }

  /// Sends what is short, and turns the other transfers into requests, receives first: a message that finds its receive
  /// posted lands in place.
  template <class Channel>
  void start(const Channel& ch, transport::transfer_scope& scope, cohort::detail::buffer_cache& cache) {
    const bool sends_alone =
        std::all_of(transfers_.begin(), transfers_.end(), [](const transfer& t) { return t.what == kind::send; });
    if (!sends_alone && !copies_may_wait()) make_copies();
    for (transfer& t : transfers_) {
      if (t.what == kind::send) add_pieces(t);
    }
    const std::size_t gone = send_short(ch);
    std::size_t to_combine = 0;
    std::size_t streaming = 0;
    for (transfer& t : transfers_) {
      if (t.what != kind::receive_reduce) continue;
      t.streams = tells_of_pieces<typename Channel::transport_type> && t.bytes > longest_staged && stands_alone(t);
      if (t.streams) ++streaming;
      to_combine += t.streams ? room_to_stream(t) : aligned(t.bytes);
    }
    if (to_combine > staging_.capacity()) {
      staging_ = cohort::detail::borrowed_buffer{};
      staging_ = cohort::detail::borrowed_buffer(cache, to_combine);
    }
    std::size_t staged = 0;
    for (transfer& t : transfers_) {
      if (t.what == kind::receive) {
        forget(t.where);
        add_pieces(t);
      }
      if (t.what != kind::receive_reduce) continue;
      t.first_piece = pieces_.size();
      t.staged = staged;
      if (t.streams) cut_into_chunks(t);
      else if (t.bytes > 0) pieces_.push_back({staging_.data() + staged, t.bytes});
      staged += t.streams ? room_to_stream(t) : aligned(t.bytes);
      t.pieces = pieces_.size() - t.first_piece;
    }
    arriving_.reserve(streaming);  // requests point into it
    requests_.clear();
    requests_.resize(transfers_.size() - gone);
    std::size_t next = 0;
    for (const bool sending : {false, true}) {
      for (const transfer& t : transfers_) {
        if ((t.what == kind::send) != sending || t.gone) continue;
        transport::request& r = requests_[next++];
        r.peer = ch.world_rank(t.peer);
        r.header = ch.header(t.bytes);
        r.pieces = pieces_.data() + t.first_piece;
        r.piece_count = t.pieces;
        r.sending = sending;
        if (t.streams) {
          arriving_.push_back({this, t.first_target, t.arriving});
          r.piece_filled = &combine_piece;
          r.room = &arriving_.back();
        }
      }
    }
    scope.hold(requests_.data(), requests_.size());
    for (std::size_t i = 0; i < requests_.size(); ++i) scope.start(ch.transport(), i);
    copies_last_ = sends_alone && !copied_.empty() && writes_some(ch);
    if (sends_alone && !copies_last_) make_copies();
  }

  /// Makes what of this round's copies was put off and has not been needed. A round without transfers is not started, and
  /// ends so.
  void make_copies() {
    for (const transport::piece& p : copied_) put_off_.make(p.data, p.bytes);
    copied_.clear();
  }
  /// After the last round.
  void finish() { put_off_.make_lasting(); }

  /// All transfers are complete: combines what has arrived and was not combined on its way.
  void end() {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    if (std::exchange(copies_last_, false)) make_copies();
    for (const transfer& t : transfers_) {
      if (t.what != kind::receive_reduce || t.streams) continue;
      const std::byte* arrived = staging_.data() + t.staged;
      each_run(t, [&](std::byte* d, std::size_t n) {
        put_off_.each_source(d, n, [&](const std::byte* own, std::size_t m) {
          fold(d, own, arrived, m, t.arriving);
          d += m;
          arrived += m;
        });
        put_off_.forget(d - n, n);
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
    std::size_t first_target;
    bool streams;
    bool gone;  ///< a send that needed no request
  };
  /// Where a chunk is combined, and with what.
  struct chunk_target {
    std::byte* to;
    const std::byte* own;
  };
  /// A receive that is combined while it arrives.
  struct arrival {
    round_plan* plan;
    std::size_t first_target;
    side where;
  };

  static constexpr std::size_t longest_at_once = std::size_t{4} << 10;
  /// Up to here what arrives stays in a second-level cache until its round is over.
  static constexpr std::size_t longest_staged = std::size_t{256} << 10;
  [[nodiscard]] static bool may_wait(const transport::piece& from, const transport::piece& to) noexcept {
    return from.data != nullptr && to.data != nullptr && from.bytes >= shortest_put_off && from.bytes == to.bytes &&
           !overlap(from, to);
  }
  /// Whether nothing that is put off can be overwritten where it is read from, as the input may be a part of the output.
  [[nodiscard]] bool input_stays() const {
    if (copied_.empty()) return true;
    const transport::piece in = where_->in.together(0, where_->in.blocks());
    const transport::piece out = where_->out.together(0, where_->out.blocks());
    return in.data != nullptr && out.data != nullptr && !overlap(in, out);
  }
  /// Whether some of what is sent is written by this rank while it waits, and not taken by its receiver.
  template <class Channel>
  [[nodiscard]] bool writes_some(const Channel& ch) const {
    if constexpr (requires { ch.transport().writes_to(0); }) {
      return std::any_of(transfers_.begin(), transfers_.end(), [&ch](const transfer& t) {
        return t.what == kind::send && ch.transport().writes_to(ch.world_rank(t.peer));
      });
    } else {
      return false;
    }
  }
  /// Whether this round may combine what its copies are of, or a later one.
  [[nodiscard]] bool copies_may_wait() const {
    return input_stays() && std::any_of(transfers_.begin(), transfers_.end(),
                                        [](const transfer& t) { return t.what == kind::receive_reduce; });
  }
  void make(region r) {
    if (r.where == buffer::in || put_off_.none()) return;
    where_->of(r.where).each_piece(r.first, r.count,
                                   [this](const std::byte* d, std::size_t n) { put_off_.make(d, n); });
  }
  void forget(region r) {
    if (put_off_.none()) return;
    where_->of(r.where).each_piece(r.first, r.count,
                                   [this](const std::byte* d, std::size_t n) { put_off_.forget(d, n); });
  }
  /// What has arrived combined with this rank's own, which is at `to` or elsewhere.
  void fold(std::byte* to, const std::byte* own, const std::byte* arrived, std::size_t bytes, side where) const {
    const std::size_t elements = bytes / op_->element_bytes;
    if (own == to) return op_->fold(op_->op, to, arrived, elements, where);
    const std::byte* const in_order[] = {where == side::left ? arrived : own, where == side::left ? own : arrived};
    op_->fold_many(op_->op, to, in_order, 2, elements);
  }
  [[nodiscard]] std::size_t chunk_bytes() const noexcept {
    constexpr std::size_t about = std::size_t{128} << 10;
    return std::max<std::size_t>(1, about / op_->element_bytes) * op_->element_bytes;
  }
  /// For a message that is combined while it arrives. What others send while this rank sends has come when it begins to read, and
  /// is read by one call as far as there is room; where it only receives, one chunk after the other stays in the caches.
  [[nodiscard]] std::size_t room_to_stream(const transfer& t) const noexcept {
    constexpr std::size_t most_places = 4;
    const bool sends = std::any_of(transfers_.begin(), transfers_.end(),
                                   [](const transfer& other) { return other.what == kind::send; });
    return std::min(sends ? most_places : 1, t.bytes / chunk_bytes()) * chunk_bytes();
  }

  static constexpr std::size_t aligned(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }
  void add(int peer, region r, kind what, side s) {
    transfers_.push_back({peer, r, what, s, where_->of(r.where).bytes(r.first, r.count), 0, 0, 0, 0, false, false});
  }

  void add_pieces(transfer& t) {
    t.first_piece = pieces_.size();
    each_run(t, [&](std::byte* d, std::size_t n) {
      put_off_.each_source(d, n, [this](const std::byte* at, std::size_t m) {
        pieces_.push_back({const_cast<std::byte*>(at), m});  // a send reads it alone
      });
    });
    t.pieces = pieces_.size() - t.first_piece;
  }
  /// Short messages leave before anything else is done: somebody may be waiting for them. Only up to the first that
  /// cannot, as those to one rank keep their order.
  template <class Channel>
  [[nodiscard]] std::size_t send_short(const Channel& ch) {
    std::size_t gone = 0;
    if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
      if (ch.current().home().failure()) return 0;
      for (transfer& t : transfers_) {
        if (t.what != kind::send) continue;
        if (std::exchange(ch.current().begun.sent, false)) {
          t.gone = true;
          ++gone;
          continue;
        }
        if (t.bytes > longest_at_once || t.pieces > 1) break;
        const transport::piece whole = t.pieces == 1 ? pieces_[t.first_piece] : transport::piece{};
        if (!ch.transport().send_now(ch.world_rank(t.peer), ch.header(t.bytes), whole)) break;
        t.gone = true;
        ++gone;
      }
      // Who waits for something moves on what it sent meanwhile.
      if (gone > 0 && gone == transfers_.size()) ch.transport().push_out();
    }
    return gone;
  }

  template <class F>
  void each_run(const transfer& t, F f) const {
    where_->of(t.where.where).each_piece(t.where.first, t.where.count, f);
  }
  /// Whether nothing else in the round reads or writes where this transfer combines: then it need not wait for the others.
  [[nodiscard]] bool stands_alone(const transfer& t) const {
    bool alone = true;
    for (const transfer& other : transfers_) {
      if (&other == &t) continue;
      each_run(t, [&](std::byte* mine, std::size_t n) {
        const auto compare = [&](std::byte* its, std::size_t m) {
          alone = alone && !overlap(transport::piece{mine, n}, {its, m});
        };
        if (other.what != kind::send) return each_run(other, compare);
        for (std::size_t i = 0; i < other.pieces; ++i) {
          compare(pieces_[other.first_piece + i].data, pieces_[other.first_piece + i].bytes);
        }
      });
    }
    return alone;
  }
  /// Chunks arrive in a few places in turn, and each is combined before another one comes to its place.
  void cut_into_chunks(transfer& t) {
    t.first_target = targets_.size();
    const std::size_t places = room_to_stream(t) / chunk_bytes();
    std::size_t place = 0;
    each_run(t, [&](std::byte* d, std::size_t n) {
      put_off_.each_source(d, n, [&](const std::byte* own, std::size_t m) {
        for (std::size_t done = 0; done < m; done += chunk_bytes()) {
          pieces_.push_back({staging_.data() + t.staged + place * chunk_bytes(), std::min(chunk_bytes(), m - done)});
          targets_.push_back({d + done, own + done});
          place = place + 1 < places ? place + 1 : 0;
        }
        d += m;
      });
      put_off_.forget(d - n, n);
    });
  }
  static void combine_piece(const transport::request& r, std::size_t number, std::size_t offset, const std::byte* data,
                            std::size_t bytes) noexcept {
    const arrival& a = *static_cast<const arrival*>(r.room);
    round_plan& plan = *a.plan;
    if (plan.failure_) return;
    try {
      const chunk_target& t = plan.targets_[a.first_target + number];
      plan.fold(t.to + offset, t.own + offset, data, bytes, a.where);
    } catch (...) {
      plan.failure_ = std::current_exception();
    }
  }

  const layouts* where_;
  const reducer* op_;
  short_vector<transfer> transfers_{};
  short_vector<transport::piece> pieces_{};
  short_vector<transport::request> requests_{};
  short_vector<chunk_target> targets_{};
  short_vector<arrival> arriving_{};
  std::exception_ptr failure_{};
  put_off_copies put_off_{};
  short_vector<transport::piece> copied_{};  // in this round, and put off
  bool copies_last_ = false;                 // until the sends have left
  cohort::detail::borrowed_buffer staging_{};
};

}  // namespace detail
}  // namespace cohort::collective
