// SPDX-License-Identifier: BSL-1.0
#include <doctest/doctest.h>
#include <cohort/transport/paying_look.hpp>

#include <random>

using cohort::transport::paying_look;

namespace {

/// How many of so many calls look, of which so many in a hundred come in time.
int looks_of(paying_look& p, int calls, unsigned in_hundred) {
  std::mt19937 any(3);
  int looks = 0;
  for (int i = 0; i < calls; ++i) {
    if (!p.worth_it()) continue;
    ++looks;
    p.came(any() % 100 < in_hundred);
  }
  return looks;
}

}  // namespace

TEST_CASE("looks are made while many of them pay") {
  paying_look p;
  CHECK(looks_of(p, 100'000, 100) == 100'000);
  CHECK(looks_of(p, 100'000, 30) > 99'000);
}

TEST_CASE("looks that do not pay are given up, and tried again now and then") {
  paying_look p;
  const int calls = 100 * static_cast<int>(paying_look::rest);
  const int looks = looks_of(p, calls, 0);
  CHECK(looks < calls / 20);
  CHECK(looks > 90 * paying_look::tries);
  CHECK(looks_of(p, calls, 100) > calls - static_cast<int>(paying_look::rest));
  CHECK(looks_of(p, calls, 5) < calls / 10);
}
