// SPDX-License-Identifier: BSL-1.0
// The kernel of registered buffers: whatever the elements, their number and where the buffers of the ranks lie, every
// output gets the ranks' elements combined in their order, and nothing beside it is touched.
#include <cohort/collective/shared/direct.hpp>
#include <cohort/ops.hpp>
#include <cohort/reduction.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

using namespace cohort;

namespace {

constexpr std::size_t line = 64;
constexpr auto untouched = std::byte{0x5a};

/// 12 and 96 bytes: no whole number of them is a cache line, and none of them is a block.
template <std::size_t Words>
struct words {
  std::array<std::uint32_t, Words> w{};
  friend bool operator==(const words&, const words&) = default;
};

/// The order matters: what the ranks before have made comes first.
struct append {
  template <class T>
  T operator()(T a, T b) const noexcept {
    return static_cast<T>(a * 10 + b);
  }
  template <std::size_t Words>
  words<Words> operator()(words<Words> a, const words<Words>& b) const noexcept {
    for (std::size_t i = 0; i < Words; ++i) a.w[i] = a.w[i] * 10 + b.w[i];
    return a;
  }
};

template <class T>
T sample(int rank, std::size_t i) {
  const auto value = static_cast<std::uint32_t>(static_cast<std::size_t>(rank) + i % 5 + 1);
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<T>(value);
  } else {
    T all;
    for (std::uint32_t& w : all.w) w = value;
    return all;
  }
}

/// With a last step, which depends on how many they are: once for each element, and for each output.
struct append_and_mark : append {
  template <class T>
  T finish(T total, int ranks) const noexcept {
    return static_cast<T>(total + static_cast<T>(100 * ranks));
  }
};

/// `count` elements at this distance from the beginning of a line, with something before and behind them.
template <class T>
class placed {
 public:
  placed(std::size_t count, std::size_t offset) : bytes_(count * sizeof(T)), all_(bytes_ + 4 * line, untouched) {
    const auto address = reinterpret_cast<std::uintptr_t>(all_.data());
    first_ = (line - address % line) % line + line + offset;
  }
  [[nodiscard]] std::byte* data() { return all_.data() + first_; }
  void set(std::size_t i, const T& value) { std::memcpy(data() + i * sizeof(T), &value, sizeof(T)); }
  [[nodiscard]] T get(std::size_t i) {
    T value;
    std::memcpy(&value, data() + i * sizeof(T), sizeof(T));
    return value;
  }
  [[nodiscard]] int touched_beside(std::size_t from, std::size_t to) const {
    int found = 0;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const bool inside = i >= first_ + from * sizeof(T) && i < first_ + to * sizeof(T);
      found += !inside && all_[i] != untouched;
    }
    return found;
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> all_;
  std::size_t first_;
};

struct way {
  int ranks, root;
  std::array<std::size_t, 3> offsets;  ///< of the ranks' outputs, in elements
  bool streaming;
};

/// Elements [from, count - 1) of all.
template <class T, class Op = append>
int wrong_in(const way& w, std::size_t count) {
  constexpr std::size_t from = 3;
  const std::size_t to = count - 1;
  const Op op;
  const detail::reducer r = detail::make_reducer<T>(op);
  std::vector<placed<T>> in;
  std::vector<placed<T>> out;
  for (int k = 0; k < w.ranks; ++k) {
    in.emplace_back(count, static_cast<std::size_t>(k % 2) * sizeof(T) % line);
    out.emplace_back(count, w.offsets[static_cast<std::size_t>(k)] * sizeof(T) % line);
  }
  collective::reachable_buffers all(w.ranks);
  for (int k = 0; k < w.ranks; ++k) {
    const auto n = static_cast<std::size_t>(k);
    for (std::size_t i = 0; i < count; ++i) in[n].set(i, sample<T>(k, i));
    all.in(k) = in[n].data();
    all.out(k) = out[n].data();
  }
  collective::combine_everywhere(r, all, w.ranks, w.root, w.ranks - 1, from * sizeof(T), (to - from) * sizeof(T),
                                 w.streaming);
  int wrong = 0;
  for (int k = 0; k < w.ranks; ++k) {
    placed<T>& its = out[static_cast<std::size_t>(k)];
    if (w.root >= 0 && w.root != k) {
      wrong += its.touched_beside(0, 0);
      continue;
    }
    wrong += its.touched_beside(from, to);
    for (std::size_t i = from; i < to; ++i) {
      T expected = sample<T>(0, i);
      for (int j = 1; j < w.ranks; ++j) expected = op(expected, sample<T>(j, i));
      if constexpr (requires { op.finish(expected, w.ranks); }) expected = op.finish(expected, w.ranks);
      wrong += !(its.get(i) == expected);
    }
  }
  return wrong;
}

template <class T>
int wrong_of_type() {
  int wrong = 0;
  for (const bool streaming : {false, true}) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{70}, 4096 / sizeof(T) + 9, 9000 / sizeof(T) + 8}) {
      for (const auto& offsets : {std::array<std::size_t, 3>{0, 0, 0}, {5, 5, 5}, {1, 2, 0}}) {
        for (const int ranks : {2, 3}) {
          for (int root = -1; root < ranks; ++root) wrong += wrong_in<T>({ranks, root, offsets, streaming}, count);
        }
      }
    }
  }
  return wrong;
}

}  // namespace

TEST_CASE("combine_everywhere: elements of every kind of size, buffers at any distance from a line") {
  CHECK(wrong_of_type<std::uint8_t>() == 0);
  CHECK(wrong_of_type<std::uint32_t>() == 0);
  CHECK(wrong_of_type<std::uint64_t>() == 0);
  CHECK(wrong_of_type<words<3>>() == 0);
  CHECK(wrong_of_type<words<16>>() == 0);
  CHECK(wrong_of_type<words<24>>() == 0);
  CHECK(wrong_of_type<words<1000>>() == 0);
}

TEST_CASE("combine_everywhere: slices so long that they come from afar") {
  const std::size_t count = (collective::detail::afar_bytes + 5000) / sizeof(std::uint32_t);
  for (const bool streaming : {false, true}) {
    CHECK(wrong_in<std::uint32_t>({2, -1, {0, 0, 0}, streaming}, count) == 0);
    CHECK(wrong_in<std::uint32_t>({3, 1, {1, 2, 0}, streaming}, count) == 0);
    CHECK(wrong_in<words<3>>({2, -1, {0, 1, 0}, streaming}, count / 3) == 0);
  }
}

TEST_CASE("combine_everywhere: the functor's last step is done once, before the result is stored anywhere") {
  for (const bool streaming : {false, true}) {
    for (const auto& offsets : {std::array<std::size_t, 3>{0, 0, 0}, {5, 5, 5}, {1, 2, 0}}) {
      for (const int root : {-1, 1}) {
        CHECK(wrong_in<std::uint32_t, append_and_mark>({3, root, offsets, streaming}, 5000) == 0);
        CHECK(wrong_in<float, append_and_mark>({2, root, offsets, streaming}, 3000) == 0);
      }
    }
  }
}
