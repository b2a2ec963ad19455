// SPDX-License-Identifier: BSL-1.0
// Who is to blame: from what every rank last did to the sentence that all ranks report.
#include "../support/text.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/verdict.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace {

using harness::contains;

using namespace cohort;
using namespace cohort::transport;

signature call_of(operation_kind kind, std::uint64_t count = 0) {
  signature s;
  s.kind = kind;
  s.count = count;
  s.type = count > 0 ? element_type_id<float> : std::uint16_t{0};
  return s;
}

const signature barrier = call_of(operation_kind::barrier);
const signature reduce_ten = call_of(operation_kind::all_reduce, 10);
const signature reduce_eleven = call_of(operation_kind::all_reduce, 11);

/// A rank that has called these, the last of them number `entered`, and has completed all up to `completed`.
standing rank_at(int rank, std::int64_t entered, std::int64_t completed, std::vector<signature> calls, std::uint64_t context = 0) {
  standing s;
  s.rank = rank;
  s.host = "host" + std::to_string(rank);
  s.pid = 100 + rank;
  s.note({context, entered, completed, std::move(calls)});
  return s;
}
standing rank_that_did_nothing(int rank) { return rank_at(rank, -1, -1, {}); }

fault deadline_of(std::int64_t sequence) {
  fault f;
  f.code = errc::timed_out;
  f.reporter = 0;
  f.context = 0;
  f.sequence = sequence;
  f.text = "all_reduce #" + std::to_string(sequence) + " of rank 0 timed out";
  return f;
}

}  // namespace

TEST_CASE("verdict: a deadline lists who has not arrived, where each is and what it last called") {
  const std::vector<standing> world{rank_at(0, 5, 4, {reduce_ten}), rank_at(1, 4, 4, {barrier}), rank_at(2, 5, 4, {reduce_ten}), rank_that_did_nothing(3)};
  const fault f = judge_timeout(deadline_of(5), world, {0, 1, 2, 3});
  CHECK(f.code == errc::timed_out);
  CHECK(f.culprit == -1);
  CHECK(f.text ==
        "all_reduce #5 of rank 0 timed out; not arrived: rank 1 (host1, pid 101) last called barrier() #4; "
        "rank 3 (host3, pid 103) has not called anything yet");
}

TEST_CASE("verdict: one absent rank is the culprit of a deadline") {
  const std::vector<standing> world{rank_at(0, 5, 4, {reduce_ten}), rank_at(1, 4, 4, {barrier})};
  CHECK(judge_timeout(deadline_of(5), world, {0, 1}).culprit == 1);
}

TEST_CASE("verdict: only members are missed") {
  const std::vector<standing> world{rank_at(0, 5, 4, {reduce_ten}), rank_at(1, 4, 4, {barrier}), rank_that_did_nothing(2)};
  const fault f = judge_timeout(deadline_of(5), world, {0, 1});
  CHECK(f.culprit == 1);
  CHECK_FALSE(contains(f.text, "rank 2"));
}

TEST_CASE("verdict: a deadline by which all had arrived was too short for the data") {
  const std::vector<standing> world{rank_at(0, 5, 4, {reduce_ten}), rank_at(1, 6, 4, {reduce_ten, barrier})};
  const fault f = judge_timeout(deadline_of(5), world, {0, 1});
  CHECK(f.culprit == -1);
  CHECK(contains(f.text, "every rank has called it"));
}

TEST_CASE("verdict: who has left the world and did not arrive is said to have left") {
  std::vector<standing> world{rank_at(0, 5, 4, {reduce_ten}), rank_at(1, 4, 4, {barrier})};
  world[1].left = true;
  CHECK(contains(judge_timeout(deadline_of(5), world, {0, 1}).text, "rank 1 (host1, pid 101) has left the world and last called barrier() #4"));
}

TEST_CASE("verdict: agreement is no fault, however far apart the ranks are") {
  const std::vector<signature> many{barrier, reduce_ten, barrier, reduce_eleven};
  const std::vector<standing> world{rank_at(0, 3, 3, many), rank_at(1, 1, 0, {barrier, reduce_ten}), rank_at(2, 3, 2, {barrier, reduce_eleven}),
                                    rank_that_did_nothing(3), standing{}};
  CHECK_FALSE(judge_agreement(world, 0).has_value());
  CHECK_FALSE(judge_agreement({}, 0).has_value());
}

TEST_CASE("verdict: the lowest number on which ranks differ is told, and those who are fewer are to blame") {
  const std::vector<standing> world{rank_at(0, 7, 6, {barrier, reduce_ten}), rank_at(1, 8, 6, {barrier, reduce_eleven, barrier}),
                                    rank_at(2, 7, 7, {barrier, reduce_ten})};
  const std::optional<fault> f = judge_agreement(world, 0);
  REQUIRE(f.has_value());
  CHECK(f->code == errc::mismatch);
  CHECK(f->sequence == 7);
  CHECK(f->context == 0);
  CHECK(f->culprit == 1);
  CHECK(f->text ==
        "rank 1 called all_reduce(11 x float32), rank 0 called all_reduce(10 x float32); the ranks of a communicator call "
        "the same operations in the same order");
}

