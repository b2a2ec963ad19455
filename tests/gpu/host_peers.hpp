// SPDX-License-Identifier: BSL-1.0
// Ranks that carry out the phases of gpu/peer_schedule.hpp and gpu/quantised_peers.hpp on memory of the host, with the
// code that the kernels call: every schedule against an oracle, without a device.
#pragma once

#include <cohort/gpu/fold.cuh>
#include <cohort/gpu/quantised_peers.hpp>

#include "float8_on_host.hpp"
#include "float8_oracle.hpp"
#include "support.hpp"
#include "values.hpp"

#include <cstring>
#include <type_traits>
#include <vector>

namespace gpu_test {

class host_rank {
 public:
  host_rank(int rank, int size) : rank_(rank), size_(size) {}
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  template <class T, class Op>
  void fold(const cohort::fold_sources<T>& from, T* out, std::size_t count, const Op& op) const {
    const cohort::detail::fold_arithmetic<T, Op> how{cohort::detail::make_applied<T>(op), size_};
    const cohort::detail::fold_element_at<T, Op> each{how, from, out, 0};
    for (std::size_t i = 0; i < count; ++i) each(i);
  }
  template <class T>
  void copy(const T* from, T* to, std::size_t count) const {
    if (count > 0) std::memmove(static_cast<void*>(to), from, count * sizeof(T));
  }

