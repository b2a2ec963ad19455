// SPDX-License-Identifier: BSL-1.0
// The judge of recorded histories (support/linearizability.hpp) is judged: it accepts what one object could have done,
// and refuses each kind of history that no such object could.
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../support/linearizability.hpp"
#include "../support/store_model.hpp"

namespace {

using harness::never;
using harness::store_action;
using history = std::vector<harness::recorded<harness::store_operation>>;
using result = std::optional<std::string>;

class story {
 public:
  story& did(std::int64_t from, std::int64_t to, store_action action, std::string first, result gave,
             std::string second = {}) {
    told_.push_back({from, to, {action, client_, std::move(first), std::move(second), false, std::move(gave)}});
    ++client_;
    return *this;
  }
  story& died(std::int64_t from, store_action action, std::string first = {}, std::string second = {}) {
    told_.push_back({from, never, {action, client_, std::move(first), std::move(second), true, std::nullopt}});
    if (action == store_action::pop) {
      told_.push_back({from, never, {store_action::give_back, client_, {}, {}, true, std::nullopt}});
    }
    ++client_;
    return *this;
  }
  [[nodiscard]] bool possible() const {
    const harness::linearization found = harness::find_linearization(harness::store_key_model{}, told_);
    CHECK_FALSE(found.gave_up);
    return found.exists;
  }

 private:
  history told_{};
  int client_ = 0;
};

}  // namespace

using enum harness::store_action;

TEST_CASE("linearizability: a register one call at a time") {
  CHECK(story().possible());
  CHECK(story().did(0, 1, set, "a", "").did(2, 3, get, "", "a").possible());
  CHECK(story().did(0, 1, try_get, "", std::nullopt).did(2, 3, set, "a", "").possible());
  CHECK_FALSE(story().did(0, 1, set, "a", "").did(2, 3, get, "", "b").possible());
  CHECK_FALSE(story().did(0, 1, set, "a", "").did(2, 3, try_get, "", std::nullopt).possible());
  CHECK_FALSE(story().did(0, 1, set, "a", "").did(2, 3, set, "b", "").did(4, 5, get, "", "a").possible());
  CHECK(story().did(0, 1, set, "a", "").did(2, 3, erase, "", "1").did(4, 5, try_get, "", std::nullopt).possible());
  CHECK_FALSE(story().did(0, 1, set, "a", "").did(2, 3, erase, "", "0").possible());
}

TEST_CASE("linearizability: calls that overlap may take effect in any order, others may not") {
  CHECK(story().did(0, 10, set, "a", "").did(1, 9, set, "b", "").did(11, 12, get, "", "a").possible());
  CHECK(story().did(0, 10, set, "a", "").did(1, 9, set, "b", "").did(11, 12, get, "", "b").possible());
  CHECK(story().did(0, 10, set, "a", "").did(1, 2, try_get, "", std::nullopt).did(3, 4, get, "", "a").possible());
  // What one has seen, another cannot unsee.
  CHECK_FALSE(story().did(0, 10, set, "a", "").did(1, 2, get, "", "a").did(3, 4, try_get, "", std::nullopt).possible());
  // Two readers that disagree about the order of two writers.
  CHECK_FALSE(story()
                  .did(0, 20, set, "a", "")
                  .did(0, 20, set, "b", "")
                  .did(1, 2, get, "", "a")
                  .did(3, 4, get, "", "b")
                  .did(5, 6, get, "", "a")
                  .possible());
  // At one and the same time is an overlap.
  CHECK(story().did(0, 5, set, "a", "").did(5, 6, try_get, "", std::nullopt).possible());
}

TEST_CASE("linearizability: a lost update is seen") {
  CHECK(story().did(0, 5, add, "1", "1").did(1, 6, add, "1", "2").did(7, 8, get, "", "2").possible());
  CHECK_FALSE(story().did(0, 5, add, "1", "1").did(1, 6, add, "1", "1").possible());
  CHECK_FALSE(story().did(0, 5, append, "ab", "2").did(1, 6, append, "cd", "2").possible());
  CHECK(story().did(0, 5, append, "ab", "2").did(1, 6, append, "cd", "4").did(7, 8, get, "", "abcd").possible());
  CHECK_FALSE(story().did(0, 5, append, "ab", "2").did(1, 6, append, "cd", "4").did(7, 8, get, "", "cdab").possible());
  CHECK_FALSE(
      story().did(0, 5, compare_set, "", "mine", "mine").did(1, 6, compare_set, "", "yours", "yours").possible());
  CHECK(story().did(0, 5, compare_set, "", "mine", "mine").did(1, 6, compare_set, "", "mine", "yours").possible());
}

