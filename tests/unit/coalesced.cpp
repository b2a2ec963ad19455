// SPDX-License-Identifier: BSL-1.0
// Calls on lists of buffers give what the same calls give buffer by buffer, for every algorithm, with buffers of uneven
// sizes and empty ones among them.
#include <doctest/doctest.h>

#include <cohort/cohort.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

using namespace cohort;

namespace {

using world_type = communicator<inproc>;
using buffers = std::vector<std::vector<std::int64_t>>;

/// Keeps rank order visible: it does not commute, and is associative.
struct first_and_count {
  std::int64_t operator()(std::int64_t a, std::int64_t b) const noexcept {
    // (first, how many) of a concatenation, in one number.
    return (a / 1000) * 1000 + (a % 1000 + b % 1000);
  }
};

buffers made(const std::vector<std::size_t>& sizes, int rank) {
  buffers all;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    std::vector<std::int64_t> v(sizes[k]);
    for (std::size_t i = 0; i < v.size(); ++i) {
      v[i] = static_cast<std::int64_t>((k * 10007 + i * 13 + static_cast<std::size_t>(rank) * 7919) % 5000 * 1000 + 1);
    }
    all.push_back(std::move(v));
  }
  return all;
}

const std::vector<std::vector<std::size_t>> shapes{{}, {0}, {1}, {5, 0, 3}, {1, 1, 1, 1, 1, 1, 1}, {1000, 1, 4099, 17}};

}  // namespace

TEST_CASE("coalesced: all_reduce is that of each buffer, whatever the algorithm") {
  for (const char* spec : {"", "all_reduce=ring", "all_reduce=circulant", "all_reduce=halving_doubling",
                           "all_reduce=recursive_doubling"}) {
    for (const int n : {1, 2, 3, 5, 8}) {
      const auto body = [spec](world_type world) -> task<> {
        world.algorithms().override_with(spec);
        for (const auto& shape : shapes) {
          buffers together = made(shape, world.rank());
          buffers alone = together;
          co_await world.all_reduce_coalesced(together, sum{});
          for (auto& v : alone) co_await world.all_reduce(v, sum{});
          CHECK(together == alone);
          buffers ordered = made(shape, world.rank());
          buffers ordered_alone = ordered;
          co_await world.all_reduce_coalesced(ordered, first_and_count{});
          for (auto& v : ordered_alone) co_await world.all_reduce(v, first_and_count{});
          CHECK(ordered == ordered_alone);
        }
      };
      run_local(n, body);
    }
  }
}

TEST_CASE("coalesced: an average is taken in each buffer") {
  const auto body = [](world_type world) -> task<> {
    std::vector<float> a(3, static_cast<float>(world.rank()));
    std::vector<float> b(700, static_cast<float>(2 * world.rank()));
    const std::vector<std::span<float>> both{a, b};
    co_await world.all_reduce_coalesced(both, average{});
    CHECK(a == std::vector<float>(3, 1.5F));
    CHECK(b == std::vector<float>(700, 3.0F));
  };
  run_local(4, body);
}

TEST_CASE("coalesced: all_gather and reduce_scatter are those of each buffer") {
  for (const int n : {1, 2, 3, 5, 8}) {
    const auto body = [](world_type world) -> task<> {
      const auto p = static_cast<std::size_t>(world.size());
      for (const auto& shape : shapes) {
        const buffers in = made(shape, world.rank());
        std::vector<std::size_t> long_shape;
        for (const std::size_t s : shape) long_shape.push_back(s * p);
        buffers together = made(long_shape, -1 + static_cast<int>(p));
        buffers alone = together;
        co_await world.all_gather_coalesced(in, together);
        for (std::size_t k = 0; k < shape.size(); ++k) co_await world.all_gather(in[k], alone[k]);
        CHECK(together == alone);

        const buffers from = made(long_shape, world.rank());
        buffers scattered = made(shape, 0);
        buffers scattered_alone = scattered;
        co_await world.reduce_scatter_coalesced(from, scattered, sum{});
        for (std::size_t k = 0; k < shape.size(); ++k)
          co_await world.reduce_scatter(from[k], scattered_alone[k], sum{});
        CHECK(scattered == scattered_alone);
        co_await world.reduce_scatter_coalesced(from, scattered, first_and_count{});
        for (std::size_t k = 0; k < shape.size(); ++k) {
          co_await world.reduce_scatter(from[k], scattered_alone[k], first_and_count{});
        }
        CHECK(scattered == scattered_alone);
      }
    };
    run_local(n, body);
  }
}

TEST_CASE("coalesced: what is refused says what is wrong") {
  const auto body = [](world_type world) -> task<> {
    const buffers in{{1, 2}, {3}};
    buffers too_few{std::vector<std::int64_t>(4)};
    buffers too_short{std::vector<std::int64_t>(4), std::vector<std::int64_t>(1)};
    std::string said;
    try {
      co_await world.all_gather_coalesced(in, too_few);
    } catch (const error& e) {
      said = e.what();
    }
    CHECK(said.find("in is a list of 2 buffers, out of 1: expected as many") != std::string::npos);
    try {
      co_await world.all_gather_coalesced(in, too_short);
    } catch (const error& e) {
      said = e.what();
    }
    CHECK(said.find("out has 1 elements, expected 2 = 2 ranks times the 1 elements of in[1]") != std::string::npos);
    CHECK(co_await world.all_reduce(1, sum{}) == 2);
  };
  run_local(2, body);
}
