// SPDX-License-Identifier: BSL-1.0
// The fold's kernels on a device against the fold in plain code: types x functors x ranks x sizes, aligned and not, with
// the own operands in place; and ranks of one process, every function, also with 8-bit floats between them, against the
// same.
#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/fold.cuh>
#include <cohort/gpu/local_ranks.hpp>
#include <cohort/gpu/quantised_fold.cuh>
#include <cohort/gpu/quantised_peers.hpp>
#include <cohort/nccl/reduction_map.hpp>

#include "../float8_oracle.hpp"
#include "../support.hpp"
#include "../values.hpp"

#include <functional>
#include <vector>

namespace {

using namespace gpu_test;
using cohort::device_buffer;
using cohort::device_span;

template <class T>
device_buffer<T> on_device(const std::vector<T>& host, cudaStream_t s) {
  device_buffer<T> b(host.size());
  cohort::copy_to_device<T>(host, b.device_view(), s);
  return b;
}
template <class T>
std::vector<std::remove_const_t<T>> on_host(device_span<T> where, cudaStream_t s) {
  std::vector<std::remove_const_t<T>> host(where.size());
  cohort::copy_to_host(where, std::span(host), s);
  cohort::detail::check_cuda(cudaStreamSynchronize(s), "cudaStreamSynchronize");
  return host;
}

template <class T, class Op>
void kernels(const char* name, const Op& op) {
  const cohort::stream s;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const std::size_t count : {0, 1, 15, 16, 17, 1000, 4099, 100003}) {
      for (const std::size_t shift : {0, 1}) {  // 1: no 16-byte vector can be read
        std::vector<std::vector<T>> in;
        std::vector<T> slots;
        for (int r = 0; r < ranks; ++r) {
          in.push_back(values<T>(r, count));
          slots.insert(slots.end(), in.back().begin(), in.back().end());
        }
        const std::vector<T> padding(shift, value_of<T>(0, 0));
        slots.insert(slots.begin(), padding.begin(), padding.end());
        const device_buffer<T> there = on_device(slots, s.get());
        const int own = ranks - 1;
        std::vector<T> mine = in[static_cast<std::size_t>(own)];
        mine.insert(mine.begin(), padding.begin(), padding.end());
        device_buffer<T> inout = on_device(mine, s.get());
        // The result over this rank's own operands, as in an all_reduce in place.
        const auto from =
            cohort::fold_sources<T>::of_slots(there.data() + shift, count, ranks, inout.data() + shift, own);
        cohort::launch_fold<T, Op>(from, inout.data() + shift, count, op, ranks, s.get());
        EXPECT(same(on_host(device_span<const T>(inout.data() + shift, count), s.get()), folded_in_order<T>(in, op),
                    name, ranks));
      }
    }
  }
}

template <class T>
struct ranks_of_process {
  explicit ranks_of_process(int n, std::size_t count) : world(n) {
    for (int r = 0; r < n; ++r) {
      in.push_back(values<T>(r, count));
      memory.push_back(on_device(in.back(), world.stream_of(r)));
      spans.push_back(memory.back().device_view());
    }
  }
  std::vector<T> result(int r, const std::vector<device_buffer<T>>& of) {
    return on_host(device_span<const T>(of[r].data(), of[r].size()), world.stream_of(r));
  }
  cohort::local_ranks world;
  std::vector<std::vector<T>> in;
  std::vector<device_buffer<T>> memory;
  std::vector<device_span<T>> spans;
};

template <class T, class Op>
void local(const char* name, const Op& op) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t count : {1, 17, 1000, 65537}) {
      ranks_of_process<T> p(n, count);
      const std::vector<T> expected = folded_in_order<T>(p.in, op);
      for (int again = 0; again < 2; ++again) {
        if (again == 1) {  // in the same buffers, while the first round may still be running
          for (int r = 0; r < n; ++r) cohort::copy_to_device<T>(p.in[r], p.spans[r], p.world.stream_of(r));
        }
        p.world.template all_reduce<T>(p.spans, op);
      }
      for (int r = 0; r < n; ++r) EXPECT(same(p.result(r, p.memory), expected, name, n));

      ranks_of_process<T> q(n, count * static_cast<std::size_t>(n));
      std::vector<device_buffer<T>> out;
      std::vector<device_span<T>> views;
      for (int r = 0; r < n; ++r) {
        out.emplace_back(count);
        views.push_back(out.back().device_view());
      }
      const std::vector<T> whole = folded_in_order<T>(q.in, op);
      q.world.template reduce_scatter<T>(q.spans, views, op);
      for (int r = 0; r < n; ++r) {
        const auto at = whole.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * count);
        EXPECT(same(q.result(r, out), std::vector<T>(at, at + static_cast<std::ptrdiff_t>(count)), name, n));
      }
      device_buffer<T> at_root(count * static_cast<std::size_t>(n));
      q.world.template reduce<T>(q.spans, at_root.device_view(), op, cohort::root{n - 1});
      EXPECT(same(on_host(at_root.device_view(), q.world.stream_of(n - 1)), whole, name, n));
    }
  }
}

