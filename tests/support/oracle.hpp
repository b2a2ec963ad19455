// SPDX-License-Identifier: BSL-1.0
// The common ground of the oracle tests: one rank's checker, buffers with canaries around them, and a count of what
// was checked. The checks themselves are in the oracle_*.hpp beside it, written once for every backend as coroutines
// that throw `oracle::wrong`; each of the coroutines named check_... starts exactly one collective.
#pragma once

#include "oracle_values.hpp"

#include <cohort/communicator.hpp>
#include <cohort/task.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace oracle {

using cohort::communicator;
using cohort::operation_kind;
using cohort::task;
using cohort::collective::algorithm;

/// Something that a collective did is not what the oracle says.
struct wrong : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A buffer that notices when something around it, or in it, is written that should not be.
template <class T>
class guarded {
 public:
  explicit guarded(std::size_t count) : bytes_(count * sizeof(T) + 2 * margin, filling), count_(count) {}
  explicit guarded(std::span<const T> values) : guarded(values.size()) { assign(values); }
  explicit guarded(const std::vector<T>& values) : guarded(std::span<const T>(values)) {}

  void assign(std::span<const T> values) {
    if (!values.empty()) std::memcpy(bytes_.data() + margin, values.data(), values.size_bytes());
  }

  [[nodiscard]] T* data() noexcept { return reinterpret_cast<T*>(bytes_.data() + margin); }
  [[nodiscard]] const T* data() const noexcept { return reinterpret_cast<const T*>(bytes_.data() + margin); }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T* begin() noexcept { return data(); }
  [[nodiscard]] T* end() noexcept { return data() + count_; }
  [[nodiscard]] const T* begin() const noexcept { return data(); }
  [[nodiscard]] const T* end() const noexcept { return data() + count_; }
  [[nodiscard]] std::span<T> part(std::size_t first, std::size_t count) noexcept { return {data() + first, count}; }

  [[nodiscard]] bool margins_intact() const noexcept {
    return filled(bytes_.data(), margin) && filled(bytes_.data() + bytes_.size() - margin, margin);
  }
  /// Nothing has been written to the elements from `first` on.
  [[nodiscard]] bool untouched(std::size_t first = 0) const noexcept {
    const std::size_t before = margin + first * sizeof(T);
    return filled(bytes_.data() + before, bytes_.size() - before);
  }

 private:
  static constexpr std::size_t margin = 64;
  static constexpr std::byte filling{0xa5};
  COHORT_TEST_NOT_SANITIZED static bool filled(const std::byte* at, std::size_t size) noexcept {
    for (std::size_t i = 0; i < size; ++i) {
      if (at[i] != filling) return false;
    }
    return true;
  }

  std::vector<std::byte> bytes_;
  std::size_t count_;
};

/// How often each schedule was checked.
class tally {
 public:
  void add(operation_kind kind, algorithm how) { ++counts_[{kind, how}]; }
  void add_alone() { ++alone_; }
  [[nodiscard]] std::size_t alone() const noexcept { return alone_; }
  void merge(const tally& other) {
    for (const auto& [key, count] : other.counts_) counts_[key] += count;
    alone_ += other.alone_;
    saw_world_of(other.largest_world_);
  }
  /// A world of one carries some operations out where they are called, by no algorithm.
  void saw_world_of(int ranks) { largest_world_ = std::max(largest_world_, ranks); }
  [[nodiscard]] bool only_worlds_of_one() const noexcept { return largest_world_ == 1; }
  [[nodiscard]] std::size_t of(operation_kind kind, algorithm how) const {
    const auto at = counts_.find({kind, how});
    return at == counts_.end() ? 0 : at->second;
  }
  [[nodiscard]] std::size_t total() const {
    return std::accumulate(counts_.begin(), counts_.end(), alone_,
                           [](std::size_t sum, const auto& each) { return sum + each.second; });
  }

 private:
  std::map<std::pair<operation_kind, algorithm>, std::size_t> counts_{};
  std::size_t alone_ = 0;
  int largest_world_ = 0;
};

/// One rank, what it compares, and how it says that something is wrong.
template <class Backend>
class checker {
 public:
  checker(communicator<Backend>& world, tally& counts) : world_(&world), counts_(&counts) {
    counts.saw_world_of(size());
  }

  [[nodiscard]] communicator<Backend>& world() const noexcept { return *world_; }
  [[nodiscard]] int rank() const noexcept { return world_->rank(); }
  [[nodiscard]] int size() const noexcept { return world_->size(); }
  [[nodiscard]] std::size_t ranks() const noexcept { return static_cast<std::size_t>(size()); }
  [[nodiscard]] std::size_t own() const noexcept { return static_cast<std::size_t>(rank()); }

  [[noreturn]] void fail(const std::string& what, const std::string& found) const {
    throw wrong(what + ", rank " + std::to_string(rank()) + " of " + std::to_string(size()) + ": " + found);
  }
  void expect(bool condition, const std::string& what, const char* expected) const {
    if (!condition) fail(what, std::string("expected ") + expected);
  }

