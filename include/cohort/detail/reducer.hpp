// SPDX-License-Identifier: BSL-1.0
// A reduction without its types: what code that only moves bytes needs to combine what arrived.
// Made by make_reducer in fold.hpp, used by collective/execute.hpp.
#pragma once

#include <cohort/collective/schedule.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace cohort::detail {

/// dst[i] = what the caller gets for the combined src[i].
using last_step = void (*)(const void* op, std::byte* dst, const std::byte* src, std::size_t elements, int ranks);

/// Element type and functor behind function pointers.
///
/// Needs:    counts in elements; dst and src do not overlap, but in `prepare` and `finish` they may be the same
/// Errors:   what the functor throws, with dst half done
/// Lifetime: `op` is borrowed: the functor must outlive the reducer and every copy of it
struct reducer {
  /// dst[i] = op(src[i], dst[i]) on side::left, op(dst[i], src[i]) on side::right.
  void (*fold)(const void* op, std::byte* dst, const std::byte* src, std::size_t elements, collective::side where);
  /// dst[i] = s0[i] op s1[i] op ... op s(k-1)[i] for k >= 1 sources, combined in that order; dst may be one of them.
  void (*fold_many)(const void* op, std::byte* dst, const std::byte* const* sources, int k, std::size_t elements);
  /// The same into every place, past the caches, with `finish` done for so many ranks unless it is null. Fences at the end.
  void (*fold_past_caches)(const void* op, std::span<std::byte* const> places,
                           std::span<const std::byte* const> sources, std::size_t elements, last_step finish,
                           int ranks);
  /// dst[i] = what this rank contributes for src[i]; null where that is src[i].
  void (*prepare)(const void* op, std::byte* dst, const std::byte* src, std::size_t elements, int ranks);
  /// dst[i] = what the caller gets for the combined src[i]; null where that is src[i].
  last_step finish;
  const void* op;
  std::size_t element_bytes;
  std::uint16_t element_type;  ///< element_type_id
  std::uint16_t functor;       ///< functor_id
  bool commutative;            ///< false: rank order must be kept
};

}  // namespace cohort::detail
