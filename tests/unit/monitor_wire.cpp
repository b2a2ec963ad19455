// SPDX-License-Identifier: BSL-1.0
// What liveness threads tell each other: round trips, every truncation, bytes left over, and counts that promise more
// than is there.
#include <doctest/doctest.h>

#include <cohort/transport/monitor_wire.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace cohort;
using namespace cohort::transport;

std::vector<arrival> sample_arrivals() {
  signature barrier;
  barrier.kind = operation_kind::barrier;
  signature reduce;
  reduce.kind = operation_kind::reduce;
  reduce.type = 12;
  reduce.functor = 1;
  reduce.root = 2;
  reduce.count = 1000;
  return {{0, 41, 40, {barrier, reduce}}, {7, -1, -1, {}, 3, false}, {0xfffffffffffffffe, 0, -1, {reduce}, 2, true}};
}

fault sample_fault() {
  fault f;
  f.code = errc::timed_out;
  f.culprit = 3;
  f.reporter = 1;
  f.context = 5;
  f.sequence = 1234567890123;
  f.text = "rank 3 has not arrived";
  return f;
}

bool same(const fault& a, const fault& b) {
  return a.code == b.code && a.culprit == b.culprit && a.reporter == b.reporter && a.context == b.context && a.sequence == b.sequence && a.text == b.text;
}

}  // namespace

TEST_CASE("monitor wire: arrivals come back as they were sent") {
  for (const auto& all : {sample_arrivals(), std::vector<arrival>{}}) {
    const auto back = decode_arrivals(encode_arrivals(all));
    REQUIRE(back.has_value());
    CHECK(*back == all);
  }
}

TEST_CASE("monitor wire: arrivals that are too many for one frame come in several") {
  std::vector<arrival> all;
  for (std::uint64_t context = 0; context < 5000; ++context) {
    arrival a = sample_arrivals()[0];
    a.context = context;
    a.calls.resize(context % 3 == 0 ? 1 : most_calls_told);
    all.push_back(a);
  }
  const std::vector<std::string> parts = encode_arrivals_in_parts(all);
  CHECK(parts.size() == 2);
  std::vector<arrival> back;
  for (const std::string& part : parts) {
    CHECK(part.size() + 1 <= monitor_frame_limit);
    const auto some = decode_arrivals(part);
    REQUIRE(some.has_value());
    back.insert(back.end(), some->begin(), some->end());
  }
  CHECK(back == all);
  // Those of the most calls fill a frame, and no byte more.
  for (arrival& a : all) a.calls.resize(most_calls_told);
  for (const std::string& part : encode_arrivals_in_parts(all)) CHECK(part.size() + 1 <= monitor_frame_limit);
  REQUIRE(encode_arrivals_in_parts({}).size() == 1);
  CHECK(encode_arrivals_in_parts({}).front() == encode_arrivals({}));
  CHECK(encode_arrivals_in_parts(all, 100).size() == all.size());
}

TEST_CASE("monitor wire: every truncated length of arrivals is refused, and every longer one") {
  const std::string bytes = encode_arrivals(sample_arrivals());
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(decode_arrivals(std::string_view(bytes).substr(0, n)).has_value());
  CHECK_FALSE(decode_arrivals(bytes + '\0').has_value());
  CHECK_FALSE(decode_arrivals(bytes + bytes).has_value());
}

TEST_CASE("monitor wire: counts of arrivals that promise more than is there cost nothing") {
  std::string bytes = encode_arrivals(sample_arrivals());
  for (const std::uint32_t count : {4U, 100U, 0x7fffffffU, 0xffffffffU}) {
    detail::put_little(reinterpret_cast<unsigned char*>(bytes.data()), count);
    CHECK_FALSE(decode_arrivals(bytes).has_value());
  }
  // The number of calls of the first arrival: behind the count, the context, the two numbers, the members and
  // the flag.
  bytes = encode_arrivals(sample_arrivals());
  for (const std::uint32_t calls : {9U, 17U, 0x0fffffffU, 0xffffffffU}) {
    detail::put_little(reinterpret_cast<unsigned char*>(bytes.data()) + 33, calls);
    CHECK_FALSE(decode_arrivals(bytes).has_value());
  }
}

