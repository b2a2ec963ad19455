// SPDX-License-Identifier: BSL-1.0
// How much of a long vector goes over in one step of a window: whole elements, no more than there is room for, and something.
#include <doctest/doctest.h>

#include <cohort/collective/shared/combine.hpp>
#include <cohort/collective/shared/step_bytes.hpp>

#include <cstddef>
#include <initializer_list>
#include <vector>

namespace {

using namespace cohort::collective;

std::vector<std::size_t> sizes_to(std::size_t most) {
  std::vector<std::size_t> all{1, 3, 7, 12, 4097, 100000, 262143, 262145, 300000, 524287};
  for (std::size_t n = 1; n <= most; n *= 2) all.push_back(n);
  return all;
}

constexpr std::initializer_list<std::size_t> capacities{std::size_t{128} << 10, std::size_t{512} << 10,
                                                        std::size_t{1} << 20};

TEST_CASE("a step of a reduce_scatter is of whole elements, for which there is room") {
  for (const std::size_t capacity : capacities) {
    for (const std::size_t ranks : {2U, 3U, 4U, 16U, 64U, 1000U}) {
      for (const std::size_t element : sizes_to(capacity)) {
        CAPTURE(capacity);
        CAPTURE(ranks);
        CAPTURE(element);
        const std::size_t chunk = reduce_scatter_chunk(capacity, ranks, element);
        CHECK(chunk % element == 0);
        CHECK(chunk * ranks <= capacity);
        CHECK((chunk > 0) == (element <= capacity / ranks));
      }
    }
  }
}

TEST_CASE("a step of what is given is of whole lines, and of one rank's part") {
  for (const std::size_t bytes : sizes_to(std::size_t{1} << 26)) {
    for (const bool on_cores : {false, true}) {
      for (const std::size_t step : {step_of_giver(bytes, on_cores), step_of_taker(bytes),
                                     step_of_both(bytes, on_cores), step_for_one(bytes, on_cores)}) {
        CHECK(step > 0);
        CHECK(step % 64 == 0);
        CHECK(2 * step <= std::size_t{1} << 20);
      }
    }
    for (const int ranks : {2, 3, 8, 100}) {
      for (const std::size_t capacity : capacities) {
        const std::size_t step = step_of_vectors(bytes, capacity, ranks);
        CHECK(step > 0);
        CHECK(step <= capacity);
      }
    }
  }
}

}  // namespace
