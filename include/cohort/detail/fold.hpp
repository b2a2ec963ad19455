// SPDX-License-Identifier: BSL-1.0
// The array kernels behind every reduction, as a `reducer`, through which code that moves bytes calls them: combining two
// arrays or many (fold_many.hpp), and what functors do to each rank's contribution and to the result.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/collective/schedule.hpp>
#include <cohort/detail/float_array.hpp>
#include <cohort/detail/fold_many.hpp>
#include <cohort/detail/fold_past_caches.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/element.hpp>
#include <cohort/reduction.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

namespace cohort::detail {

using collective::side;

// A loop of known length is one that g++ vectorises at -O2 too. Long enough that what is over matters little, short
// enough that two arrays of floats of this length stay in the first-level cache.
inline constexpr std::size_t fold_block = 128;

/// dst[i] = f(src[i]) in float, with one rounding; dst may be src.
template <class Arrays, class T, class Function>
[[gnu::always_inline]] inline void map_in_float(T* dst, const T* src, std::size_t count, const Function& f) {
  alignas(64) float block[fold_block];
  for (; count >= fold_block; count -= fold_block, dst += fold_block, src += fold_block) {
    Arrays::widen(src, block, fold_block);
    for (std::size_t i = 0; i < fold_block; ++i) block[i] = f(block[i]);
    Arrays::narrow(block, dst, fold_block);
  }
  Arrays::widen(src, block, count);
  for (std::size_t i = 0; i < count; ++i) block[i] = f(block[i]);
  Arrays::narrow(block, dst, count);
}

#if COHORT_HAS_AVX2_KERNELS
template <class T, class Function>
[[gnu::target("avx2,f16c")]] void map_with_avx2(T* dst, const T* src, std::size_t count, const Function& f) {
  map_in_float<avx2_arrays>(dst, src, count, f);
}
#endif

template <class Op, class T>
inline constexpr bool reduces_in_float = half_float<T>&& std::is_same_v<accumulator_t<Op, T>, float>;

/// The functor that is applied for the caller's: itself, or the shipped one that a std:: functor means.
template <class T, class Op>
[[nodiscard]] const applied<Op, T>& applied_functor(const Op& op) noexcept {
  if constexpr (std::is_same_v<applied<Op, T>, Op>) {
    return op;
  } else {
    static constexpr applied<Op, T> shipped{};
    return shipped;
  }
}

/// dst[i] = f(src[i]), where dst may be src; in float where `InFloat`.
template <bool InFloat, class T, class Function>
void map_elements(T* dst, const T* src, std::size_t count, const Function& f) {
  if constexpr (InFloat) {
#if COHORT_HAS_AVX2_KERNELS
    if (avx2_arrays::available()) return map_with_avx2(dst, src, count, f);
#endif
    map_in_float<portable_arrays>(dst, src, count, f);
  } else if (dst == src) {  // its own loop: the check for overlap would choose the scalar version of the other
    for (; count >= fold_block; count -= fold_block, dst += fold_block) {
      for (std::size_t i = 0; i < fold_block; ++i) dst[i] = f(dst[i]);
    }
    for (std::size_t i = 0; i < count; ++i) dst[i] = f(dst[i]);
  } else {
    for (std::size_t i = 0; i < count; ++i) dst[i] = f(src[i]);
  }
}

/// Calls kernel(T* dst, const T* src, count), over pieces in aligned memory where the bytes are not aligned for T:
/// a message may lie anywhere in a receive buffer.
template <class T, class Kernel>
void on_aligned(std::byte* dst, const std::byte* src, std::size_t count, const Kernel& kernel) {
  const auto misaligned = [](const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p) % alignof(T) != 0; };
  if (alignof(T) == 1 || (!misaligned(dst) && !misaligned(src))) {
    kernel(reinterpret_cast<T*>(dst), reinterpret_cast<const T*>(src), count);
    return;
  }
  constexpr std::size_t most = std::max<std::size_t>(1, 1024 / sizeof(T));
  alignas(T) std::byte to[most * sizeof(T)];
  alignas(T) std::byte from[most * sizeof(T)];
  while (count > 0) {
    const std::size_t part = std::min(count, most);
    const std::size_t bytes = part * sizeof(T);
    std::memcpy(to, dst, bytes);
    std::memcpy(from, src, bytes);
    kernel(reinterpret_cast<T*>(to), reinterpret_cast<const T*>(from), part);
    std::memcpy(dst, to, bytes);
    dst += bytes, src += bytes, count -= part;
  }
}

/// dst[i] = op(src[i], dst[i]) on side::left, op(dst[i], src[i]) on side::right, for arrays that do not overlap.
///
/// Order:  each element is one call, in float for the 16-bit floats under a shipped functor, rounded once
/// Errors: what op throws; the elements before it have been combined, for 16-bit floats those of whole blocks
template <class T, class Op>
void fold_bytes(const void* op, std::byte* dst, const std::byte* src, std::size_t elements, side where) {
  const std::byte* const in_order[] = {where == side::left ? src : dst, where == side::left ? dst : src};
  fold_many_bytes<T, Op>(op, dst, in_order, 2, elements);
}

/// The same for arrays of elements and any functor that is a reduction.
template <class T, class Op>
void fold(T* dst, const T* src, std::size_t count, side where, const Op& op) {
  fold_bytes<T, applied<Op, T>>(std::addressof(applied_functor<T>(op)), reinterpret_cast<std::byte*>(dst),
                                reinterpret_cast<const std::byte*>(src), count, where);
}

template <class T, class Op>
void prepare_bytes(const void* op, std::byte* dst, const std::byte* src, std::size_t elements, int ranks) {
  on_aligned<T>(dst, src, elements, [&](T* to, const T* from, std::size_t count) {
    const Op& functor = *static_cast<const Op*>(op);
    map_elements<reduces_in_float<Op, T> && has_prepare<Op, float>>(
        to, from, count, [&](const auto& own) { return prepare(functor, own, ranks); });
  });
}

template <class T, class Op>
void finish_bytes(const void* op, std::byte* dst, const std::byte* src, std::size_t elements, int ranks) {
  on_aligned<T>(dst, src, elements, [&](T* to, const T* from, std::size_t count) {
    const Op& functor = *static_cast<const Op*>(op);
    map_elements<reduces_in_float<Op, T> && has_finish<Op, float>>(
        to, from, count, [&](const auto& total) { return finish(functor, total, ranks); });
  });
}

/// The reducer of a functor for elements of T. Refuses, with a text, what is not a reduction.
///
/// Lifetime: op must outlive the reducer; a temporary does not compile
template <class T, class Op>
[[nodiscard]] reducer make_reducer(const Op& op) noexcept {
  check_reduction<Op, T>();
  if constexpr (reduction<Op, T>) {
    using functor = applied<Op, T>;
    reducer made{};
    made.fold = &fold_bytes<T, functor>;
    made.fold_many = &fold_many_bytes<T, functor>;
    made.fold_past_caches = &fold_past_caches_bytes<T, functor>;
    if constexpr (has_prepare<functor, T>) made.prepare = &prepare_bytes<T, functor>;
    if constexpr (has_finish<functor, T>) made.finish = &finish_bytes<T, functor>;
    made.op = std::addressof(applied_functor<T>(op));
    made.element_bytes = sizeof(T);
    made.element_type = element_type_id<T>;
    made.functor = functor_id<Op>;
    made.commutative = is_commutative<Op, T>;
    return made;
  } else {
    return reducer{};
  }
}
template <class T, class Op>
reducer make_reducer(const Op&& op) = delete;

}  // namespace cohort::detail
