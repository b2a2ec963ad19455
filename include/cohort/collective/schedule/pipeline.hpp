// SPDX-License-Identifier: BSL-1.0
// Broadcast and reduce of large vectors as a pipeline over the circulant graph (Träff, "Optimal Broadcast Schedules in
// Logarithmic Time"): every rank sends and receives one segment in every round, whatever the number of ranks.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/collective/schedule/circulant.hpp>

#include <array>
#include <cstddef>

namespace cohort::collective {

/// Which segment a rank receives and which it sends in every round of a broadcast, found by arithmetic on ranks counted
/// from the root. The pattern repeats every levels() rounds with segments that are levels() higher.
///
/// Each rank r > 0 has a base level: the lowest skip in the greedy sum of skips that makes r. The base is the segment
/// that r is the first to get, along the path of its sum. In level k it receives from r - skip(k) the newest segment
/// that the ranks between r - skip(k+1) and r - skip(k) are the first to get and that it has not been promised yet.
///
/// Cost: O(log^3 size) to construct, no memory beyond the object
class circulant_pattern {
 public:
  constexpr circulant_pattern(int size, int from_root) noexcept : size_(size), levels_(ceil_log2(size)) {
    for (int k = 0; k <= levels_; ++k) skip_[index(k)] = circulant_skip(size, k);
    if (from_root != 0) received_ = promised(from_root);
    for (int k = 0; k < levels_; ++k) {
      const int above = wrap(from_root + skip_[index(k)], size);
      if (above != 0) sent_[index(k)] = promised(above)[index(k)];
    }
  }

  [[nodiscard]] constexpr int levels() const noexcept { return levels_; }
  [[nodiscard]] constexpr int skip(int k) const noexcept { return skip_[index(k)]; }
  [[nodiscard]] constexpr int received(int k) const noexcept { return received_[index(k)]; }
  [[nodiscard]] constexpr int sent(int k) const noexcept { return sent_[index(k)]; }

 private:
  using per_level = std::array<int, 32>;

  [[nodiscard]] static constexpr std::size_t index(int k) noexcept { return static_cast<std::size_t>(k); }

  /// The base level of rank r; levels() for the root, which needs nothing.
  [[nodiscard]] constexpr int base(int r) const noexcept {
    int level = levels_;
    for (int k = levels_ - 1; r > 0; --k) {
      if (skip_[index(k)] > r) continue;
      r -= skip_[index(k)];
      level = k;
    }
    return level;
  }

  /// The base levels of the ranks first .. last as a set of bits, where rank 0 counts as `zero`. The ranks from one
  /// skip to the next look like the lowest ranks again, shifted by the skip.
  [[nodiscard]] constexpr unsigned long long bases(int first, int last, int zero) const noexcept {
    unsigned long long found = first <= 0 && last >= 0 ? 1ULL << zero : 0;
    for (int k = levels_ - 1; k >= 0; --k) {
      const int skip = skip_[index(k)];
      const int low = first > skip ? first : skip;
      const int high = last < skip_[index(k + 1)] - 1 ? last : skip_[index(k + 1)] - 1;
      if (low > high) continue;
      if (low > skip) {
        found |= bases(low - skip, high - skip, k);
        continue;
      }
      found |= 1ULL << k;
      for (int e = 0; e < k && skip_[index(e)] <= high - skip; ++e) found |= 1ULL << e;
    }
    return found;
  }

  /// The same for first .. last anywhere in (-size, size), as ranks modulo size.
  [[nodiscard]] constexpr unsigned long long bases_around(int first, int last) const noexcept {
    if (first >= 0) return bases(first, last, levels_);
    if (last < 0) return bases(first + size_, last + size_, levels_);
    return bases(first + size_, size_ - 1, levels_) | bases(0, last, levels_);
  }