 private:
  int rank_;
  int size_;
};

// Found by the schedule, because host_rank is of this namespace.
template <class T, class Op, class Blocks>
void enqueue_quantise(const host_rank&, cohort::device_span<const T> in, const cohort::float8_cut<Blocks>& cut,
                      std::uint8_t* wire) {
  quantise_on_host(in, cut, wire);
}
template <class T, class Op, class Blocks>
void enqueue_quantised_fold(const host_rank&, const cohort::fold_sources<std::uint8_t>& from,
                            const cohort::float8_cut<Blocks>& cut, std::uint8_t* out, const Op& op) {
  fold_quantised_on_host(from, cut, out, op);
}
template <class T, class Op, class Blocks>
void enqueue_dequantise(const host_rank&, const cohort::fold_sources<std::uint8_t>& pieces,
                        const cohort::float8_cut<Blocks>& cut, cohort::device_span<T> out) {
  dequantise_on_host(pieces, cut, out);
}

/// The phases, one rank after the other; of each phase also in reverse, because no rank may need another's of the same one.
template <class Schedule>
void carry_out(const Schedule& how, int ranks, bool backwards) {
  how.check(ranks);
  for (int phase = 0; phase < Schedule::phases; ++phase) {
    for (int i = 0; i < ranks; ++i) how(phase, host_rank(backwards ? ranks - 1 - i : i, ranks));
  }
}

template <class T>
struct host_buffers {
  host_buffers(int ranks, std::size_t count) {
    for (int r = 0; r < ranks; ++r) memory.push_back(values<T>(r, count));
    for (auto& m : memory) spans.emplace_back(m.data(), m.size());
  }
  host_buffers(const host_buffers&) = delete;
  std::vector<std::vector<T>> memory;
  std::vector<cohort::device_span<T>> spans;
};

template <class T, class Op>
void peer_reductions(const char* name, const Op& op) {
  namespace d = cohort::detail;
  for (int n = 1; n <= 9; ++n) {
    const auto ranks = static_cast<std::size_t>(n);
    for (const std::size_t count : {0, 1, 15, 16, 17, 33, 1000}) {
      for (const bool backwards : {false, true}) {
        host_buffers<T> a(n, count);
        const std::vector<T> expected = folded_in_order<T>(a.memory, op);
        carry_out(d::peer_all_reduce<T, Op>{a.spans, op}, n, backwards);
        for (const auto& found : a.memory) EXPECT(same(found, expected, name, n));

        host_buffers<T> in(n, count * ranks);
        host_buffers<T> out(n, count);
        const std::vector<T> whole = folded_in_order<T>(in.memory, op);
        carry_out(d::peer_reduce_scatter<T, Op>{in.spans, out.spans, op}, n, backwards);
        for (std::size_t r = 0; r < ranks; ++r) {
          const auto at = whole.begin() + static_cast<std::ptrdiff_t>(r * count);
          EXPECT(same(out.memory[r], std::vector<T>(at, at + static_cast<std::ptrdiff_t>(count)), name, n));
        }
        std::vector<T> at_root(count * ranks, value_of<T>(0, 0));
        const cohort::device_span<T> there(at_root.data(), at_root.size());
        carry_out(d::peer_reduce<T, Op>{in.spans, there, op, cohort::root{n - 1}}, n, backwards);
        EXPECT(same(at_root, whole, name, n));
      }
    }
  }
}

inline void peer_moves() {
  namespace d = cohort::detail;
  for (int n = 1; n <= 9; ++n) {
    const auto ranks = static_cast<std::size_t>(n);
    for (const std::size_t count : {0, 1, 33}) {
      host_buffers<int> in(n, count);
      host_buffers<int> out(n, count * ranks);
      std::vector<int> all;
      for (const auto& each : in.memory) all.insert(all.end(), each.begin(), each.end());
      carry_out(d::peer_all_gather<int>{in.spans, out.spans}, n, true);
      for (const auto& found : out.memory) EXPECT(same(found, all, "all_gather", n));

      host_buffers<int> blocks(n, count * ranks);
      carry_out(d::peer_all_to_all<int>{blocks.spans, out.spans}, n, false);
      for (std::size_t r = 0; r < ranks; ++r) {
        std::vector<int> expected;
        for (const auto& each : blocks.memory) {
          const auto at = each.begin() + static_cast<std::ptrdiff_t>(r * count);
          expected.insert(expected.end(), at, at + static_cast<std::ptrdiff_t>(count));
        }
        EXPECT(same(out.memory[r], expected, "all_to_all", n));
      }
      for (int root = 0; root < n; ++root) {
        host_buffers<int> b(n, count);
        const std::vector<int> expected = b.memory[static_cast<std::size_t>(root)];
        carry_out(d::peer_broadcast<int>{b.spans, cohort::root{root}}, n, false);
        for (const auto& found : b.memory) EXPECT(same(found, expected, "broadcast", n));
      }
    }
  }
  host_buffers<int> two(2, 4);
  const auto refused = [&](const auto& how, int ranks, const auto&... words) {
    return throws(
        cohort::errc::invalid_argument, [&] { how.check(ranks); }, words...);
  };
  EXPECT(refused(d::peer_broadcast<int>{two.spans, cohort::root{0}}, 3, "broadcast", "2 buffers, expected 3"));
  EXPECT(refused(d::peer_broadcast<int>{two.spans, cohort::root{2}}, 2, "root 2: expected 0..1"));
  EXPECT(refused(d::peer_all_gather<int>{two.spans, two.spans}, 2, "out has 4 elements, expected 8"));
  host_buffers<int> odd(2, 5);
  EXPECT(refused(d::peer_all_to_all<int>{odd.spans, odd.spans}, 2, "in has 5 elements, expected 4"));
}

template <class Blocks, class T, class Op>
void quantised_peers(const Op& op, bool divides) {
  for (int n = 1; n <= 9; ++n) {
    for (const std::size_t count : {0, 1, 127, 128, 129, 1000, 4099}) {
      for (const std::size_t shift : {0, 1}) {  // 1: no lane's elements can be read at once
        std::vector<std::vector<float>> floats;
        std::vector<std::vector<T>> memory;
        std::vector<std::vector<std::uint8_t>> bytes;
        std::vector<cohort::device_span<T>> spans;
        std::vector<cohort::device_span<std::uint8_t>> wires;
        const cohort::float8_cut<Blocks> cut(count, n);
        for (int r = 0; r < n; ++r) {
          memory.emplace_back(shift, T(99.0f));
          floats.emplace_back();
          for (const float x : float8_values(r, count)) {
            memory.back().push_back(T(x));
            floats.back().push_back(static_cast<float>(memory.back().back()));
          }
          bytes.emplace_back(cut.wire() + 16, std::uint8_t{0xee});
        }
        for (auto& m : memory) spans.emplace_back(m.data() + shift, count);
        for (auto& b : bytes) {
          const auto past = reinterpret_cast<std::uintptr_t>(b.data()) % 16;
          wires.emplace_back(b.data() + (past == 0 ? 0 : 16 - past), cut.wire());
        }
        carry_out(cohort::detail::peer_quantised_all_reduce<T, Op, Blocks>{spans, wires, op}, n, shift == 1);
        const std::vector<float> expected = float8_summed<Blocks>(floats, divides ? static_cast<float>(n) : 1.0f);
        std::vector<T> as_elements;
        for (const float x : expected) as_elements.push_back(T(x));
        for (const auto& m : memory) {
          const std::vector<T> found(m.begin() + static_cast<std::ptrdiff_t>(shift), m.end());
          EXPECT(same(found, as_elements, "quantised_all_reduce", n));
          EXPECT(shift == 0 || m[0] == T(99.0f));
        }
      }
    }
  }
}

}  // namespace gpu_test
