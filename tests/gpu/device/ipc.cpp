// SPDX-License-Identifier: BSL-1.0
// Processes on one GPU that read each other's memory: every function against an oracle, also with 8-bit floats between
// them, parts of allocations, buffers that are used again at once, what cannot be shared, and a rank that is lost. Started
// by processes.sh with 2 to 8 ranks; the kernels are made by link_fail/with_fold.cu.
//
//   ipc            everything but the lost rank; also with ranks of one process
//   ipc lose       the last rank ends in the middle, and the others have an error that names it
//   ipc no_device  without a GPU: the error is clean on every rank
#include <cohort/cohort.hpp>
#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/ipc_ranks.hpp>
#include <cohort/gpu/on_host.hpp>
#include <cohort/gpu/quantised_peers.hpp>

#include "../float8_oracle.hpp"
#include "../support.hpp"
#include "../values.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include <unistd.h>

// Prefers the first of two that are equally large: the order of the ranks shows.
namespace my {
struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
}  // namespace my

namespace {

using namespace cohort;
using gpu_test::throws;

template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::size_t block, std::size_t count) {
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(block * count);
  return {at, at + static_cast<std::ptrdiff_t>(count)};
}
/// What rank r has.
std::vector<float> of_rank(std::size_t r, std::size_t count) {
  return gpu_test::values<float>(static_cast<int>(r), count);
}
std::vector<std::vector<float>> of_all(std::size_t ranks, std::size_t count) {
  std::vector<std::vector<float>> all;
  for (std::size_t r = 0; r < ranks; ++r) all.push_back(of_rank(r, count));
  return all;
}
std::vector<float> joined(const std::vector<std::vector<float>>& all) {
  std::vector<float> one;
  for (const auto& each : all) one.insert(one.end(), each.begin(), each.end());
  return one;
}

template <class Backend, class T>
task<std::vector<T>> read(const ipc_ranks<Backend>& ranks, device_span<T> where) {
  std::vector<T> host(where.size());
  copy_to_host<T>(where, std::span(host), ranks.stream());
  const stream_ordered here = ranks.enqueued();
  co_await on_host(here);
  co_return host;
}

template <class Backend>
task<> every_call(const ipc_ranks<Backend>& ranks, std::size_t count) {
  const auto n = static_cast<std::size_t>(ranks.size());
  const auto me = static_cast<std::size_t>(ranks.rank());
  const my::largest_magnitude op;
  // One allocation, of which the shared buffers are parts: handles are of allocations.
  device_buffer<float> memory(16 + 3 * count * n);
  const device_span<float> a = memory.device_view().subspan(16, count);
  const device_span<float> b = memory.device_view().subspan(16 + count, count * n);
  const device_span<float> c = memory.device_view().subspan(16 + 2 * count * n, count * n);
  auto sa = co_await ranks.share(a);
  auto sb = co_await ranks.share(b);
  auto sc = co_await ranks.share(c);
  const auto mine = of_rank(me, count);
  const auto blocks = of_rank(me, count * n);
  const std::vector<float> folded = gpu_test::folded_in_order<float>(of_all(n, count), op);
  const std::vector<float> whole = gpu_test::folded_in_order<float>(of_all(n, count * n), op);
  for (int again = 0; again < 3; ++again) {  // into the same buffers, while the others may still be reading them
    copy_to_device<float>(mine, a, ranks.stream());
    co_await ranks.all_reduce(sa, op);
  }
  EXPECT(gpu_test::same(co_await read(ranks, a), folded, "all_reduce", ranks.size()));

  copy_to_device<float>(blocks, b, ranks.stream());
  co_await ranks.reduce_scatter(sb, sa, op);
  EXPECT(gpu_test::same(co_await read(ranks, a), part_of(whole, me, count), "reduce_scatter", ranks.size()));
  for (int r = 0; r < ranks.size(); ++r) {
    co_await ranks.reduce(sb, c, op, root{r});
    if (r == ranks.rank()) EXPECT(gpu_test::same(co_await read(ranks, c), whole, "reduce", ranks.size()));
  }
  co_await ranks.all_to_all(sb, sc);
  std::vector<float> dealt;
  for (std::size_t r = 0; r < n; ++r) {
    const std::vector<float> block = part_of(of_rank(r, count * n), me, count);
    dealt.insert(dealt.end(), block.begin(), block.end());
  }
  EXPECT(gpu_test::same(co_await read(ranks, c), dealt, "all_to_all", ranks.size()));

  copy_to_device<float>(mine, a, ranks.stream());
  co_await ranks.all_gather(sa, sc);
  EXPECT(gpu_test::same(co_await read(ranks, c), joined(of_all(n, count)), "all_gather", ranks.size()));
  for (int r = 0; r < ranks.size(); ++r) {
    copy_to_device<float>(mine, a, ranks.stream());
    co_await ranks.broadcast(sa, root{r});
    EXPECT(gpu_test::same(co_await read(ranks, a), of_rank(static_cast<std::size_t>(r), count), "broadcast",
                          ranks.size()));
  }
  co_await ranks.unshare(std::move(sa));
  co_await ranks.unshare(std::move(sb));
  co_await ranks.unshare(std::move(sc));
}

