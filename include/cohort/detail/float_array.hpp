// SPDX-License-Identifier: BSL-1.0
// Conversion of whole arrays between the 16-bit floats and float: portable loops, and AVX2 and F16C kernels for
// processors that have them; the same bits either way. Called by fold.hpp, which chooses once per array.
#pragma once

#include <cohort/bfloat16.hpp>
#include <cohort/half.hpp>

#include <cstddef>
#include <cstring>

// The builtins and not <immintrin.h>, which costs g++ half a second in every translation unit. (g++ denies having
// them, to __has_builtin, where the instructions are not enabled for the whole file.)
#if defined(__x86_64__) && (!defined(__clang__) || __has_builtin(__builtin_ia32_vcvtps2ph256))
#define COHORT_HAS_AVX2_KERNELS 1
#include <cpuid.h>
#else
#define COHORT_HAS_AVX2_KERNELS 0
#endif

namespace cohort::detail {

/// The loops that any processor can run. Inlined, so that they are compiled for the instructions that the caller
/// allows; the inner ones have a known length because g++ vectorises only such loops at -O2.
struct portable_arrays {
  static constexpr std::size_t run = 64;

  template <class T>
  [[gnu::always_inline]] static void widen(const T* __restrict src, float* __restrict dst, std::size_t count) noexcept {
    for (; count >= run; count -= run, src += run, dst += run) {
      for (std::size_t i = 0; i < run; ++i) dst[i] = src[i];
    }
    for (std::size_t i = 0; i < count; ++i) dst[i] = src[i];
  }
  template <class T>
  [[gnu::always_inline]] static void narrow(const float* __restrict src, T* __restrict dst,
                                            std::size_t count) noexcept {
    for (; count >= run; count -= run, src += run, dst += run) {
      for (std::size_t i = 0; i < run; ++i) dst[i] = T(src[i]);
    }
    for (std::size_t i = 0; i < count; ++i) dst[i] = T(src[i]);
  }
};

#if COHORT_HAS_AVX2_KERNELS

#if defined(__clang__)  // which merges an inlined conversion with the loop over the functor, and vectorises neither
#define COHORT_AVX2_KERNEL [[gnu::noinline, gnu::target("avx2,f16c")]]
#else
#define COHORT_AVX2_KERNEL [[gnu::target("avx2,f16c")]]
#endif

/// The same for a processor of which `available()` is true. The plain loop suffices for bfloat16.
struct avx2_arrays {
  /// Whether the processor has the instructions and the operating system keeps the registers they work on.
  [[nodiscard]] static bool available() noexcept {
#if defined(__AVX2__) && defined(__F16C__)
    return true;
#else
    static const bool found = [] {
      unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
      // clang 14 does not know "f16c" as a name for __builtin_cpu_supports.
      return __builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
    }();
    return found;
#endif
  }

  COHORT_AVX2_KERNEL static void widen(const half* src, float* dst, std::size_t count) noexcept {
    for (; count >= lanes; count -= lanes, src += lanes, dst += lanes) {
      halves packed;
      std::memcpy(&packed, src, sizeof(packed));
      const floats wide = __builtin_ia32_vcvtph2ps256(packed);
      std::memcpy(dst, &wide, sizeof(wide));
    }
    portable_arrays::widen(src, dst, count);
  }

  COHORT_AVX2_KERNEL static void narrow(const float* src, half* dst, std::size_t count) noexcept {
    constexpr int to_nearest_even = 0;  // in the instruction, so that no rounding mode of the thread matters
    for (; count >= lanes; count -= lanes, src += lanes, dst += lanes) {
      floats wide;
      std::memcpy(&wide, src, sizeof(wide));
      const halves packed = __builtin_ia32_vcvtps2ph256(wide, to_nearest_even);
      std::memcpy(static_cast<void*>(dst), &packed, sizeof(packed));
    }
    portable_arrays::narrow(src, dst, count);
  }

  /// Sums or products of halves, from the left, in registers from the first to the last.
  template <bool Multiplies, class... Rest>
  [[gnu::target("avx2,f16c")]] static void combine(half* dst, std::size_t count, const half* first,
                                                   const Rest*... rest) noexcept {
    constexpr int to_nearest_even = 0;
    std::size_t i = 0;
    for (; count - i >= lanes; i += lanes) {
      floats value = load(first + i);
      if constexpr (Multiplies) ((value *= load(rest + i)), ...);
      else ((value += load(rest + i)), ...);
      const halves packed = __builtin_ia32_vcvtps2ph256(value, to_nearest_even);
      std::memcpy(static_cast<void*>(dst + i), &packed, sizeof(packed));
    }
    for (; i < count; ++i) {
      float value = first[i];
      if constexpr (Multiplies) ((value *= static_cast<float>(rest[i])), ...);
      else ((value += static_cast<float>(rest[i])), ...);
      dst[i] = half(value);
    }
  }

  COHORT_AVX2_KERNEL static void widen(const bfloat16* src, float* dst, std::size_t count) noexcept {
    portable_arrays::widen(src, dst, count);
  }

  COHORT_AVX2_KERNEL static void narrow(const float* src, bfloat16* dst, std::size_t count) noexcept {
    portable_arrays::narrow(src, dst, count);
  }

 private:
  static constexpr std::size_t lanes = 8;
  using floats = float __attribute__((vector_size(32)));
  using halves = short __attribute__((vector_size(16)));

  [[gnu::target("avx2,f16c"), gnu::always_inline]] static inline floats load(const half* p) noexcept {
    halves packed;
    std::memcpy(&packed, p, sizeof(packed));
    return __builtin_ia32_vcvtph2ps256(packed);
  }
};

#undef COHORT_AVX2_KERNEL

#endif

}  // namespace cohort::detail
