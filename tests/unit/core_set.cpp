// SPDX-License-Identifier: BSL-1.0
// The cores that ranks tell each other of.
#include <cohort/detail/core_set.hpp>

#include <doctest/doctest.h>

#include <sched.h>

#include <initializer_list>
#include <string>

using cohort::detail::core_set;

namespace {

core_set of(std::initializer_list<int> cores) {
  std::string bytes;
  for (const int c : cores) {
    const auto at = static_cast<std::size_t>(c) / 8;
    if (bytes.size() <= at) bytes.resize(at + 1);
    bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) | 1U << c % 8);
  }
  return core_set::decode(bytes);
}

}  // namespace

TEST_CASE("a thread's cores are those that the kernel gives it") {
  cpu_set_t before;
  CPU_ZERO(&before);
  REQUIRE(::sched_getaffinity(0, sizeof before, &before) == 0);
  CHECK(core_set::usable().count() == CPU_COUNT(&before));
  const int here = ::sched_getcpu();
  REQUIRE(here >= 0);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(here, &one);
  REQUIRE(::sched_setaffinity(0, sizeof one, &one) == 0);
  CHECK(core_set::usable() == of({here}));
  REQUIRE(::sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("what is told of cores is what is understood") {
  for (const core_set& each : {of({}), of({0}), of({7}), of({8}), of({0, 1, 63, 64, 1023}), core_set::usable()}) {
    CHECK(core_set::decode(each.encode()) == each);
  }
  CHECK(of({}).encode().empty());
  CHECK(of({9}).encode().size() == 2);
  CHECK(core_set::decode(std::string(200, '\xff')).count() == static_cast<int>(core_set::most));
}

TEST_CASE("ranks meet where they have a core in common, or may have") {
  CHECK(of({0, 1}).may_meet(of({1, 2})));
  CHECK_FALSE(of({0, 1}).may_meet(of({2, 3})));
  CHECK(of({}).may_meet(of({2})));
  CHECK(of({2}).may_meet(of({})));
  core_set both = of({0});
  both.add(of({5}));
  CHECK(both == of({0, 5}));
}
