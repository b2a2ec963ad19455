// SPDX-License-Identifier: BSL-1.0
// What the tests of the GPU side share: checks that say where they failed, and skipping by name where there is no device.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/header.hpp>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace gpu_test {

inline int checked = 0;
inline int failed = 0;

inline bool expect(bool good, const char* what, const char* file, int line) {
  ++checked;
  if (good) return true;
  ++failed;
  std::printf("%s:%d: FAILED: %s\n", file, line, what);
  return false;
}

/// The end of main: a run of nothing is not a pass.
[[nodiscard]] inline int conclude(const char* name) {
  std::printf("%s: %d checks, %d failed\n", name, checked, failed);
  return failed == 0 && checked > 0 ? 0 : 1;
}

[[nodiscard]] inline bool has_device() {
  int n = 0;
  const bool there = cudaGetDeviceCount(&n) == cudaSuccess && n > 0;
  static_cast<void>(cudaGetLastError());
  return there;
}
inline void skip_without_device(const char* name) {
  int n = 0;
  const cudaError_t code = cudaGetDeviceCount(&n);
  if (code == cudaSuccess && n > 0) return;
  std::printf("SKIPPED: %s: no GPU here (cudaGetDeviceCount: %s)\n", name, cudaGetErrorString(code));
  std::exit(77);
}

/// Whether `f` throws a cohort::error of that kind whose text has all those parts.
template <class F, class... Parts>
bool throws(cohort::errc kind, const F& f, const Parts&... parts) {
  try {
    f();
  } catch (const cohort::error& e) {
    const std::string_view text = e.what();
    const bool good = e.condition() == kind && ((text.find(parts) != std::string_view::npos) && ...);
    if (!good) std::printf("  it threw %s: %s\n", e.code().message().c_str(), e.what());
    return good;
  }
  std::printf("  nothing was thrown\n");
  return false;
}

}  // namespace gpu_test

#define EXPECT(...) ::gpu_test::expect(static_cast<bool>(__VA_ARGS__), #__VA_ARGS__, __FILE__, __LINE__)
