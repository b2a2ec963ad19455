// SPDX-License-Identifier: BSL-1.0
// Of a few ways the fastest is found by trying, at little cost, and found again: the rules of detail/trials.hpp for any number of
// ways. unit/copy_choice has what a user of it sees.
#include <cohort/detail/trials.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <random>
#include <vector>

using cohort::detail::trial_plan;
using cohort::detail::trials;

namespace {

struct outcome {
  std::vector<std::size_t> ways;
  double time = 0;

  [[nodiscard]] int taken(std::size_t way, std::size_t from = 0) const {
    int n = 0;
    for (std::size_t i = from; i < ways.size(); ++i) n += ways[i] == way ? 1 : 0;
    return n;
  }
};

template <std::size_t Ways>
outcome run(trials<Ways>& t, int times, const trial_plan& plan, const std::array<float, Ways>& paces) {
  outcome all;
  for (int i = 0; i < times; ++i) {
    const std::size_t way = t.next(plan);
    t.took(way, paces[way], plan);
    all.ways.push_back(way);
    all.time += paces[way];
  }
  return all;
}

constexpr trial_plan plans[] = {
    {},
    {.trial = 16, .unsettled = 4, .run_in = 48, .look_rarely = 4096},
    {.trial = 4, .unsettled = 1, .run_in = 12},
    {.trial = 12, .unsettled = 4, .look_rarely = 4096},
    {.trial = 12, .unsettled = 4, .look_rarely = 4096, .memory = 32},
};

}  // namespace

TEST_CASE("the first way runs in, then each is tried, in turn") {
  for (const trial_plan& plan : plans) {
    trials<3> t;
    const outcome all = run(t, static_cast<int>(plan.run_in + 3 * plan.trial), plan, {1, 2, 3});
    for (std::size_t i = 0; i < all.ways.size(); ++i) {
      CHECK(all.ways[i] == (i < plan.run_in ? 0 : (i - plan.run_in) / plan.trial));
    }
  }
}

TEST_CASE("the way changes only at multiples of a trial") {
  for (const trial_plan& plan : plans) {
    trials<2> t;
    std::size_t before = 0;
    for (unsigned i = 0; i < 5000; ++i) {
      const std::size_t way = t.next(plan);
      if (i % plan.trial != 0) CHECK(way == before);
      before = way;
      // Which is faster changes all the time.
      t.took(way, (way == 0) == (i / 700 % 2 == 0) ? 1.0F : 2.0F, plan);
    }
  }
}

TEST_CASE("what runs in is not counted") {
  constexpr trial_plan plan{.trial = 4, .unsettled = 1, .run_in = 12};
  trials<2> t;
  for (unsigned i = 0; i < 200; ++i) {
    const std::size_t way = t.next(plan);
    if (i >= 20) CHECK(way == 0);
    if (i >= 39) break;
    t.took(way, way == 1 ? 1.0F : i < 13 ? 50.0F : 0.5F, plan);
  }
}

TEST_CASE("trials of a slower way cost little, the less often the slower it is, and are never given up") {
  for (const trial_plan& plan : plans) {
    for (const float slower : {1.1F, 1.5F, 3.0F, 10.0F}) {
      CAPTURE(slower);
      trials<2> t;
      const unsigned first = plan.run_in + 2 * plan.trial;
      run(t, static_cast<int>(first), plan, {1, slower});
      constexpr int many = 40000;
      const outcome all = run(t, many, plan, {1, slower});
      CHECK(all.time <= many * (1 + trials<2>::budget));
      CHECK(all.taken(1) > 0);
      // In the first few as well, but for one trial.
      trials<2> young;
      const outcome begun = run(young, 400, plan, {1, slower});
      const auto trial = static_cast<float>(plan.trial);
      CHECK(begun.time <= 400 * (1 + trials<2>::budget) + 2 * trial * (slower - 1));
    }
  }
}

TEST_CASE("what the first after another way take longer is a cost of trials too") {
  // As a rule all do; or the very first happen not to.
  for (const unsigned not_late : {0U, 3U}) {
    for (const trial_plan& plan : plans) {
      for (const float slower : {1.1F, 1.5F, 3.0F}) {
        for (const float late : {0.0F, 2.0F, 4.0F}) {
          CAPTURE(not_late);
          CAPTURE(slower);
          CAPTURE(late);
          // Of one trial, as long as many of the first are not the same.
          const float one =
              static_cast<float>(plan.trial) * (slower - 1) + 2 * static_cast<float>(plan.unsettled) * late;
          trials<2> t;
          std::size_t before = 0;
          unsigned since = 0;
          unsigned changes = 0;
          unsigned trials_of_slower = 0;
          float lost = 0;
          const auto lost_by = [&](unsigned turns) {
            for (unsigned i = 0; i < turns; ++i) {
              const std::size_t way = t.next(plan);
              if (way != before) {
                since = 0;
                ++changes;
              }
              if (way > before) ++trials_of_slower;
              before = way;
              const bool is_late = since++ < plan.unsettled && changes >= not_late;
              const float extra = (way == 0 ? 0 : slower - 1) + (is_late ? late : 0.0F);
              t.took(way, 1 + extra, plan);
              lost += extra;
            }
            return lost;
          };
          const unsigned few = plan.run_in + 50 * plan.trial;
          CHECK(lost_by(few) <= static_cast<float>(few) * trials<2>::budget + 2 * one);
          constexpr unsigned many = 40000;
          CHECK(lost_by(many) <= static_cast<float>(few + many) * trials<2>::budget + 2 * one);
          CHECK(trials_of_slower > 2);
        }
      }
    }
  }
}

