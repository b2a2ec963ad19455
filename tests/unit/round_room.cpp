// SPDX-License-Identifier: BSL-1.0
// Where runs of bytes go that had better go to another place each time: all of the room in turn, and never beyond it. Data that
// follow each other in a window are in process/at_once, process/shared_memory and the oracles.
#include <cohort/detail/round_room.hpp>
#include <cohort/transport/shm/window.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <set>

namespace detail = cohort::detail;

TEST_CASE("runs go round all of the room, and end within it") {
  for (std::size_t bytes = detail::shortest_round; bytes <= detail::longest_round; bytes += 4) {
    std::set<std::size_t> places;
    std::size_t before = detail::place_in_round(0, bytes);
    bool crosses = false;
    for (std::uint32_t turn = 1; turn <= 64; ++turn) {
      const std::size_t place = detail::place_in_round(turn, bytes);
      // In a line's bounds, as the buffers that they stand for begin.
      crosses = crosses || place % 64 != 0 || place + bytes > detail::round_room;
      // Not where the one before it is.
      crosses = crosses || (place < before + bytes && before < place + bytes);
      places.insert(place);
      before = place;
    }
    REQUIRE(!crosses);
    REQUIRE(places.size() * 2 * bytes >= detail::round_room);
  }
}

TEST_CASE("it has room in the slots of any number of ranks, however often") {
  for (const int ranks : {2, 3, 16, 17, 64, 1000}) {
    CHECK(detail::round_room <= cohort::transport::shm_window::slot_bytes_for(ranks));
  }
  for (const std::size_t bytes : {detail::shortest_round, detail::longest_round}) {
    for (const std::uint32_t turn : {~std::uint32_t{0}, ~std::uint32_t{0} - 1, std::uint32_t{1} << 31}) {
      CHECK(detail::place_in_round(turn, bytes) + bytes <= detail::round_room);
    }
  }
}

TEST_CASE("what is shorter or longer stays where it is, and everything on processors that pass lines as fast") {
  CHECK(!detail::goes_round(detail::shortest_round - 1));
  CHECK(!detail::goes_round(detail::longest_round + 1));
  CHECK(detail::goes_round(detail::shortest_round) == detail::first_levels_pass_slowly());
  CHECK(detail::goes_round(detail::longest_round) == detail::first_levels_pass_slowly());
}