  /// What rank r > 0 receives in each level of the first pass; negative segments do not exist yet.
  [[nodiscard]] constexpr per_level promised(int r) const noexcept {
    const int own = base(r);
    unsigned long long taken = 1ULL << own;
    per_level segments{};
    for (int k = 0; k < levels_; ++k) {
      const unsigned long long open = bases_around(r - skip_[index(k + 1)] + 1, r - skip_[index(k)]) & ~taken;
      int newest = levels_;
      while (newest >= 0 && ((open >> newest) & 1) == 0) --newest;
      if (newest < 0) newest = base(wrap(r - skip_[index(k + 1)], size_));
      taken |= 1ULL << newest;
      // The root's own level stands for the segment that r is the first to get.
      segments[index(k)] = newest == levels_ ? own : newest - levels_;
    }
    return segments;
  }

  int size_;
  int levels_;
  per_level skip_{};
  per_level received_{};
  per_level sent_{};
};

/// The pipeline as a broadcast sees it: who gets which segment from whom.
struct circulant_pipeline {
  int size;
  int rank;
  int root;
  int segments;
  circulant_pattern pattern;

  constexpr circulant_pipeline(int p, int r, int from, int s) noexcept
      : size(p), rank(r), root(from), segments(s), pattern(p, wrap(r - from, p)) {}

  [[nodiscard]] constexpr int rounds() const noexcept { return size > 1 ? segments - 1 + pattern.levels() : 0; }

  /// What happens to this rank in a round: segment -1 means nothing.
  struct step {
    int to = 0;
    int sent = -1;
    int from = 0;
    int received = -1;
  };
  [[nodiscard]] constexpr step at(int k) const noexcept {
    // The first rounds of the first pass are left out, so that the last pass is a whole one.
    const int left_out = wrap(1 - segments, pattern.levels());
    const int level = (k + left_out) % pattern.levels();
    const int pass = k + left_out - level - left_out;
    step now{wrap(rank + pattern.skip(level), size), -1, wrap(rank - pattern.skip(level), size), -1};
    if (now.to != root) now.sent = existing(pattern.sent(level) + pass);
    if (rank != root) now.received = existing(pattern.received(level) + pass);
    return now;
  }

 private:
  [[nodiscard]] constexpr int existing(int segment) const noexcept {
    if (segment < 0) return -1;
    return segment < segments ? segment : segments - 1;
  }
};

/// Circulant pipeline from the root; with one segment it is a binomial tree.
///
/// Cost: segments - 1 + ceil(log2 size) rounds of one segment, which is the fewest possible
struct circulant_broadcast : circulant_pipeline {
  constexpr circulant_broadcast(int p, int r, int from, int s) noexcept : circulant_pipeline(p, r, from, s) {}

  [[nodiscard]] constexpr int blocks() const noexcept { return segments; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const step now = at(k);
    if (now.sent >= 0) sink.send(now.to, region{buffer::out, now.sent, 1});
    if (now.received >= 0) sink.receive(now.from, region{buffer::out, now.received, 1});
  }
};

/// The same pipeline run backwards: every rank combines what arrives and passes each segment towards the root once.
///
/// Order: that of the graph, so the functor must commute
/// Cost:  segments - 1 + ceil(log2 size) rounds of one segment
struct circulant_reduce : circulant_pipeline {
  constexpr circulant_reduce(int p, int r, int to, int s) noexcept : circulant_pipeline(p, r, to, s) {}

  [[nodiscard]] constexpr int blocks() const noexcept { return segments; }
  [[nodiscard]] constexpr int work_blocks() const noexcept { return 0; }

  template <schedule_sink Sink>
  constexpr void round(int k, Sink& sink) const {
    const step now = at(rounds() - 1 - k);
    if (now.received >= 0) sink.send(now.from, region{buffer::out, now.received, 1});
    if (now.sent >= 0) sink.receive_reduce(now.to, region{buffer::out, now.sent, 1}, side::right);
  }
};

static_assert(schedule<circulant_broadcast> && schedule<circulant_reduce>);

}  // namespace cohort::collective
