// SPDX-License-Identifier: BSL-1.0
// Measures on one GPU what the targets of the GPU side are about, each beside what it is compared with, in one run:
//
//   folds      n operands in one kernel, in bytes per second, beside a copy on the device and beside n-1 pairwise kernels
//   float8     quantise, the fold of 8-bit floats in blocks, and dequantise, in bytes per second, beside a copy
//   optimiser  norm, clip, AdamW and cast fused, beside separate passes
//   wrapper    a call of communicator<nccl>, beside NCCL's own, in host nanoseconds
//   await      from the end of the device's work until the host goes on: by flag, and by CUDA's own ways
//   graph      a step of a hundred collectives, eager and captured, in host microseconds
//
// Usage: gpu_benchmark [SECTION...]      all of them without arguments. One line for each figure: name, value, unit
#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/adamw.cuh>
#include <cohort/gpu/each_index.cuh>
#include <cohort/gpu/fold.cuh>
#include <cohort/gpu/quantised_fold.cuh>
#include <cohort/nccl/reduction_map.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/sync_wait.hpp>
#include <cohort/task.hpp>

#include "allocations.hpp"
#include "await_by.cuh"
#include "measure.cuh"

#include <cub/device/device_for.cuh>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

namespace {

using cohort::device_buffer;
using cohort::device_span;
using namespace gpu_benchmark;

/// Values of some size that differ: what reads and adds zeros all the time draws less power and runs faster.
template <class T>
__global__ void fill_kernel(T* out, std::size_t count, unsigned seed) {
  const std::size_t step = static_cast<std::size_t>(gridDim.x) * blockDim.x;
  for (std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    unsigned x = (static_cast<unsigned>(i) + seed) * 2654435761u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    out[i] = cohort::detail::convert_element<T>(static_cast<float>(x >> 8) * 0x1p-24f - 0.5f);
  }
}
template <class T>
void fill(device_buffer<T>& b, unsigned seed, cudaStream_t s) {
  fill_kernel<<<2048, 256, 0, s>>>(b.data(), b.size(), seed);
  check_cuda(cudaGetLastError(), "fill_kernel");
}

template <class T, class Op>
void fold_of(const char* type, const Op& op, cudaStream_t s) {
  const std::size_t bytes = std::size_t{256} << 20;
  const std::size_t count = bytes / sizeof(T);
  device_buffer<T> slots(16 * count);
  device_buffer<T> out(count);
  fill(slots, 1, s);
  const double copy = device_seconds(s, [&] {
    check_cuda(cudaMemcpyAsync(out.data(), slots.data(), bytes, cudaMemcpyDeviceToDevice, s), "cudaMemcpyAsync");
  });
  const double copied = 2.0 * static_cast<double>(bytes) / copy;
  print(std::string("copy on the device, ") + type, copied / 1e12, "TB/s");
  for (const int n : {2, 4, 8, 16}) {
    const auto from = cohort::fold_sources<T>::of_slots(slots.data(), count, n, nullptr, -1);
    const double moved = static_cast<double>(n + 1) * static_cast<double>(bytes);
    const std::string name = std::string(type) + ", " + std::to_string(n) + " operands";
    const double one = device_seconds(s, [&] { cohort::launch_fold<T, Op>(from, out.data(), count, op, n, s); });
    print("fold, " + name, moved / one / 1e12, "TB/s");
    print("fold, " + name + ", share of the copy", moved / one / copied, "");
    const cohort::detail::fold_vector_at<T, Op> bulk{{cohort::detail::make_applied<T>(op), n}, from, out.data()};
    const double by_bulk = device_seconds(s, [&] {
      check_cuda(cub::DeviceFor::Bulk(count / cohort::detail::fold_width<T>, bulk, s), "DeviceFor::Bulk");
    });
    print("fold by DeviceFor::Bulk, " + name, moved / by_bulk / 1e12, "TB/s");
    const double by_index = device_seconds(s, [&] {
      check_cuda(cohort::detail::for_each_index(count / cohort::detail::fold_width<T>, bulk, s), "for_each_index");
    });
    print("fold by each_index, " + name, moved / by_index / 1e12, "TB/s");
    const auto shifted = cohort::fold_sources<T>::of_slots(slots.data() + 1, count - 1, n, nullptr, -1);
    const double by_element =
        device_seconds(s, [&] { cohort::launch_fold<T, Op>(shifted, out.data(), count - 1, op, n, s); });
    print("fold, buffers of odd addresses, " + name, moved / by_element / 1e12, "TB/s");
    const double fused = device_seconds(s, [&] {
      cohort::launch_fused_fold<cohort::accumulator_t<Op, T>>(from, out.data(), count, cohort::sum{},
                                                              cohort::unchanged{}, cohort::unchanged{}, {}, s);
    });
    print("fold by a kernel of its own, " + name, moved / fused / 1e12, "TB/s");
    const double pairs = device_seconds(s, [&] {
      for (int r = 1; r < n; ++r) {
        cohort::fold_sources<T> two;
        two.ranks = 2;
        two.listed[0] = r == 1 ? slots.data() : out.data();
        two.listed[1] = slots.data() + static_cast<std::size_t>(r) * count;
        cohort::launch_fold<T, Op>(two, out.data(), count, op, 2, s);
      }
    });
    print("pairwise kernels over one fold, " + name, pairs / one, "times");
  }
}

void folds() {
  const cohort::stream s;
  fold_of<float>("float", cohort::folded{cohort::sum{}}, s.get());
  fold_of<cohort::bfloat16>("bfloat16", cohort::folded{cohort::sum{}}, s.get());
}

/// The three kernels of a rank of eight, whose piece of the fold is an eighth.
void float8() {
  using blocks = cohort::float8_blocks<>;
  const cohort::stream s;
  const std::size_t count = std::size_t{1} << 27;
  const int ranks = 8;
  device_buffer<float> v(count);
  const cohort::float8_cut<blocks> cut(count, ranks);
  device_buffer<std::uint8_t> wire(cut.wire());
  device_buffer<std::uint8_t> piece(cut.piece);
  const std::size_t bytes = count * sizeof(float);
  device_buffer<float> other(count);
  fill(v, 2, s.get());
  const double copy = device_seconds(s.get(), [&] {
    check_cuda(cudaMemcpyAsync(other.data(), v.data(), bytes, cudaMemcpyDeviceToDevice, s.get()), "cudaMemcpyAsync");
  });
  const double copied = 2.0 * static_cast<double>(bytes) / copy;
  const auto pieces = cohort::fold_sources<std::uint8_t>::of_slots(wire.data(), cut.piece, ranks, nullptr, -1);
  const auto report = [&](const char* name, double moved, double seconds) {
    print(std::string("float8, ") + name, moved / seconds / 1e12, "TB/s");
    print(std::string("float8, ") + name + ", share of the copy", moved / seconds / copied, "");
  };
  const double both = static_cast<double>(bytes + cut.wire());
  report("quantise", both, device_seconds(s.get(), [&] {
           cohort::launch_quantise<blocks, float>(std::as_const(v).device_view(), cut, wire.data(), s.get());
         }));
  report("fold of 8", static_cast<double>(cut.wire() + cut.piece), device_seconds(s.get(), [&] {
           cohort::launch_quantised_fold<blocks>(pieces, cut, piece.data(), cohort::sum{}, s.get());
         }));
  report("dequantise", both, device_seconds(s.get(), [&] {
           cohort::launch_dequantise<blocks, float>(pieces, cut, v.device_view(), s.get());
         }));
}

/// The gradient times the clip coefficient, in a pass of its own.
__global__ void scale_pass(float* g, const cohort::adamw_state* state, std::size_t n) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n / 4) {
    float4 x = reinterpret_cast<float4*>(g)[i];
    const float c = state->clip;
    x = {x.x * c, x.y * c, x.z * c, x.w * c};
    reinterpret_cast<float4*>(g)[i] = x;
  }
}

