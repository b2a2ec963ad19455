// SPDX-License-Identifier: BSL-1.0
// A collective of two ranks that is one short message from each to the other, or from one of them, carried out where it is
// called, without a frame: what this rank gives has left before the call returns, and if the other's is here within a moment,
// so is the result. Otherwise a frame waits for it. What shared/at_once.hpp is to the window, this is to messages.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/short_move.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/operation.hpp>
#include <cohort/transport/request.hpp>

#include <cstddef>

namespace cohort::collective {

/// The collective that a ticket is for, tried once.
///
/// Result:   of each function false: a frame must carry the operation out, from the beginning or from where this has left
///           it, which the ticket tells
/// Errors:   none: what the functor throws, the frame throws again
/// Lifetime: the ticket stays where it is
class pair_at_once {
 public:
  explicit pair_at_once(cohort::detail::ticket& t) noexcept : call_(&t) {}

  // Apart from what calls them, which does the same in memory: each way needs the room of the other one on the stack.
  [[nodiscard]] bool barrier();
  /// A move whose blocks all have one size.
  [[nodiscard]] bool move(const short_move& m);
  /// `out` is not used on ranks other than `root`, unless that is -1.
  [[nodiscard]] bool reduce(const std::byte* in, std::byte* out, std::size_t count, const cohort::detail::reducer& op,
                            int root);
  [[nodiscard]] bool scan(const std::byte* in, std::byte* out, std::size_t count, const cohort::detail::reducer& op);
  /// `in` has a block for each rank, `out` is one, of `bytes` bytes each.
  [[nodiscard]] bool reduce_scatter(const layout& in, const layout& out, std::size_t bytes,
                                    const cohort::detail::reducer& op);

 private:
  /// Longer messages take so long that a frame makes no difference, and may not leave at once.
  static constexpr std::size_t longest_moved = std::size_t{64} << 10;
  /// Of what is combined the other's vector has room on the stack.
  static constexpr std::size_t longest = std::size_t{16} << 10;

  [[nodiscard]] bool possible(std::size_t bytes, std::size_t most = longest) const;
  [[nodiscard]] int other() const noexcept { return 1 - call_->home->rank(); }
  [[nodiscard]] transport::envelope header(std::size_t bytes) const noexcept;
  /// Runs what exchanges and combines; what it throws is kept for the frame.
  template <class Body>
  [[nodiscard]] bool attempt(const Body& body);
  [[nodiscard]] bool give(const std::byte* data, std::size_t bytes);
  [[nodiscard]] bool take(std::byte* data, std::size_t bytes);
  /// out = what both have, in the order of their ranks; out may be `in`.
  [[nodiscard]] bool take_and_combine(const std::byte* in, std::byte* out, std::size_t count,
                                      const cohort::detail::reducer& op);
  /// The same of at most `Room` bytes.
  template <std::size_t Room>
  [[nodiscard, gnu::noinline]] bool combine_within(const std::byte* in, std::byte* out, std::size_t count,
                                                   const cohort::detail::reducer& op);

  cohort::detail::ticket* call_;
  bool took_ = false;
};

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/pair_at_once.hpp>
#endif
