// SPDX-License-Identifier: BSL-1.0
// A collective that a transport's own library carries out, begun where it is called: if the library is done in a moment,
// no frame is made; otherwise the frame of the operation takes over what has begun. Used by the headers of this folder
// that are named like the operations.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/operation.hpp>

#include <cstddef>

namespace cohort::collective {

/// To be specialised by a transport that has such a library. Each call of it says whether the collective is complete; if
/// not, a frame with the same arguments carries it out, from the beginning or from where this has left it.
///
/// Needs:    blocks of one size, in forms without _v
/// Lifetime: stays until that frame has been made; the ticket need not
template <class Transport>
class native_start {
 public:
  explicit native_start(const cohort::detail::ticket&) noexcept {}

  [[nodiscard]] bool barrier() const noexcept { return false; }
  [[nodiscard]] bool broadcast(std::byte*, std::size_t) const noexcept { return false; }
  /// `out` on the root alone; what the functor has to do before and after is the caller's.
  [[nodiscard]] bool reduce(const std::byte*, std::byte*, std::size_t, const cohort::detail::reducer&) const noexcept {
    return false;
  }
  [[nodiscard]] bool all_reduce(const std::byte*, std::byte*, std::size_t,
                                const cohort::detail::reducer&) const noexcept {
    return false;
  }
  [[nodiscard]] bool scan(const std::byte*, std::byte*, std::size_t, const cohort::detail::reducer&) const noexcept {
    return false;
  }
  [[nodiscard]] bool gather(const layout&, const layout&) const noexcept { return false; }
  [[nodiscard]] bool scatter(const layout&, const layout&) const noexcept { return false; }
  [[nodiscard]] bool all_gather(const layout&, const layout&) const noexcept { return false; }
  [[nodiscard]] bool all_to_all(const layout&, const layout&) const noexcept { return false; }
  [[nodiscard]] bool reduce_scatter(const layout&, const layout&, const cohort::detail::reducer&) const noexcept {
    return false;
  }
};

}  // namespace cohort::collective