void optimiser() {
  const cohort::stream s;
  const std::size_t n = std::size_t{1} << 28;
  device_buffer<float> w(n), m(n), v(n), g(n);
  device_buffer<cohort::bfloat16> slots(4 * n), low(n);
  device_buffer<float> norm(1 + cohort::squared_norm_parts);
  device_buffer<cohort::adamw_state> state(1);
  for (device_buffer<float>* b : {&w, &m, &v, &g}) {
    check_cuda(cudaMemsetAsync(b->data(), 0, n * 4, s.get()), "cudaMemsetAsync");
  }
  fill(slots, 3, s.get());
  check_cuda(cudaMemsetAsync(state.data(), 0, sizeof(cohort::adamw_state), s.get()), "cudaMemsetAsync");
  const cohort::adamw_settings settings;
  const auto from = cohort::fold_sources<cohort::bfloat16>::of_slots(slots.data(), n, 4, nullptr, -1);
  const cohort::squared_norm into{norm.data(), norm.data() + 1};
  cohort::fold_sources<float> of_gradient;
  of_gradient.ranks = 1;
  of_gradient.listed[0] = g.data();
  cohort::fold_sources<float> of_weight = of_gradient;
  of_weight.listed[0] = w.data();
  const cohort::adamw_buffers<cohort::bfloat16> b{w.device_view(), m.device_view(), v.device_view(),
                                                  std::as_const(g).device_view(), low.device_view()};
  const auto begin = [&] {
    cohort::begin_adamw(state.device_view(), device_span<const float>(norm.data(), 1), settings, s.get());
  };
  const double fused = device_seconds(
      s.get(),
      [&] {
        cohort::launch_fused_fold<float>(from, g.data(), n, cohort::sum{}, cohort::unchanged{}, cohort::times{0.25f},
                                         into, s.get());
        begin();
        cohort::launch_adamw(b, std::as_const(state).device_view(), settings, s.get());
      },
      3);
  const double separate = device_seconds(
      s.get(),
      [&] {
        cohort::launch_fused_fold<float>(from, g.data(), n, cohort::sum{}, cohort::unchanged{}, cohort::unchanged{}, {},
                                         s.get());
        cohort::launch_fused_fold<float>(of_gradient, g.data(), n, cohort::sum{}, cohort::unchanged{},
                                         cohort::times{0.25f}, {}, s.get());
        cohort::launch_fused_fold<float>(of_gradient, g.data(), n, cohort::sum{}, cohort::unchanged{},
                                         cohort::unchanged{}, into, s.get());
        begin();
        scale_pass<<<static_cast<unsigned>(n / 4 / 256), 256, 0, s.get()>>>(g.data(), state.data(), n);
        cohort::launch_adamw(b, std::as_const(state).device_view(), settings, s.get());
        cohort::launch_fused_fold<float>(of_weight, low.data(), n, cohort::sum{}, cohort::unchanged{},
                                         cohort::unchanged{}, {}, s.get());
      },
      3);
  print("average, norm, clip, AdamW, cast: fused", fused * 1e3, "ms");
  print("average, norm, clip, AdamW, cast: separate passes", separate * 1e3, "ms");
  print("separate passes over fused", separate / fused, "times");
}

