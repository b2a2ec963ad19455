// SPDX-License-Identifier: BSL-1.0
// Several buffers as one vector, without a copy into one: how they are cut into the blocks of a schedule, and the
// all-reduce over them. Called by communicator/coalesced.hpp.
#pragma once

#include <cohort/collective/all_reduce.hpp>
#include <cohort/detail/config.hpp>

#include <cstddef>
#include <utility>

namespace cohort::collective {

/// Buffers that count as one vector, in the order of the list.
class joined_vector {
 public:
  explicit joined_vector(std::size_t element_bytes) noexcept : element_bytes_(element_bytes) {}

  void add(std::byte* data, std::size_t bytes);
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] const detail::short_vector<transport::piece>& runs() const noexcept { return runs_; }

  /// Blocks as even as those of one buffer; the layout refers to this object.
  [[nodiscard]] layout cut(int blocks);

 private:
  std::size_t element_bytes_;
  std::size_t count_ = 0;
  detail::short_vector<transport::piece> runs_{};
  detail::short_vector<transport::piece> cut_runs_{};
  detail::short_vector<std::size_t> starts_{};
};

template <transport::message_transport Transport, class T, class Op>
operation<> all_reduce_coalesced([[maybe_unused]] cohort::detail::ticket t, joined_vector all, Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  for (const transport::piece& p : all.runs()) contribute(combine, p.data, p.data, p.bytes / sizeof(T), ch.size());
  bool finished = false;
  co_await all_reduce_by(ch, c.signature().algorithm, all, combine, &finished);
  if (finished) co_return;
  for (const transport::piece& p : all.runs()) conclude(combine, p.data, p.bytes / sizeof(T), ch.size());
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/impl/coalesced.hpp>
#endif