TEST_CASE("linearizability: what a dead caller did may have happened, late or never, but not before it called") {
  CHECK(story().died(0, set, "a").did(5, 6, try_get, "", std::nullopt).possible());
  CHECK(story().died(0, set, "a").did(5, 6, get, "", "a").possible());
  CHECK(story().died(0, set, "a").did(5, 6, try_get, "", std::nullopt).did(7, 8, get, "", "a").possible());
  CHECK_FALSE(story().did(1, 2, get, "", "a").died(5, set, "a").possible());
  CHECK_FALSE(story().died(0, add, "1").did(1, 2, add, "1", "3").possible());  // and not twice
  CHECK(story().died(0, add, "1").died(0, add, "1").did(1, 2, add, "1", "3").possible());
}

TEST_CASE("linearizability: queues") {
  const auto two = [] { return story().did(0, 1, push, "a", "").did(2, 3, push, "b", ""); };
  CHECK(two().did(4, 5, pop, "", "a").did(6, 7, pop, "", "b").did(8, 9, try_pop, "", std::nullopt).possible());
  CHECK_FALSE(two().did(4, 5, pop, "", "b").possible());                                       // out of order
  CHECK_FALSE(two().did(4, 9, pop, "", "a").did(5, 8, pop, "", "a").possible());               // given twice
  CHECK_FALSE(two().did(4, 5, pop, "", "a").did(6, 7, try_pop, "", std::nullopt).possible());  // lost
  CHECK_FALSE(two().did(4, 5, pop, "", std::nullopt).possible());                              // waited beside an item
  CHECK_FALSE(two().did(4, 5, length, "", "1").possible());
  CHECK_FALSE(two().did(4, 5, pop, "", "c").possible());  // out of nothing
  CHECK(two().did(4, 5, check, "", "1").did(6, 7, erase, "", "1").did(8, 9, length, "", "0").possible());
  CHECK(story().did(0, 9, pop, "", "a").did(1, 2, push, "a", "").possible());        // it waited
  CHECK_FALSE(story().did(0, 1, pop, "", "a").did(2, 3, push, "a", "").possible());  // it foresaw
}

TEST_CASE("linearizability: an item on its way to a dead client comes back to the front, once, or went with it") {
  const auto dead = [] { return story().did(0, 1, push, "a", "").did(2, 3, push, "b", "").died(4, pop); };
  CHECK(dead().did(5, 6, pop, "", "a").did(7, 8, pop, "", "b").possible());
  CHECK(dead().did(5, 6, pop, "", "b").did(7, 8, pop, "", "a").possible());
  CHECK(dead().did(5, 6, pop, "", "b").did(7, 8, try_pop, "", std::nullopt).possible());
  CHECK_FALSE(dead().did(5, 6, try_pop, "", std::nullopt).possible());  // it can have had one only
  CHECK_FALSE(dead().did(5, 6, pop, "", "a").did(7, 8, pop, "", "b").did(9, 10, pop, "", "a").possible());
  CHECK_FALSE(dead().did(5, 6, pop, "", "b").did(7, 8, erase, "", "0").did(9, 10, pop, "", "a").possible());
}

TEST_CASE("linearizability: histories of an object that exists are accepted, and refused when one result is changed") {
  std::mt19937 random(17);
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  int changed = 0;
  for (int round = 0; round < 200; ++round) {
    // Each takes effect at its own moment; call and return are somewhere around it.
    const harness::store_key_model model;
    harness::store_key_state now = model.initial();
    history told;
    for (std::int64_t t = 0; t < 60; ++t) {
      harness::store_operation op;
      op.client = static_cast<int>(t);
      op.action = std::vector{set, try_get, append, erase, try_get}[static_cast<std::size_t>(pick(5))];
      op.first = "v" + std::to_string(t);
      op.pending = true;  // so that the step tells nothing
      const harness::store_key_state before = now;
      REQUIRE(model.step(now, op));
      op.pending = false;
      if (op.action == set) op.result = "";
      if (op.action == try_get) op.result = now.value;
      if (op.action == append) op.result = std::to_string(now.value->size());
      if (op.action == erase) op.result = before.value ? "1" : "0";
      told.push_back({10 * t - pick(30), 10 * t + pick(30), op});
    }
    REQUIRE(harness::find_linearization(model, told).exists);
    for (auto& each : told) {
      if (each.what.action != try_get) continue;
      each.what.result = "never written";
      CHECK_FALSE(harness::find_linearization(model, told).exists);
      ++changed;
      break;
    }
  }
  CHECK(changed > 100);
}

TEST_CASE("linearizability: a search that would take for ever says so") {
  history told;
  for (int i = 0; i < 40; ++i) told.push_back({0, 100, {add, i, "1", {}, false, std::to_string(i + 1)}});
  told.push_back({0, 100, {try_get, 40, {}, {}, false, "none of them"}});
  const harness::linearization found = harness::find_linearization(harness::store_key_model{}, told, 100);
  CHECK_FALSE(found.exists);
  CHECK(found.gave_up);
}
