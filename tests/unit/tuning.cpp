// SPDX-License-Identifier: BSL-1.0
// The text of a tuning: what it may say, what it must not, and that it survives being written and read.
#include <doctest/doctest.h>

#include <cohort/error.hpp>
#include <cohort/tuning.hpp>

#include "../support/decimal_comma.hpp"
#include "../support/text.hpp"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

using cohort::parse_tuning;
using cohort::read_tuning;
using cohort::tuning;

std::string refusal(const auto& what) {
  try {
    what();
  } catch (const cohort::error& e) {
    return e.what();
  }
  return "no error";
}
std::string refusal_of(const char* text) {
  return refusal([&] { static_cast<void>(parse_tuning(text)); });
}

TEST_CASE("tuning: costs and algorithms in any order, lines and comments") {
  const tuning t = parse_tuning(
      "# measured\n"
      " latency = 3.5us , byte=0.25ns # of long ones\r\n"
      "\n"
      "all_reduce=ring\n"
      "overhead=2000ns,combine=0s,broadcast=chain");
  REQUIRE(t.costs.has_value());
  CHECK(t.costs->latency == doctest::Approx(3.5e-6));
  CHECK(t.costs->byte == doctest::Approx(0.25e-9));
  CHECK(t.costs->overhead == doctest::Approx(2e-6));
  CHECK(t.costs->combine == 0);
  CHECK(t.algorithms == "all_reduce=ring,broadcast=chain");
  CHECK(parse_tuning("") == tuning{});
  CHECK(parse_tuning("# nothing\n ,, \n") == tuning{});
  CHECK_FALSE(parse_tuning("scan=recursive_doubling").costs.has_value());
  CHECK(parse_tuning("all_reduce=native,scan=native").algorithms == "all_reduce=native,scan=native");
  CHECK(parse_tuning("latency=1ms").costs->byte == cohort::collective::link_costs{}.byte);
}

TEST_CASE("tuning: written and read again it is the same") {
  tuning t;
  CHECK(cohort::to_string(t).empty());
  t.costs = {1.25e-6, 0.5e-6, 0.125e-9, 0.0625e-9};
  t.algorithms = "all_reduce=circulant";
  const tuning again = parse_tuning(cohort::to_string(t));
  CHECK(again.costs->latency == doctest::Approx(t.costs->latency));
  CHECK(again.costs->combine == doctest::Approx(t.costs->combine));
  CHECK(again.algorithms == t.algorithms);
}

TEST_CASE("tuning: it has a point in a locale with a decimal comma, too") {
  const harness::decimal_comma locale;
  if (!locale.made()) {
    MESSAGE(harness::decimal_comma::absent);
    return;
  }
  tuning t;
  t.costs = {1.25e-6, 0.5e-6, 0.125e-9, 0.0625e-9};
  CHECK(cohort::to_string(t) == "latency=1250ns,overhead=500ns,byte=0.125ns,combine=0.0625ns");
  CHECK(parse_tuning(cohort::to_string(t)).costs->byte == doctest::Approx(0.125e-9));
}

TEST_CASE("tuning: what is wrong is said with what could stand there") {
  using harness::contains;
  CHECK(contains(refusal_of("latency=3"), "latency=3: expected a time from 0 to 1 s with its unit, such as 3.5us"));
  CHECK(contains(refusal_of("latency=us"), "expected a time"));
  CHECK(contains(refusal_of("byte=-1ns"), "expected a time"));
  CHECK(contains(refusal_of("byte=nan ns"), "expected a time"));
  CHECK(contains(refusal_of("byte=2s"), "expected a time from 0 to 1 s"));
  CHECK(contains(refusal_of("byte=1ns,byte=2ns"), "byte is named twice"));
  CHECK(contains(refusal_of("latncy=3us"), "\"latncy=3us\" is none of latency, overhead, byte and combine"));
  CHECK(contains(refusal_of("all_reduce=bruck"), "\"bruck\" is not an algorithm of all_reduce"));
  CHECK(contains(refusal_of("all_reduce=ring,all_reduce=ring"), "all_reduce is named twice"));
  CHECK(contains(refusal_of("latency"), "expected operation=algorithm"));
  CHECK(contains(refusal([] { static_cast<void>(read_tuning("/no/such/file")); }),
                 "\"/no/such/file\" cannot be read: No such file or directory; expected a file that `cohort tune`"));
}

TEST_CASE("tuning: a file is read, and named where it is wrong") {
  char path[] = "/tmp/cohort_tuning_XXXXXX";
  const int file = ::mkstemp(path);
  REQUIRE(file >= 0);
  const std::string text = "latency=7us\nall_gather=ring\n";
  REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  CHECK(read_tuning(path).costs->latency == doctest::Approx(7e-6));
  CHECK(read_tuning(path).algorithms == "all_gather=ring");
  REQUIRE(::write(file, "bite=1ns\n", 9) == 9);
  CHECK(harness::contains(refusal([&] { static_cast<void>(read_tuning(path)); }), std::string(path) + ": tuning: "));
  REQUIRE(::ftruncate(file, 1 << 20) == 0);
  CHECK(harness::contains(refusal([&] { static_cast<void>(read_tuning(path)); }), "longer than a tuning can be"));
  ::close(file);
  ::unlink(path);
}

}  // namespace