  /// Counts an operation that has just been called, and makes sure that the algorithm that is forced carries it out.
  template <class T>
  algorithm called(const cohort::operation<T>& op, std::string& what, bool commutative = true) const {
    const auto& state = *world_->calls().state();
    const bool numbered = state.last_entered() != seen_;
    seen_ = state.last_entered();
    std::optional<cohort::transport::signature> call;
    if (const cohort::call* const record = op.record(); record != nullptr) {
      call = record->signature();
    } else if (numbered) {  // carried out where it was called, in memory that the ranks share
      call = state.recent(seen_);
    }
    if (!call) {  // a message that left at once, or anything in a world of one; or refused: awaiting it says why
      counts_->add_alone();
      return {};
    }
    const operation_kind kind = call->kind;
    const algorithm how = call->algorithm;
    if (const auto wanted = world_->algorithms().override_of(kind)) {
      const bool free = commutative && !world_->calls().state()->ordered;
      const bool possible = free || !cohort::collective::find_implementation(kind, *wanted)->needs_commutative;
      if (possible && how != *wanted) fail(what, "carried out by " + std::string(to_string(how)));
    }
    counts_->add(kind, how);
    what += " by " + std::string(to_string(how));
    return how;
  }

  /// The same bytes.
  template <class T>
  void same(const std::string& what, std::span<const T> found, std::span<const T> expected) const {
    if (found.size() != expected.size()) {
      fail(what, std::to_string(found.size()) + " elements, expected " + std::to_string(expected.size()));
    }
    if (found.empty() || std::memcmp(found.data(), expected.data(), found.size_bytes()) == 0) return;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (std::memcmp(&found[i], &expected[i], sizeof(T)) == 0) continue;
      fail(what, "element " + std::to_string(i) + " of " + std::to_string(found.size()) + " is " + text_of(found[i]) +
                     ", expected " + text_of(expected[i]));
    }
  }
  template <class T>
  void holds(const std::string& what, const guarded<T>& found, std::span<const T> expected) const {
    same(what, std::span<const T>(found.data(), found.size()), expected);
    expect(found.margins_intact(), what, "nothing to be written outside the buffer");
  }
  template <class T>
  void unchanged(const std::string& what, const guarded<T>& input, std::span<const T> expected) const {
    holds(what + ", the input after it", input, expected);
  }
  template <class T>
  void untouched(const std::string& what, const guarded<T>& buffer) const {
    expect(buffer.untouched(), what, "the buffer that this rank does not need to stay as it was");
  }

 private:
  mutable std::int64_t seen_ = -1;  // the last collective that was counted
  communicator<Backend>* world_;
  tally* counts_;
};

/// The counts that a matrix goes through; `large` is left out if it is 0.
[[nodiscard]] inline std::vector<std::size_t> counts_for(int ranks, std::size_t large) {
  const auto p = static_cast<std::size_t>(ranks);
  std::vector<std::size_t> counts{0, 1, p - 1, p, p + 1};
  if (large > 0) counts.push_back(large);
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

/// Every root; under a sanitizer the first, the last and one between.
[[nodiscard]] inline std::vector<int> all_roots(int ranks) {
  std::vector<int> roots(static_cast<std::size_t>(ranks));
  std::iota(roots.begin(), roots.end(), 0);
  if (harness::sanitized && ranks > 3) return {0, ranks / 2, ranks - 1};
  return roots;
}

/// Whether the ranks of this process's world see the same memory: one algorithm needs that.
[[nodiscard]] inline bool& ranks_share_memory() noexcept {
  static bool yes = false;
  return yes;
}

/// Whether the ranks of this process's world are on several hosts, with several on some of them.
[[nodiscard]] inline bool& ranks_span_hosts() noexcept {
  static bool yes = false;
  return yes;
}

/// Whether the backend under test has collectives of its own, which are then checked like any algorithm.
inline bool has_natives = false;

/// Every algorithm of an operation.
[[nodiscard]] inline std::vector<algorithm> algorithms_of(operation_kind kind) {
  std::vector<algorithm> all;
  for (const auto& each : cohort::collective::implementations) {
    if (each.algorithm == algorithm::shared_memory && !ranks_share_memory()) continue;
    if (each.algorithm == algorithm::hierarchical && !ranks_span_hosts()) continue;
    if (each.operation == kind) all.push_back(each.algorithm);
  }
  if (has_natives && cohort::collective::find_implementation(kind, algorithm::native) != nullptr) {
    all.push_back(algorithm::native);
  }
  return all;
}

/// "broadcast of 5 int32".
template <class T>
[[nodiscard]] std::string title(const char* operation, std::size_t count, const char* form = "") {
  return std::string(operation) + form + " of " + std::to_string(count) + " " + cohort::element_type_name<T>();
}

/// All ranks have the same number, which stands for a result: they have the same bits.
template <class Backend>
task<> expect_same_everywhere(checker<Backend>& c, std::uint64_t mine, std::string what) {
  auto op = c.world().all_gather(mine);
  const std::vector<std::uint64_t> all = co_await op;
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r] != mine) c.fail(what, "the bits differ from those of rank " + std::to_string(r));
  }
}

[[nodiscard]] COHORT_TEST_NOT_SANITIZED inline std::uint64_t digest_of(const std::byte* bytes, std::size_t size,
                                                                       std::uint64_t h) {
  for (std::size_t i = 0; i < size; i += 8) {
    std::uint64_t chunk = 0;
    if (i + 8 <= size) __builtin_memcpy(&chunk, bytes + i, 8);
    else std::memcpy(&chunk, bytes + i, size - i);
    h = mix(h ^ chunk);
  }
  return h;
}
template <class T>
[[nodiscard]] std::uint64_t digest(std::span<const T> values) {
  return digest_of(reinterpret_cast<const std::byte*>(values.data()), values.size_bytes(), values.size());
}

}  // namespace oracle