/// 8-bit floats between the ranks, at addresses where a lane's elements can be read at once and not.
template <class Blocks, class T, class Op, class Backend>
task<> quantised(const ipc_ranks<Backend>& ranks, Op op, bool divides) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{129}, std::size_t{70001}}) {
    for (const std::size_t shift : {std::size_t{0}, std::size_t{1}}) {
      const float8_cut<Blocks> cut(count, ranks.size());
      std::vector<std::vector<float>> in;
      std::vector<T> mine;
      for (int r = 0; r < ranks.size(); ++r) {
        in.emplace_back();
        for (const float x : gpu_test::float8_values(r, count)) {
          if (r == ranks.rank()) mine.push_back(T(x));
          in.back().push_back(static_cast<float>(T(x)));
        }
      }
      std::vector<T> expected;
      for (const float x : gpu_test::float8_summed<Blocks>(in, divides ? static_cast<float>(ranks.size()) : 1.0f)) {
        expected.push_back(T(x));
      }
      device_buffer<T> memory(count + shift + 1);
      device_buffer<std::uint8_t> codes(cut.wire() + 16);  // more than it needs
      const device_span<T> a = memory.device_view().subspan(shift, count);
      auto sa = co_await ranks.share(a);
      auto wire = co_await ranks.share(codes.device_view());
      for (int again = 0; again < 2; ++again) {
        copy_to_device<T>(mine, a, ranks.stream());
        co_await quantised_all_reduce(ranks, sa, wire, op, Blocks{});
      }
      EXPECT(gpu_test::same(co_await read(ranks, a), expected, "quantised_all_reduce", ranks.size()));
      co_await ranks.unshare(std::move(sa));
      co_await ranks.unshare(std::move(wire));
    }
  }
}

/// Whether the call fails on this rank with such a text.
template <class Task>
task<bool> refused(Task call, std::string text) {
  try {
    co_await call;
  } catch (const error& e) {
    const bool good =
        e.condition() == errc::invalid_argument && std::string_view(e.what()).find(text) != std::string::npos;
    if (!good) std::printf("  it threw %s: %s\n", e.code().message().c_str(), e.what());
    co_return good;
  }
  std::printf("  nothing was thrown\n");
  co_return false;
}

/// What no other process can open is an error on every rank, whichever rank has it, and the next call works.
template <class Backend>
task<> cannot_be_shared(const ipc_ranks<Backend>& ranks) {
  device_buffer<float> good(64);
  const int last = ranks.size() - 1;
  const bool mine = ranks.rank() == last;
  const std::string who = "rank " + std::to_string(last) + " cannot: the buffer is ";
  void* managed = nullptr;
  void* pooled = nullptr;
  detail::check_cuda(cudaMallocManaged(&managed, 256), "cudaMallocManaged");
  detail::check_cuda(cudaMallocAsync(&pooled, 256, ranks.stream()), "cudaMallocAsync");
  std::vector<float> pageable(64);
  pinned_buffer<float> pinned(64);
  const device_span<float> plain = good.device_view();
  auto a = refused(ranks.share(mine ? device_span(static_cast<float*>(managed), 64) : plain), who + "managed memory");
  EXPECT(co_await a);
  auto b = refused(ranks.share(mine ? device_span(static_cast<float*>(pooled), 64) : plain), who + "memory of a pool");
  EXPECT(co_await b);
  auto c = refused(ranks.share(mine ? device_span(pageable.data(), 64) : plain), who + "pageable memory");
  EXPECT(co_await c);
  auto d = refused(ranks.share(mine ? device_span(pinned.data(), 64) : plain), who + "pinned memory");
  EXPECT(co_await d);
  auto shared = co_await ranks.share(mine && last > 0 ? plain.first(32) : plain);
  if (last > 0) {
    auto e = refused(ranks.all_reduce(shared, my::largest_magnitude{}), "32 elements, expected 64");
    EXPECT(co_await e);
  }
  device_buffer<std::uint8_t> bytes(4112);  // enough for the blocks of 16 ranks, and then some
  auto small = co_await ranks.share(bytes.device_view().first(16));
  auto odd = co_await ranks.share(bytes.device_view().subspan(8, 4096));
  auto whole = co_await ranks.share(plain);
  auto f =
      refused(quantised_all_reduce(ranks, whole, small, sum{}), "a buffer of wire has 16 bytes, expected at least");
  EXPECT(co_await f);
  auto g = refused(quantised_all_reduce(ranks, whole, odd, sum{}), "does not start on 16 bytes");
  EXPECT(co_await g);
  // Of the ranks of reduce the root alone has an `out`.
  auto h = refused(ranks.reduce(whole, plain.first(mine ? 32 : 64), my::largest_magnitude{}, root{last}),
                   "rank " + std::to_string(last) + " cannot: reduce: a buffer of out has 32 elements, expected 64");
  EXPECT(co_await h);
  device_buffer<float> result(64);
  co_await ranks.reduce(whole, result.device_view(), my::largest_magnitude{}, root{last});
  co_await ranks.unshare(std::move(whole));
  co_await ranks.unshare(std::move(odd));
  co_await ranks.unshare(std::move(small));
  co_await ranks.unshare(std::move(shared));
  static_cast<void>(cudaFree(managed));
  detail::check_cuda(cudaFreeAsync(pooled, ranks.stream()), "cudaFreeAsync");
}