cohort::communicator<cohort::nccl> alone(bool blocking = false) {
  cohort::memory_store meeting;
  cohort::nccl_options o;
  o.on_device = cohort::device{0};
  o.blocking = blocking;
  return cohort::connect<cohort::nccl>(meeting, 0, 1, o);
}

/// The same without this library.
ncclComm_t raw_alone(int blocking) {
  ncclUniqueId id;
  ncclConfig_t how = NCCL_CONFIG_INITIALIZER;
  how.blocking = blocking;
  ncclComm_t comm = nullptr;
  cohort::detail::check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
  for (ncclResult_t code = ncclCommInitRankConfig(&comm, 1, id, 0, &how); code == ncclInProgress;) {
    ncclCommGetAsyncError(comm, &code);
  }
  return comm;
}

/// A call beside NCCL's own, in the same kind of communicator.
void wrapper_of(bool blocking) {
  const std::string kind = blocking ? ", blocking" : ", not blocking";
  auto world = alone(blocking);
  const cohort::stream s;
  const cohort::on here{s};
  device_buffer<float> a(1024), b(1024);
  const auto by_cohort = [&] {
    (void)world.group(
        [&](const auto& g) {
          (void)g.send(a, cohort::to{0}, here);
          (void)g.recv(b, cohort::from{0}, here);
        },
        here);
  };
  const ncclComm_t raw = raw_alone(blocking ? 1 : 0);
  const auto by_nccl = [&] {
    ncclGroupStart();
    ncclSend(a.data(), 4096, ncclInt8, 0, raw, s.get());
    ncclRecv(b.data(), 4096, ncclInt8, 0, raw, s.get());
    for (ncclResult_t code = ncclGroupEnd(); code == ncclInProgress; ncclCommGetAsyncError(raw, &code)) sched_yield();
  };
  by_cohort();
  by_nccl();
  s.synchronize();
  std::vector<double> cohorts, nccls, more;
  const int rounds = blocking ? 101 : 21;
  for (int i = 0; i < rounds; ++i) {  // in turn, so that what drifts drifts for both
    nccls.push_back(host_nanoseconds(s.get(), by_nccl, 50, 20));
    cohorts.push_back(host_nanoseconds(s.get(), by_cohort, 50, 20));
    more.push_back((cohorts.back() - nccls.back()) / 3);
  }
  print("a group of a send and a receive, NCCL's own" + kind, median(nccls), "ns");
  print("a group of a send and a receive, cohort" + kind, median(cohorts), "ns");
  print("what cohort adds to each of the three calls" + kind, median(more), "ns");
  std::sort(more.begin(), more.end());
  print("  quartiles" + kind, more[more.size() / 4], "ns");
  print("  quartiles" + kind, more[more.size() * 3 / 4], "ns");
  const long before = allocations();
  for (int i = 0; i < 100; ++i) by_nccl();
  const long between = allocations();
  for (int i = 0; i < 100; ++i) by_cohort();
  const long after = allocations();
  print("allocations in 100 groups, NCCL's own" + kind, static_cast<double>(between - before), "");
  print("allocations in 100 groups, cohort" + kind, static_cast<double>(after - between), "");
  s.synchronize();
  static_cast<void>(ncclCommAbort(raw));
}

