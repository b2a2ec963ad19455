// SPDX-License-Identifier: BSL-1.0
// A queue that keeps its memory: the same elements as of a std::deque, and none of its blocks.
#include <doctest/doctest.h>

#include <cohort/detail/fifo.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <iterator>
#include <memory>
#include <random>

TEST_CASE("a fifo has what a deque has, whatever is put in and taken out") {
  std::mt19937 random(11);
  cohort::detail::fifo<std::unique_ptr<int>> queue;
  std::deque<int> model;
  int next = 0;
  for (int step = 0; step < 20000; ++step) {
    // Now more is put in, now more is taken out.
    const bool put = random() % 8 < (step / 500 % 2 == 0 ? 5U : 3U);
    if (put) {
      queue.push_back(std::make_unique<int>(next));
      model.push_back(next++);
    } else if (!model.empty()) {
      REQUIRE(*queue.front() == model.front());
      const std::unique_ptr<int> taken = queue.pop_front();
      REQUIRE(*taken == model.front());
      model.pop_front();
    }
    REQUIRE(queue.empty() == model.empty());
    REQUIRE(queue.size() == model.size());
    REQUIRE(static_cast<std::size_t>(std::distance(queue.begin(), queue.end())) == model.size());
    if (!model.empty()) {
      const std::size_t any = random() % model.size();
      REQUIRE(*queue[any] == model[any]);
    }
  }
}

TEST_CASE("a fifo that stays short stays where it is") {
  cohort::detail::fifo<int> queue;
  for (int i = 0; i < 3; ++i) queue.push_back(i);
  for (int i = 0; i < 1000; ++i) queue.push_back(queue.pop_front());  // until it has what room it needs
  const int* lowest = queue.begin();
  const int* highest = queue.end();
  for (int i = 0; i < 100000; ++i) {
    queue.push_back(queue.pop_front());
    lowest = std::min<const int*>(lowest, queue.begin());
    highest = std::max<const int*>(highest, queue.end());
  }
  CHECK(queue.size() == 3);
  CHECK(highest - lowest <= 16);
}
