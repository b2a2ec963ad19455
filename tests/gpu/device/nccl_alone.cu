// SPDX-License-Identifier: BSL-1.0
// NCCL on one device: a world of one with every call, messages of a rank to itself through NCCL's own kernels, a step
// captured in a graph, waits on the host, deadlines that abort, and what is refused when it runs.
#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/fold.cuh>
#include <cohort/store/memory_store.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>

#include "../spin.cuh"
#include "../support.hpp"
#include "../values.hpp"

#include <chrono>
#include <numeric>
#include <vector>

namespace {

using namespace gpu_test;
using namespace std::chrono_literals;
using cohort::communicator;
using cohort::device_buffer;
using cohort::device_span;
using cohort::errc;
using cohort::nccl;
using cohort::root;

communicator<nccl> alone(const char* name, bool blocking = false) {
  cohort::memory_store meeting;
  cohort::nccl_options o;
  o.on_device = cohort::device{0};
  o.blocking = blocking;
  o.name = name;
  return cohort::connect<nccl>(meeting, 0, 1, o);
}

std::vector<float> counting(std::size_t n) {
  std::vector<float> v(n);
  std::iota(v.begin(), v.end(), 1.0f);
  return v;
}
std::vector<float> read(communicator<nccl>& world, const cohort::stream& s, device_span<const float> where) {
  std::vector<float> host(where.size());
  cohort::on_host(world.enqueued(cohort::on{s})).wait();
  cohort::copy_to_host(where, std::span(host), s.get());
  s.synchronize();
  return host;
}

cohort::task<> every_call(communicator<nccl>& world, const cohort::stream& s) {
  // Sizes at which NCCL's own one-rank kernels lose the tail of the vector.
  const std::vector<float> start = counting(1048577);
  device_buffer<float> a(start.size());
  device_buffer<float> b(start.size());
  const auto av = a.device_view();
  const auto bv = b.device_view();
  const std::vector<std::size_t> counts{start.size()};
  const cohort::on here{s};
  const auto check = [&](const char* what, const device_buffer<float>& of, float times) {
    const std::vector<float> now = read(world, s, of.device_view());
    bool good = true;
    for (std::size_t i = 0; i < now.size(); ++i) good = good && now[i] == start[i] * times;
    if (!good) std::printf("  %s is wrong\n", what);
    EXPECT(good);
  };
  const auto reset = [&] {
    cohort::copy_to_device<float>(start, av, s.get());
    cohort::detail::check_cuda(cudaMemsetAsync(b.data(), 0, bv.size_bytes(), s.get()), "cudaMemsetAsync");
  };
  reset();
  co_await world.all_reduce(a, cohort::sum{}, here);
  check("all_reduce sum", a, 1);
  co_await world.all_reduce(a, b, cohort::average{}, here);
  check("all_reduce average", b, 1);
  reset();
  const cohort::premultiplied_sum twice{2.0f};
  co_await world.all_reduce(a, b, twice, here);
  check("all_reduce premultiplied", b, 2);
  reset();
  co_await world.all_reduce(a, b, largest_magnitude{}, here);
  check("all_reduce functor", b, 1);
  reset();
  co_await world.reduce(a, b, cohort::sum{}, root{0}, here);
  check("reduce", b, 1);
  reset();
  co_await world.reduce_scatter(a, b, cohort::sum{}, here);
  check("reduce_scatter", b, 1);
  reset();
  co_await world.reduce_scatter_v(a, b, counts, cohort::sum{}, here);
  check("reduce_scatter_v", b, 1);
  reset();
  co_await world.scan(a, b, cohort::sum{}, here);
  check("scan", b, 1);
  reset();
  co_await world.exclusive_scan(a, b, cohort::sum{}, here);
  check("exclusive_scan", b, 0);
  reset();
  co_await world.exclusive_scan(a, b, largest_magnitude{}, cohort::initial{0.0f}, here);
  check("exclusive_scan from a value", b, 0);
  reset();
  co_await world.broadcast(a, root{0}, here);
  check("broadcast", a, 1);
  co_await world.all_gather(a, b, here);
  check("all_gather", b, 1);
  reset();
  co_await world.all_gather_v(a, b, counts, here);
  check("all_gather_v", b, 1);
  reset();
  co_await world.gather(a, b, root{0}, here);
  check("gather", b, 1);
  reset();
  co_await world.gather_v(a, b, counts, root{0}, here);
  check("gather_v", b, 1);
  reset();
  co_await world.scatter(a, b, root{0}, here);
  check("scatter", b, 1);
  reset();
  co_await world.scatter_v(a, counts, b, root{0}, here);
  check("scatter_v", b, 1);
  reset();
  co_await world.all_to_all(a, b, here);
  check("all_to_all", b, 1);
  reset();
  co_await world.all_to_all_v(a, counts, b, counts, here);
  check("all_to_all_v", b, 1);
  reset();
  co_await world.exchange(a, cohort::to{0}, b, cohort::from{0}, here);
  check("exchange", b, 1);
  std::vector<device_span<float>> list{bv};
  reset();
  co_await world.all_gather(a, list, here);
  check("all_gather into a list", b, 1);
  reset();
  co_await world.gather(a, list, root{0}, here);
  check("gather into a list", b, 1);
  list[0] = av;
  reset();
  co_await world.scatter(list, b, root{0}, here);
  check("scatter of a list", b, 1);
  reset();
  co_await world.reduce_scatter(list, b, cohort::sum{}, here);
  check("reduce_scatter of a list", b, 1);
  co_await world.all_reduce_coalesced(list, cohort::sum{}, here);
  check("all_reduce_coalesced", a, 1);
  co_await cohort::on_host(world.barrier(here));
}

// A message to oneself goes through NCCL's kernel for messages.
cohort::task<> self_messages(communicator<nccl>& world, const cohort::stream& s) {
  for (const std::size_t n : {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 22}) {
    const std::vector<float> start = counting(n);
    device_buffer<float> a(n);
    device_buffer<float> b(n);
    cohort::copy_to_device<float>(start, a.device_view(), s.get());
    const cohort::on here{s};
    const auto both = [&](const communicator<nccl>& g) {
      (void)g.send(a, cohort::to{0}, here);
      (void)g.recv(b, cohort::from{0}, here);
    };
    co_await cohort::on_host(world.group(both, here));
    EXPECT(read(world, s, b.device_view()) == start);
  }
}

// Tags decide which message is whose, in whatever order a batch names them.
cohort::task<> tagged_messages(communicator<nccl>& world, const cohort::stream& s) {
  const std::size_t n = 1000;
  const std::vector<float> start = counting(2 * n);
  device_buffer<float> a(2 * n);
  device_buffer<float> b(2 * n);
  cohort::copy_to_device<float>(start, a.device_view(), s.get());
  const auto av = a.device_view();
  const auto bv = b.device_view();
  const auto ab = cohort::sending(av.first(n), cohort::to{0}, cohort::tag{7});
  const auto cd = cohort::sending(av.subspan(n, n), cohort::to{0}, cohort::tag{3});
  auto both = world.batch(cohort::receiving(bv.subspan(n, n), cohort::from{0}, cohort::tag{3}), ab, cd,
                          cohort::receiving(bv.first(n), cohort::from{0}, cohort::tag{7}), cohort::on{s});
  EXPECT(both.size() == 4);
  co_await both.all();
  co_await cohort::on_host(both);
  EXPECT(read(world, s, bv) == start);
}

cohort::task<> captured(communicator<nccl>& world, const cohort::stream& s) {
  const std::size_t n = 4096;
  device_buffer<float> a(n);
  device_buffer<float> b(n);
  cohort::copy_to_device<float>(counting(n), a.device_view(), s.get());
  const cohort::on here{s};
  const auto step = [&] {
    const auto both = [&](const communicator<nccl>& g) {
      (void)g.send(a, cohort::to{0}, here);
      (void)g.recv(b, cohort::from{0}, here);
    };
    (void)world.group(both, here);
    const cohort::premultiplied_sum twice{2.0f};
    (void)world.all_reduce(b, a, twice, here);
  };
  step();  // once before: connections, occupancy, scratch memory
  s.synchronize();
  cudaGraph_t graph = nullptr;
  cohort::detail::check_cuda(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  step();
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)cohort::on_host(world.enqueued(here)); }, "on_host", "captured",
      "await the launch of the graph"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.barrier(here, cohort::timeout{1s}); }, "timeout{}", "captured"));
  cohort::detail::check_cuda(cudaStreamEndCapture(s.get(), &graph), "cudaStreamEndCapture");
  cudaGraphExec_t ready = nullptr;
  cohort::detail::check_cuda(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
  cohort::copy_to_device<float>(counting(n), a.device_view(), s.get());
  for (int i = 0; i < 3; ++i) cohort::detail::check_cuda(cudaGraphLaunch(ready, s.get()), "cudaGraphLaunch");
  co_await cohort::on_host(world.enqueued(here));
  const std::vector<float> now = read(world, s, a.device_view());
  bool good = true;
  for (std::size_t i = 0; i < n; ++i) good = good && now[i] == 8.0f * static_cast<float>(i + 1);
  EXPECT(good);
  static_cast<void>(cudaGraphExecDestroy(ready));
  static_cast<void>(cudaGraphDestroy(graph));
}