void wrapper() {
  {
    auto world = alone();
    const cohort::stream s;
    device_buffer<float> a(1024);
    const auto av = a.device_view();
    const cohort::on here{s};
    const auto call = [&] { (void)world.all_reduce(av, cohort::sum{}, here); };
    print("a call in place in a world of one, no NCCL", host_nanoseconds(s.get(), call, 10000, 50), "ns");
  }
  wrapper_of(false);
  wrapper_of(true);
}

cohort::task<> awaiting(const cohort::host_wait& w) { co_await w; }

void await() {
  auto world = alone();
  const cohort::stream s;
  std::printf("completion is seen by %s\n", world.host_wait_by().c_str());
  await_by("cudaStreamSynchronize", s.get(), [&] { return [&] { check_cuda(cudaStreamSynchronize(s.get()), ""); }; });
  await_by("polling an event", s.get(), [&] {
    auto e = std::make_shared<cohort::detail::event>();
    e->record(s.get());
    return [e] {
      while (e->query() == cudaErrorNotReady) {}
    };
  });
  await_by("cudaLaunchHostFunc", s.get(), [&] {
    auto done = std::make_shared<std::atomic<bool>>(false);
    check_cuda(cudaLaunchHostFunc(
                   s.get(), [](void* p) { static_cast<std::atomic<bool>*>(p)->store(true); }, done.get()),
               "");
    return [done] {
      while (!done->load()) {}
    };
  });
  await_by("on_host, ready() polled", s.get(), [&] {
    auto w = std::make_shared<cohort::host_wait>(cohort::on_host(world.enqueued(cohort::on{s})));
    return [w] {
      while (!w->ready()) {}
    };
  });
  const auto waits = [&] {
    auto w = std::make_shared<cohort::host_wait>(cohort::on_host(world.enqueued(cohort::on{s})));
    return [w] { w->wait(); };
  };
  const auto awaits = [&] {
    auto w = std::make_shared<cohort::host_wait>(cohort::on_host(world.enqueued(cohort::on{s})));
    return [w] { cohort::sync_wait(awaiting(*w)); };
  };
  await_by("on_host, wait()", s.get(), waits);
  await_by("on_host, co_await below sync_wait", s.get(), awaits);
  await_by("on_host, wait(), work of 10 ms", s.get(), waits, 10e-3, 100);
  await_by("on_host, co_await, work of 10 ms", s.get(), awaits, 10e-3, 100);
}