TEST_CASE("monitor wire: a rank cannot have called more than it has entered") {
  std::vector<arrival> all = sample_arrivals();
  all[0].entered = 0;
  CHECK_FALSE(decode_arrivals(encode_arrivals(all)).has_value());
  all[0].entered = -5;
  all[0].calls.clear();
  CHECK_FALSE(decode_arrivals(encode_arrivals(all)).has_value());
  all[0].entered = 1000;
  all[0].calls.resize(most_calls_told);
  CHECK(decode_arrivals(encode_arrivals(all)).has_value());
  all[0].calls.resize(most_calls_told + 1);
  CHECK_FALSE(decode_arrivals(encode_arrivals(all)).has_value());
}

TEST_CASE("monitor wire: reports come back as they were sent") {
  for (const std::vector<int>& members : {std::vector<int>{}, std::vector<int>{0, 3, 65535}}) {
    const auto back = decode_report(encode_report(sample_fault(), members));
    REQUIRE(back.has_value());
    CHECK(same(back->what, sample_fault()));
    CHECK(back->members == members);
  }
}

TEST_CASE("monitor wire: a long text is cut on the way out and refused on the way in") {
  fault f = sample_fault();
  f.text = std::string(fault_text_limit * 2, 'x');
  const auto back = decode_report(encode_report(f, {1}));
  REQUIRE(back.has_value());
  CHECK(back->what.text == std::string(fault_text_limit, 'x'));

  std::string bytes;
  detail::byte_writer w(bytes);
  w.number(1U).number(2U).number(3U).number(4U).number(std::uint64_t{5}).text(std::string(fault_text_limit + 1, 'x')).number(0U);
  CHECK_FALSE(decode_report(bytes).has_value());
}

TEST_CASE("monitor wire: every truncated length of a report is refused, and every longer one") {
  const std::string bytes = encode_report(sample_fault(), {1, 2, 3});
  for (std::size_t n = 0; n < bytes.size(); ++n) CHECK_FALSE(decode_report(std::string_view(bytes).substr(0, n)).has_value());
  CHECK_FALSE(decode_report(bytes + '\0').has_value());
}

TEST_CASE("monitor wire: counts of members that promise more than is there cost nothing") {
  const std::string good = encode_report(sample_fault(), {1, 2, 3});
  for (const std::uint32_t count : {0U, 2U, 4U, 0x3fffffffU, 0x40000001U, 0xffffffffU}) {
    std::string bytes = good;
    detail::put_little(reinterpret_cast<unsigned char*>(bytes.data()) + (bytes.size() - 16), count);
    CHECK_FALSE(decode_report(bytes).has_value());
  }
}

TEST_CASE("monitor wire: changed and random bytes are refused or read within their bounds") {
  std::mt19937 random(3);
  const std::string good[] = {encode_arrivals(sample_arrivals()), encode_report(sample_fault(), {1, 2})};
  int understood = 0;
  for (int i = 0; i < 50000; ++i) {
    std::string bytes = good[i % 2];
    if (i % 5 == 0) bytes.assign(random() % 200, '\0');
    for (unsigned k = 0; k < 1 + random() % 4 && !bytes.empty(); ++k) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (const auto a = decode_arrivals(bytes)) {
      ++understood;
      for (const arrival& each : *a) REQUIRE(each.calls.size() <= most_calls_told);
    }
    if (const auto r = decode_report(bytes)) {
      ++understood;
      REQUIRE(r->what.text.size() <= fault_text_limit);
      REQUIRE(r->members.size() * 4 <= bytes.size());
    }
  }
  // Most changes hit a value, not a count: that much has to get through.
  CHECK(understood > 1000);
}