struct everything {
  template <class Backend>
  task<int> operator()(communicator<Backend> world) const {
    ipc_options o;
    o.on_device = device{0};
    auto ranks = co_await connect_ipc(world, o);
    for (const std::size_t count : {1U, 17U, 1000U, 65537U}) co_await every_call(ranks, count);
    co_await quantised<float8_blocks<>, float>(ranks, sum{}, false);
    co_await quantised<float8_blocks<float8_e5m2, 32>, bfloat16>(ranks, average{}, true);
    co_await cannot_be_shared(ranks);
    co_await ranks.leave();
    co_return gpu_test::failed == 0 ? 0 : 1;
  }
};

struct lost_rank {
  task<int> operator()(communicator<cpu> world) const {
    using namespace std::chrono_literals;
    ipc_options o;
    o.on_device = device{0};
    o.timeout = 20s;
    auto ranks = co_await connect_ipc(world, o);
    device_buffer<float> memory(4096);
    auto shared = co_await ranks.share(memory.device_view());
    co_await ranks.all_reduce(shared, my::largest_magnitude{});
    if (ranks.rank() == ranks.size() - 1) ::_exit(0);
    bool named = false;
    try {
      for (int i = 0; i < 100; ++i) co_await ranks.all_reduce(shared, my::largest_magnitude{});
    } catch (const error& e) {
      std::printf("rank %d: %s\n", ranks.rank(), e.what());
      named = std::string_view(e.what()).find("rank " + std::to_string(ranks.size() - 1)) != std::string::npos;
    }
    EXPECT(named);
    std::fflush(stdout);
    ::_exit(gpu_test::failed == 0 ? 0 : 1);  // there is no world to leave any more
  }
};

struct without_device {
  task<int> operator()(communicator<cpu> world) const {
    bool clean = false;
    try {
      auto ranks = co_await connect_ipc(world);
    } catch (const error& e) {
      const std::string_view text = e.what();
      clean = e.condition() == errc::bad_environment && e.rank() == world.rank() &&
              text.find("rank 0 cannot: ") != std::string::npos && text.find("reaches no GPU") != std::string::npos;
      if (!clean) std::printf("  it threw %s\n", e.what());
    }
    EXPECT(clean);
    co_await world.barrier();  // the world below is as good as before
    co_return gpu_test::conclude("ipc no_device");
  }
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "no_device") {
    if (!gpu_test::has_device()) return run(without_device{});
    std::puts("SKIPPED: ipc no_device: there is a GPU here");
    return 77;
  }
  gpu_test::skip_without_device("device/ipc");
  if (mode == "lose") return run(lost_rank{});
  const everything all;
  for (const int n : {1, 3}) {
    const auto ranks = [&all](communicator<inproc> world) { return all(std::move(world)); };
    EXPECT(run_local(n, ranks) == std::vector<int>(static_cast<std::size_t>(n), 0));
  }
  const auto process = [&all](communicator<cpu> world) { return all(std::move(world)); };
  EXPECT(run(process) == 0);
  return gpu_test::conclude("device/ipc");
}