// A stream that is held up past the deadline: the communicator is aborted, and every later call says why.
void deadlines(bool blocking) {
  communicator<nccl> world = alone("deadline", blocking);
  const cohort::stream s;
  hold_up hold(s.get());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT(throws(
      errc::timed_out, [&] { cohort::on_host(world.enqueued(cohort::on{s}), cohort::timeout{100ms}).wait(); },
      "on rank 0 of 1", "after 100 ms"));
  EXPECT(std::chrono::steady_clock::now() - begin < 5s);
  EXPECT(world.failed());
  EXPECT(throws(
      errc::timed_out, [&] { (void)world.barrier(); }, "first cause", "after 100 ms"));
  hold.let_go();
  s.synchronize();

  // timeout{} with the call: nobody awaits, and it is aborted all the same.
  communicator<nccl> second = alone("watched", blocking);
  hold_up again(s.get());
  device_buffer<float> v(16);
  (void)second.all_reduce(v, cohort::sum{}, cohort::on{s}, cohort::timeout{50ms});
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (!second.failed() && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  EXPECT(second.failed());
  again.let_go();
  s.synchronize();

  communicator<nccl> third = alone("aborted", blocking);
  third.abort();
  EXPECT(throws(
      errc::cancelled, [&] { (void)third.barrier(); }, "abort() was called"));
}

// NCCL waits for the graphs that hold its calls, even to abort. A communicator that goes before its graph does not wait for
// ever.
void goes_before_its_graph(bool blocking) {
  cohort::memory_store meeting;
  cohort::nccl_options o;
  o.on_device = cohort::device{0};
  o.timeout = 500ms;
  o.blocking = blocking;
  const cohort::stream s;
  device_buffer<float> a(64);
  device_buffer<float> b(64);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  std::chrono::steady_clock::time_point begin;
  {
    const auto world = cohort::connect<nccl>(meeting, 0, 1, o);
    const cohort::on here{s};
    const auto both = [&](const communicator<nccl>& g) {
      (void)g.send(a, cohort::to{0}, here);
      (void)g.recv(b, cohort::from{0}, here);
    };
    (void)world.group(both, here);
    s.synchronize();
    cohort::detail::check_cuda(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    (void)world.group(both, here);
    cohort::detail::check_cuda(cudaStreamEndCapture(s.get(), &graph), "cudaStreamEndCapture");
    cohort::detail::check_cuda(cudaGraphInstantiate(&ready, graph, 0), "cudaGraphInstantiate");
    cohort::detail::check_cuda(cudaGraphLaunch(ready, s.get()), "cudaGraphLaunch");
    s.synchronize();
    begin = std::chrono::steady_clock::now();
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT(took < 5s);
  std::printf("a communicator that went before its graph took %.0f ms\n",
              std::chrono::duration<double, std::milli>(took).count());
  static_cast<void>(cudaGraphExecDestroy(ready));
  static_cast<void>(cudaGraphDestroy(graph));
}

void refused(communicator<nccl>& world) {
  device_buffer<float> v(6);
  std::vector<float> host(6);
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.all_reduce(device_span(host.data(), 6), cohort::sum{}); },
      "pageable memory of the host", "expected the memory of device 0"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.broadcast(device_span<float>(nullptr, 3), root{0}); },
      "null pointer with 3 elements"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.broadcast(v, root{1}); }, "root 1: expected 0..0"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.send(v, cohort::to{0}); }, "this rank itself", "exchange"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.all_gather(v.device_view().first(2), v); }, "out has 6 elements",
      "expected 2"));
  EXPECT(throws(
      errc::invalid_argument,
      [&] { (void)world.all_reduce(v.device_view().first(4), v.device_view().subspan(2, 4), cohort::sum{}); },
      "overlap"));
  const std::vector<int> counts{2, 4};
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.all_gather_v(v, v, counts); }, "counts has 2 entries, expected 1"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.barrier(cohort::timeout{0s}); }, "more than zero"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.batch(cohort::sending(v, cohort::to{0}, cohort::tag{7})); },
      "batch on 'world', rank 0 of 1", "sends itself 24 bytes under tag 7 and receives nothing", "into one batch"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.batch(cohort::sending(v, cohort::to{0}, cohort::tag{-7})); },
      "tag -7: expected 0 or more"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.batch(cohort::receiving(v, cohort::from{1})); },
      "source 1: expected 0..0"));
  const auto divided = [&](const communicator<nccl>& g) { (void)g.split(cohort::color{0}); };
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.duplicate().group(divided); }, "split on", "within group()",
      "outside of the group"));
  const std::vector<device_span<float>> two{v.device_view(), v.device_view()};
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)world.all_gather(v, two); }, "out has 2 buffers, expected 1"));
  EXPECT(!world.failed());
}