TEST_CASE("verdict: a difference that both have long left behind is found as well") {
  const std::vector<standing> world{rank_at(0, 20, 20, {reduce_ten, barrier, barrier}), rank_at(1, 20, 19, {reduce_eleven, barrier, barrier})};
  const std::optional<fault> f = judge_agreement(world, 0);
  REQUIRE(f.has_value());
  CHECK(f->sequence == 18);
}

TEST_CASE("verdict: communicators are compared one at a time") {
  const std::vector<standing> world{rank_at(0, 0, -1, {barrier}, 4), rank_at(1, 0, -1, {reduce_ten}, 5)};
  CHECK_FALSE(judge_agreement(world, 4).has_value());
  CHECK_FALSE(judge_agreement(world, 5).has_value());
  const std::vector<standing> one{rank_at(0, 0, -1, {barrier}, 4), rank_at(1, 0, -1, {reduce_ten}, 4)};
  CHECK(judge_agreement(one, 4).has_value());
  CHECK(judge_agreement(one, 4)->context == 4);
}

TEST_CASE("verdict: calls that differ in nothing but their algorithm show it") {
  signature other = reduce_ten;
  signature mine = reduce_ten;
  mine.algorithm = collective::algorithm::ring;
  other.algorithm = collective::algorithm::circulant;
  const std::optional<fault> f = judge_agreement({rank_at(0, 0, -1, {mine}), rank_at(1, 0, -1, {other})}, 0);
  REQUIRE(f.has_value());
  CHECK(f->text ==
        "rank 1 called all_reduce(10 x float32) by circulant, rank 0 called all_reduce(10 x float32) by ring; every rank "
        "must be given the same algorithms");
}

TEST_CASE("verdict: who leaves before it called what another is in is to blame") {
  std::vector<standing> world{rank_at(0, 3, 2, {reduce_ten}), rank_at(1, 2, 2, {barrier})};
  CHECK_FALSE(judge_departures(world).has_value());
  world[1].left = true;
  const std::optional<fault> f = judge_departures(world);
  REQUIRE(f.has_value());
  CHECK(f->code == errc::peer_lost);
  CHECK(f->culprit == 1);
  CHECK(f->sequence == 3);
  CHECK(f->text == "rank 1 (host1, pid 101) exited early: it last called barrier() #2 and left the world");
}

TEST_CASE("verdict: who leaves with a call that failed there has given it up for all") {
  std::vector<standing> world{rank_at(0, 3, 2, {reduce_ten}), rank_at(1, 3, 2, {reduce_ten})};
  world[1].left = true;
  const std::optional<fault> f = judge_departures(world);
  REQUIRE(f.has_value());
  CHECK(f->culprit == 1);
  CHECK(f->text == "rank 1 (host1, pid 101) gave up: it last called all_reduce(10 x float32) #3, which failed there, and left the world");
}

TEST_CASE("verdict: who leaves after its part is done is not to blame") {
  std::vector<standing> world{rank_at(0, 3, 2, {reduce_ten}), rank_at(1, 3, 3, {reduce_ten}), rank_at(2, 9, 9, {barrier})};
  world[1].left = world[2].left = true;
  CHECK_FALSE(judge_departures(world).has_value());
  // Nor who is not in the communicator.
  world.push_back(rank_at(3, 0, 0, {barrier}, 8));
  world[3].left = true;
  CHECK_FALSE(judge_departures(world).has_value());
}

TEST_CASE("verdict: ranks that have all left blame nobody") {
  std::vector<standing> world{rank_at(0, 3, 2, {reduce_ten}), rank_at(1, 2, 2, {barrier})};
  world[0].left = world[1].left = true;
  CHECK_FALSE(judge_departures(world).has_value());
}

TEST_CASE("verdict: a rank without a host, or with a call nobody told of, is still named") {
  standing bare;
  bare.rank = 4;
  CHECK(place_of(bare) == "rank 4");
  bare.host = "h";
  CHECK(place_of(bare) == "rank 4 (h)");
  const arrival unknown{0, 6, 6, {}};
  CHECK(last_call(&unknown) == "last called something #6");
  CHECK(last_call(nullptr) == "has not called anything yet");
}

TEST_CASE("verdict: who has destroyed a communicator that others are in is named, as a rank of the world") {
  std::vector<standing> world{rank_at(0, 3, 2, {reduce_ten}, 77), rank_at(1, 2, 2, {barrier}, 77)};
  CHECK_FALSE(judge_departures(world).has_value());
  world[1].arrivals.begin()->second.retired = true;
  const std::optional<fault> f = judge_departures(world);
  REQUIRE(f.has_value());
  CHECK(f->code == errc::peer_lost);
  CHECK(f->culprit == 1);
  CHECK(f->context == 77);
  CHECK(f->text == "world rank 1 (host1, pid 101) exited early: it last called barrier() #2 and destroyed this communicator");
  CHECK_FALSE(judge_departures(world, [](std::uint64_t context) { return context == 77; }).has_value());
}