TEST_CASE("which one is faster is found again, from either") {
  for (const trial_plan& plan : plans) {
    trials<2> t;
    run(t, 5000, plan, {1, 2});
    const outcome second = run(t, 20000, plan, {2, 1});
    CHECK(second.taken(1, 10000) > 9500);
    const outcome first = run(t, 20000, plan, {1, 1.5F});
    CHECK(first.taken(0, 10000) > 9500);
  }
}

TEST_CASE("with a longer memory ways that differ by less than what each takes varies do not take turns") {
  constexpr trial_plan plan{.trial = 12, .unsettled = 4, .look_rarely = 4096, .memory = 32};
  for (const std::size_t faster : {0U, 1U}) {
    CAPTURE(faster);
    std::mt19937 random(7);
    std::exponential_distribution<float> more(1);
    trials<2> t;
    int taken = 0;
    for (int i = 0; i < 200000; ++i) {
      const std::size_t way = t.next(plan);
      t.took(way, (way == faster ? 1.0F : 1.15F) * (1 + more(random)), plan);
      taken += way == faster ? 1 : 0;
    }
    CHECK(taken > 180000);
  }
}

TEST_CASE("the faster way is found among few, of which some take longer for another reason") {
  // As of all_to_alls of 4 MiB: what is quick differs by a tenth, and a third takes longer by half of that on average.
  constexpr trial_plan plan{};
  for (const std::size_t faster : {0U, 1U}) {
    CAPTURE(faster);
    std::mt19937 random(7);
    std::bernoulli_distribution disturbed(0.33);
    std::exponential_distribution<float> more(2);
    int taken = 0;
    for (int start = 0; start < 1000; ++start) {
      trials<2> t;
      for (int i = 0; i < 200; ++i) {
        const std::size_t way = t.next(plan);
        t.took(way, (way == faster ? 1.0F : 1.1F) * (1 + (disturbed(random) ? more(random) : 0.0F)), plan);
        taken += way == faster ? 1 : 0;
      }
    }
    CHECK(taken > 160000);
  }
}

TEST_CASE("a slower way that has become the fastest by far is taken when it has been tried once more") {
  for (const trial_plan& plan : plans) {
    trials<2> t;
    run(t, 40000, plan, {1, 1.5F});
    int tried = 0;
    std::size_t way = 0;
    for (int i = 0; i < 40000 && tried <= static_cast<int>(plan.trial); ++i) {
      way = t.next(plan);
      t.took(way, way == 0 ? 1.0F : 0.6F, plan);
      tried += way == 1 ? 1 : 0;
    }
    CHECK(tried == static_cast<int>(plan.trial) + 1);
    for (int i = 0; i < 100; ++i) {
      CHECK(t.next(plan) == 1);
      t.took(1, 0.6F, plan);
    }
  }
}

TEST_CASE(
    "when the fastest takes much less or more than it did, the others are tried again soon, where that is wanted") {
  // As of messages of 64 KiB: one at a time, and then many in a window.
  for (trial_plan plan : plans) {
    plan.another_matter = 1.5F;
    for (const float other_matter : {0.25F, 4.0F}) {
      CAPTURE(plan.trial);
      CAPTURE(other_matter);
      trials<3> t;
      run(t, 40000, plan, {1, 1.3F, 1.2F});
      const outcome all =
          run(t, static_cast<int>(40 * plan.trial), plan, {other_matter, 0.7F * other_matter, 1.2F * other_matter});
      CHECK(all.ways.back() == 1);
      CHECK(all.taken(1) > static_cast<int>(10 * plan.trial));
    }
  }
}

TEST_CASE("trials cost little too where what the fastest takes differs from one while to the next") {
  for (trial_plan plan : plans) {
    for (const float another_matter : {1.5F, plan.another_matter}) {
      plan.another_matter = another_matter;
      for (const unsigned length : {10U, 100U, 1000U, 10000U}) {
        CAPTURE(plan.trial);
        CAPTURE(length);
        CAPTURE(another_matter);
        trials<2> t;
        float lost = 0;
        float needed = 0;
        for (unsigned i = 0; i < 100000; ++i) {
          const float pace = i / length % 2 == 0 ? 1.0F : 3.0F;
          const std::size_t way = t.next(plan);
          t.took(way, way == 0 ? pace : 1.4F * pace, plan);
          needed += pace;
          if (way == 1) lost += 0.4F * pace;
        }
        CHECK(lost <= needed * trials<2>::budget);
      }
    }
  }
}