void smaller_ones(communicator<nccl>& world) {
  communicator<nccl> half = world.split(cohort::color{3});
  EXPECT(half.rank() == 0 && half.size() == 1 && half.name() == "world/3");
  const communicator<nccl> none = world.split(cohort::no_color);
  EXPECT(!none.is_member());
  communicator<nccl> copy = world.duplicate();
  EXPECT(copy.size() == 1 && copy.on_device().index == 0);
  communicator<nccl> own = copy.subgroup(cohort::ranks{0});
  EXPECT(own.size() == 1 && own.rank() == 0 && own.name() == "world/copy/subgroup" && own.world_rank_of(0) == 0);
  EXPECT(own.timeout_after() == world.timeout_after() && !own.poll());
  EXPECT(half.world_rank_of(0) == 0 && copy.rank_of(0) == 0 && copy.rank_of(1) == -1);
  auto window = world.make_window<float>(1 << 20);
  EXPECT(window.data() != nullptr && window.size() == 1 << 20);
  cohort::on_host(copy.all_reduce(window, cohort::sum{})).wait();
  EXPECT(!window.registered());  // there is nobody to register it with
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)window.native_window(); }, "an unregistered window of 1048576 elements",
      "rank 0 of 1"));
}

}  // namespace

int main() {
  skip_without_device("device/nccl_alone");
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const bool blocking : {false, true}) {
    {
      communicator<nccl> world = alone("world", blocking);
      std::printf("NCCL %s, %s; the host sees completion by %s\n",
                  cohort::detail::nccl_version_text(cohort::detail::nccl_version()).c_str(),
                  blocking ? "blocking" : "not blocking", world.host_wait_by().c_str());
      const cohort::stream s;
      cohort::sync_wait(every_call(world, s));
      cohort::sync_wait(self_messages(world, s));
      cohort::sync_wait(tagged_messages(world, s));
      cohort::sync_wait(captured(world, s));
      refused(world);
      smaller_ones(world);
    }
    deadlines(blocking);
    goes_before_its_graph(blocking);
  }
  return conclude("device/nccl_alone");
}
