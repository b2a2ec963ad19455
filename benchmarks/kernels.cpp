// SPDX-License-Identifier: BSL-1.0
// How fast one core combines arrays: the k-ary kernel of detail/fold_many.hpp by type, functor, number of sources and
// place of the data, beside the plain scalar loop and copies. Prints 10^9 bytes per second, read and written together.
//   kernels [--quick]
#include <cohort/detail/fold.hpp>
#include <cohort/detail/stream_store.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;

struct user_sum {  // a functor that the library does not know
  template <class T>
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
};

double seconds_per_round = 0.03;

/// The best of five rounds: the rate that the core can reach, whatever else the machine does.
template <class F>
double gigabytes_per_second(double bytes, const F& f) {
  f();
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    int calls = 0;
    const auto start = steady::now();
    double taken = 0;
    do {
      f();
      ++calls;
      taken = std::chrono::duration<double>(steady::now() - start).count();
    } while (taken < seconds_per_round);
    best = std::min(best, taken / calls);
  }
  return bytes / best / 1e9;
}

struct place {
  const char* name;
  std::size_t bytes;  // of one array
};
constexpr place places[] = {{"first-level cache", 4096}, {"second-level", 128 * 1024}, {"beyond", 16 << 20}};

template <class T, class Op>
[[gnu::noinline]] void scalar(T* dst, const std::byte* const* sources, int k, std::size_t count, const Op& op) {
  using wide = cohort::accumulator_t<Op, T>;
  for (std::size_t i = 0; i < count; ++i) {
    wide value = static_cast<wide>(reinterpret_cast<const T*>(sources[0])[i]);
    for (int j = 1; j < k; ++j) value = op(value, static_cast<wide>(reinterpret_cast<const T*>(sources[j])[i]));
    dst[i] = static_cast<T>(value);
    asm volatile("" ::: "memory");  // one element at a time
  }
}

template <class T, class Op>
void measure(const char* type, const char* functor, const Op& op) {
  const cohort::detail::reducer r = cohort::detail::make_reducer<T>(op);
  for (const place& where : places) {
    const std::size_t count = where.bytes / sizeof(T);
    std::vector<std::vector<T>> arrays(9, std::vector<T>(count + 64 / sizeof(T), T(1)));
    std::vector<const std::byte*> sources;
    for (const auto& each : arrays) {
      void* start = const_cast<T*>(each.data());
      std::size_t room = where.bytes + 64;
      sources.push_back(static_cast<const std::byte*>(std::align(64, where.bytes, start, room)));
    }
    std::byte* const dst = const_cast<std::byte*>(sources[8]);
    std::printf("| %s | %s | %s |", type, functor, where.name);
    for (const int k : {2, 3, 4, 8}) {
      const double bytes = static_cast<double>((static_cast<std::size_t>(k) + 1) * where.bytes);
      std::printf(" %.1f |", gigabytes_per_second(bytes, [&] { r.fold_many(r.op, dst, sources.data(), k, count); }));
    }
    for (const int k : {2, 8}) {
      const double bytes = static_cast<double>((static_cast<std::size_t>(k) + 1) * where.bytes);
      std::printf(
          " %.1f |", gigabytes_per_second(bytes, [&] {
            r.fold_past_caches(r.op, {&dst, 1}, {sources.data(), static_cast<std::size_t>(k)}, count, nullptr, 0);
          }));
    }
    std::printf(" %.1f |", gigabytes_per_second(3.0 * static_cast<double>(where.bytes), [&] {
                  r.fold(r.op, dst, sources[0], count, cohort::collective::side::left);
                }));
    std::printf(" %.1f |\n", gigabytes_per_second(3.0 * static_cast<double>(where.bytes), [&] {
                  scalar(reinterpret_cast<T*>(dst), sources.data(), 2, count, op);
                }));
    std::fflush(stdout);
  }
}

void measure_copies() {
  for (const place& where : places) {
    std::vector<std::byte> from(where.bytes, std::byte{1}), to(where.bytes);
    const double bytes = 2.0 * static_cast<double>(where.bytes);
    const double plain = gigabytes_per_second(bytes, [&] {
      std::memcpy(to.data(), from.data(), where.bytes);
      asm volatile("" ::"r"(to.data()) : "memory");
    });
    const double streamed = gigabytes_per_second(bytes, [&] {
      cohort::detail::stream_copy(to.data(), from.data(), where.bytes);
      cohort::detail::stream_fence();
    });
    std::printf("| %s | %.1f | %.1f |\n", where.name, plain, streamed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--quick") seconds_per_round = 0.003;
  std::printf("| array of | memcpy | stream_copy |\n| --- | ---: | ---: |\n");
  measure_copies();
  std::printf(
      "\n| type | functor | data in | k=2 | 3 | 4 | 8 | streamed k=2 | 8 | two-operand fold | scalar |\n"
      "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  measure<float>("float", "sum", cohort::sum{});
  measure<float>("float", "user's", user_sum{});
  measure<double>("double", "sum", cohort::sum{});
  measure<std::int32_t>("int32", "sum", cohort::sum{});
  measure<std::int8_t>("int8", "max", cohort::max{});
  measure<float>("float", "max", cohort::max{});
  measure<cohort::half>("half", "sum", cohort::sum{});
  measure<cohort::bfloat16>("bfloat16", "sum", cohort::sum{});
  measure<cohort::bfloat16>("bfloat16", "user's", user_sum{});
}
