// SPDX-License-Identifier: BSL-1.0
// What the ranks of the failure tests tell their parent, and how the parent reads it: one line for each error that an
// operation ended with, with the time at which it was known.
#pragma once

#include "../support/processes.hpp"
#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/mman.h>

namespace faults {

/// Milliseconds of a clock that all processes of a host share.
[[nodiscard]] inline std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// --- in the ranks

inline void say(const char* what) {
  std::printf("%s at %lld\n", what, static_cast<long long>(now_ms()));
  std::fflush(stdout);
}

inline void say(const cohort::error& e) {
  std::printf("error %d %d %lld %lld %s|%s\n", e.code().value(), e.peer(), static_cast<long long>(e.sequence()),
              static_cast<long long>(now_ms()), e.operation().c_str(), e.what());
  std::fflush(stdout);
}

/// Awaits one operation; false after an error, which is told.
template <class T>
cohort::task<bool> tell(cohort::operation<T>& op) {
  std::optional<cohort::error> failure;
  try {
    co_await op;
  } catch (const cohort::error& e) {
    failure.emplace(e);
  }
  if (failure) say(*failure);
  co_return !failure;
}

/// A value that all ranks of a test share, made before they are forked.
template <class T>
class shared {
 public:
  shared() {
    void* const memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
    value_ = ::new (memory) T{};
  }
  shared(const shared&) = delete;
  shared& operator=(const shared&) = delete;
  ~shared() { ::munmap(value_, sizeof(T)); }
  [[nodiscard]] T& operator*() const noexcept { return *value_; }
  [[nodiscard]] T* operator->() const noexcept { return value_; }

 private:
  T* value_ = nullptr;
};

/// Where ranks wait for each other without the library, as often as they like: who passes knows that everybody has
/// arrived.
///
/// Needs: made before the ranks are forked
class meeting_point {
 public:
  explicit meeting_point(int ranks) : ranks_(ranks) {}
  void arrive_and_wait() const {
    const int mine = arrived_->fetch_add(1);
    const int all = (mine / ranks_ + 1) * ranks_;
    while (arrived_->load() < all) ::sched_yield();
  }

 private:
  int ranks_;
  shared<std::atomic<int>> arrived_{};
};

// --- in the parent

struct told_error {
  cohort::errc code{};
  int peer = -1;
  std::int64_t sequence = -1;
  std::int64_t at_ms = 0;
  std::string operation{};
  std::string text{};
};

[[nodiscard]] inline std::vector<told_error> errors_of(const harness::rank_result& r) {
  std::vector<told_error> all;
  for (std::size_t at = 0; at < r.out.size();) {
    const std::size_t end = std::min(r.out.find('\n', at), r.out.size());
    const std::string line = r.out.substr(at, end - at);
    at = end + 1;
    int code = 0;
    int peer = 0;
    long long sequence = 0;
    long long ms = 0;
    int used = 0;
    if (std::sscanf(line.c_str(), "error %d %d %lld %lld %n", &code, &peer, &sequence, &ms, &used) != 4) continue;
    told_error e;
    e.code = static_cast<cohort::errc>(code);
    e.peer = peer;
    e.sequence = sequence;
    e.at_ms = ms;
    const std::size_t bar = line.find('|');
    e.operation = line.substr(static_cast<std::size_t>(used), bar - static_cast<std::size_t>(used));
    e.text = line.substr(bar + 1);
    all.push_back(std::move(e));
  }
  return all;
}

/// When a rank said `what`; -1 if it did not.
[[nodiscard]] inline std::int64_t time_of(const harness::rank_result& r, const std::string& what) {
  const std::size_t at = r.out.find(what + " at ");
  return at == std::string::npos ? -1 : std::atoll(r.out.c_str() + at + what.size() + 4);
}

using harness::contains;

struct expected_failure {
  cohort::errc code{};
  std::vector<int> culprits{};   ///< any of them; empty: nobody in particular
  std::string operation{};       ///< empty: whichever the rank was in
  std::vector<std::string> words{};  ///< in the text of every survivor
};

/// Checks one survivor: its pending operation ended with one error, the next call was refused with the same cause, and
/// nothing else went wrong.
///
/// Needs: the rank prints its errors with `tell` and makes one more call after the first of them
inline void check_survivor(const harness::rank_result& r, const expected_failure& expected) {
  INFO(harness::describe(r));
  CHECK(r.exit_code == 0);
  const std::vector<told_error> errors = errors_of(r);
  REQUIRE(errors.size() == 2);
  const told_error& first = errors[0];
  const told_error& later = errors[1];
  CHECK(static_cast<int>(first.code) == static_cast<int>(expected.code));
  if (!expected.operation.empty()) CHECK(first.operation == expected.operation);
  CHECK(contains(first.text, first.operation));
  if (first.sequence >= 0) CHECK(contains(first.text, first.operation + " #" + std::to_string(first.sequence)));
  if (!expected.culprits.empty()) {
    const bool named = std::find(expected.culprits.begin(), expected.culprits.end(), first.peer) != expected.culprits.end();
    CHECK(named);
    CHECK(contains(first.text, "rank " + std::to_string(first.peer)));
  }
  for (const std::string& word : expected.words) CHECK(contains(first.text, word));

  CHECK(static_cast<int>(later.code) == static_cast<int>(first.code));
  CHECK(contains(later.text, later.operation + " on 'world' refused on rank " + std::to_string(r.rank)));
  CHECK(later.peer == first.peer);
  const std::size_t cause = later.text.find("first cause: ");
  REQUIRE(cause != std::string::npos);
  CHECK(contains(first.text, later.text.substr(cause + 13)));
  // At once: no timeout of any kind may have passed.
  CHECK(later.at_ms - first.at_ms < 2000);
}

/// All ranks but `gone` are checked as survivors.
inline void check_survivors(const std::vector<harness::rank_result>& ranks, const std::vector<int>& gone,
                            const expected_failure& expected) {
  for (const harness::rank_result& r : ranks) {
    if (std::find(gone.begin(), gone.end(), r.rank) == gone.end()) check_survivor(r, expected);
  }
}

/// How long after `what` was said by `victim` the slowest survivor knew.
[[nodiscard]] inline std::int64_t slowest_ms(const std::vector<harness::rank_result>& ranks, int victim, const std::string& what) {
  const std::int64_t began = time_of(ranks[static_cast<std::size_t>(victim)], what);
  REQUIRE(began >= 0);
  std::int64_t slowest = -1;
  for (const harness::rank_result& r : ranks) {
    const std::vector<told_error> errors = errors_of(r);
    if (r.rank != victim && !errors.empty()) slowest = std::max(slowest, errors[0].at_ms - began);
  }
  return slowest;
}

}  // namespace faults