void graph() {
  auto world = alone(true);  // the quicker of the two where it is eager
  const cohort::stream s;
  const cohort::on here{s};
  device_buffer<float> a(1 << 16), b(1 << 16);
  const auto step = [&] {
    for (int i = 0; i < 100; ++i) {
      (void)world.group(
          [&](const auto& g) {
            (void)g.send(a, cohort::to{0}, here);
            (void)g.recv(b, cohort::from{0}, here);
          },
          here);
    }
  };
  step();
  s.synchronize();
  cudaGraph_t made = nullptr;
  cudaGraphExec_t ready = nullptr;
  check_cuda(cudaStreamBeginCapture(s.get(), cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
  step();
  check_cuda(cudaStreamEndCapture(s.get(), &made), "cudaStreamEndCapture");
  check_cuda(cudaGraphInstantiate(&ready, made, 0), "cudaGraphInstantiate");
  check_cuda(cudaGraphLaunch(ready, s.get()), "cudaGraphLaunch");
  s.synchronize();
  const double eager = host_nanoseconds(s.get(), step, 1, 30);
  const double captured = host_nanoseconds(
      s.get(), [&] { check_cuda(cudaGraphLaunch(ready, s.get()), "cudaGraphLaunch"); }, 1, 30);
  print("a step of 100 collectives, eager", eager / 1e3, "host us");
  print("a step of 100 collectives, captured", captured / 1e3, "host us");
  print("eager over captured", eager / captured, "times");
  // Before its communicator, which would wait for it.
  static_cast<void>(cudaGraphExecDestroy(ready));
  static_cast<void>(cudaGraphDestroy(made));
}

}  // namespace

int main(int argc, char** argv) {
  int devices = 0;
  if (const cudaError_t code = cudaGetDeviceCount(&devices); code != cudaSuccess || devices == 0) {
    std::printf("SKIPPED: gpu_benchmark: no GPU here (cudaGetDeviceCount: %s)\n", cudaGetErrorString(code));
    return 77;
  }
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  std::printf("%s, %d SMs, NCCL %s\n", properties.name, properties.multiProcessorCount,
              cohort::detail::nccl_version_text(cohort::detail::nccl_version()).c_str());
  const std::pair<const char*, void (*)()> sections[] = {{"folds", folds},         {"float8", float8},
                                                         {"optimiser", optimiser}, {"wrapper", wrapper},
                                                         {"await", await},         {"graph", graph}};
  int failed = 0;
  for (const auto& [name, run] : sections) {
    bool wanted = argc == 1;
    for (int i = 1; i < argc; ++i) wanted = wanted || std::strcmp(argv[i], name) == 0;
    if (!wanted) continue;
    std::printf("--- %s\n", name);
    try {
      run();
    } catch (const std::exception& e) {
      std::printf("%s FAILED: %s\n", name, e.what());
      failed = 1;
    }
  }
  return failed;
}