void local_moves() {
  for (int n = 1; n <= 8; ++n) {
    const std::size_t count = 33;
    ranks_of_process<int> p(n, count);
    std::vector<device_buffer<int>> out;
    std::vector<device_span<int>> views;
    for (int r = 0; r < n; ++r) {
      out.emplace_back(count * static_cast<std::size_t>(n));
      views.push_back(out.back().device_view());
    }
    p.world.all_gather<int>(p.spans, views);
    std::vector<int> all;
    for (const auto& each : p.in) all.insert(all.end(), each.begin(), each.end());
    for (int r = 0; r < n; ++r) EXPECT(same(p.result(r, out), all, "all_gather", n));

    ranks_of_process<int> q(n, count * static_cast<std::size_t>(n));
    q.world.all_to_all<int>(q.spans, views);
    for (int r = 0; r < n; ++r) {
      std::vector<int> expected;
      for (int from = 0; from < n; ++from) {
        const auto at = q.in[from].begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * count);
        expected.insert(expected.end(), at, at + static_cast<std::ptrdiff_t>(count));
      }
      EXPECT(same(q.result(r, out), expected, "all_to_all", n));
    }
    q.world.broadcast<int>(q.spans, cohort::root{n / 2});
    for (int r = 0; r < n; ++r) EXPECT(same(q.result(r, q.memory), q.in[n / 2], "broadcast", n));
  }
  const cohort::local_ranks two(2);
  EXPECT(throws(
      cohort::errc::invalid_argument, [&] { two.broadcast<int>({}, cohort::root{0}); }, "0 buffers, expected 2"));
}

/// Blocks of which some are zeros, not all whole, at addresses where a lane's elements can be read at once and not.
template <class Blocks, class T, class Op>
void quantised(const Op& op, bool divides) {
  for (int n = 1; n <= 8; ++n) {
    for (const std::size_t count : {1, 127, 129, 4099, 100003}) {
      for (const std::size_t shift : {0, 1}) {
        const cohort::local_ranks world(n);
        const cohort::float8_cut<Blocks> cut(count, n);
        std::vector<std::vector<float>> in;
        std::vector<device_buffer<T>> memory;
        std::vector<device_buffer<std::uint8_t>> bytes;
        std::vector<device_span<T>> spans;
        std::vector<device_span<std::uint8_t>> wires;
        for (int r = 0; r < n; ++r) {
          std::vector<T> mine(shift, T(0.0f));
          in.emplace_back();
          for (const float x : float8_values(r, count)) {
            mine.push_back(T(x));
            in.back().push_back(static_cast<float>(mine.back()));
          }
          memory.push_back(on_device(mine, world.stream_of(r)));
          spans.push_back(memory.back().device_view().subspan(shift, count));
          bytes.emplace_back(cut.wire());
          wires.push_back(bytes.back().device_view());
        }
        cohort::quantised_all_reduce<T, Op, Blocks>(world, spans, wires, op);
        std::vector<T> expected;
        for (const float x : float8_summed<Blocks>(in, divides ? static_cast<float>(n) : 1.0f))
          expected.push_back(T(x));
        for (int r = 0; r < n; ++r) {
          EXPECT(same(on_host(device_span<const T>(spans[r]), world.stream_of(r)), expected, "quantised", n));
        }
      }
    }
  }
  const cohort::local_ranks two(2);
  device_buffer<T> v(300);
  device_buffer<std::uint8_t> small(16);
  const std::vector<device_span<T>> both{v.device_view(), v.device_view()};
  const std::vector<device_span<std::uint8_t>> wires{small.device_view(), small.device_view()};
  EXPECT(throws(
      cohort::errc::invalid_argument, [&] { cohort::quantised_all_reduce<T, Op, Blocks>(two, both, wires, op); },
      "a buffer of wire has 16 bytes", "float8_cut"));
}

}  // namespace

int main(int argc, char**) {
  skip_without_device("device/fold_oracle");
  if (argc > 1) {  // for a checker that takes a hundred times as long
    kernels<cohort::bfloat16>("bfloat16 sum", cohort::folded{cohort::sum{}});
    local_moves();
    quantised<cohort::float8_blocks<>, float>(cohort::sum{}, false);
    return conclude("device/fold_oracle, the short form");
  }
  kernels<float>("float sum", cohort::folded{cohort::sum{}});
  kernels<double>("double max", cohort::max{});
  kernels<std::int16_t>("int16 sum", cohort::sum{});
  kernels<cohort::half>("half average", cohort::average{});
  kernels<cohort::bfloat16>("bfloat16 sum", cohort::folded{cohort::sum{}});
  kernels<std::uint8_t>("uint8 xor", std::bit_xor<>{});
  kernels<affine>("affine", compose{});
  kernels<float>("keep the first", first_of{});
  local<float>("ranks: float", largest_magnitude{});
  local<affine>("ranks: affine", compose{});
  local<cohort::bfloat16>("ranks: bfloat16 sum", cohort::folded{cohort::sum{}});
  local_moves();
  quantised<cohort::float8_blocks<>, float>(cohort::sum{}, false);
  quantised<cohort::float8_blocks<cohort::float8_e5m2, 32>, cohort::bfloat16>(cohort::average{}, true);
  quantised<cohort::float8_blocks<cohort::float8_e4m3, 256>, cohort::half>(cohort::sum{}, false);
  quantised<cohort::float8_blocks<cohort::float8_e4m3, 256>, float>(cohort::sum{}, false);
  return conclude("device/fold_oracle");
}
