// SPDX-License-Identifier: BSL-1.0
// Between the buffers of an operation, which may lie in several places, and the contiguous memory of a window.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/layout.hpp>
#include <cohort/detail/hand_back.hpp>
#include <cohort/detail/stream_store.hpp>

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace cohort::collective {

/// Whether an operation whose buffers have so many bytes, those of all ranks of the host together, leaves nothing of its
/// results in the cache that they share: then these are not worth a place there.
[[nodiscard]] inline bool exceeds_caches(std::size_t bytes_on_host) noexcept {
  static const std::size_t worth = [] {
    // On a virtual machine the processor may tell of a cache that many machines share.
    constexpr std::size_t most = std::size_t{32} << 20;
    const long told = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
    const std::size_t cache = told > 0 ? std::min(static_cast<std::size_t>(told), most) : most / 4;
    // Not all of it: the parts of the window are there too, and what the ranks compute with.
    return cache / 4 * 3;
  }();
  return bytes_on_host > worth;
}
/// The same where every rank has a vector and gets one.
[[nodiscard]] inline bool vectors_exceed_caches(std::size_t bytes, int ranks) noexcept {
  return exceeds_caches(2 * bytes * static_cast<std::size_t>(ranks));
}

/// Of the size of numbers without a call.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == sizeof(std::uint64_t)) {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (bytes == sizeof(std::uint32_t)) {
    std::memcpy(to, from, sizeof(std::uint32_t));
  } else {
    std::memcpy(to, from, bytes);
  }
}

/// Bytes [from, from + bytes) of a block into memory that others read.
inline void copy_in(const layout& vector, int block, std::size_t from, std::size_t bytes, std::byte* into) {
  vector.each_piece_within(block, from, bytes, [&](const std::byte* data, std::size_t n) {
    std::memcpy(into, data, n);
    into += n;
  });
}

/// The reverse. `who`: who reads those bytes, this rank among them.
inline void copy_out(std::byte* from, const layout& vector, int block, std::size_t to, std::size_t bytes,
                     bool streaming, cohort::detail::readers who = cohort::detail::readers::many) {
  vector.each_piece_within(block, to, bytes, [&](std::byte* data, std::size_t n) {
    while (n > 0) {
      const std::size_t part = std::min(n, cohort::detail::read_block(who));
      if (streaming) {
        cohort::detail::stream_copy(data, from, part);
      } else {
        std::memcpy(data, from, part);
      }
      cohort::detail::leave(from, part, who);
      from += part;
      data += part;
      n -= part;
    }
  });
  if (streaming) cohort::detail::stream_fence();
}

/// This rank's contribution to a reduction into memory that others read; `in` is not there.
inline void give(const cohort::detail::reducer& op, const std::byte* in, std::byte* into, std::size_t count,
                 int ranks) {
  if (op.prepare != nullptr) return op.prepare(op.op, into, in, count, ranks);
  if (count > 0) copy_short(into, in, count * op.element_bytes);
}

/// More operands than this are not kept on the stack.
inline constexpr int few_ranks = 16;

/// Where the operands of a reduction lie, in the order of the ranks.
class operands {
 public:
  explicit operands(int ranks) : ranks_(ranks) {
    if (ranks > few_ranks) many_.resize(static_cast<std::size_t>(ranks));
  }
  operands(const operands&) = delete;
  operands& operator=(const operands&) = delete;
  ~operands() = default;
  template <class Where>
  void set(Where where) {
    const std::byte** const at = begin();
    for (int k = 0; k < ranks_; ++k) at[k] = where(k);
  }
  /// Combines the first `count` of them into `out`, of `bytes` bytes.
  void fold(const cohort::detail::reducer& op, int count, std::byte* out, std::size_t bytes) const {
    if (bytes > 0) op.fold_many(op.op, out, data(), count, bytes / op.element_bytes);
  }
  /// Combines the first `count` of them into bytes [to, to + bytes) of a block, and moves on by that much.
  void fold_out(const cohort::detail::reducer& op, int count, const layout& vector, int block, std::size_t to,
                std::size_t bytes, bool streaming) {
    vector.each_piece_within(block, to, bytes, [&](std::byte* data, std::size_t n) {
      const std::byte** const at = begin();
      if (streaming) {
        op.fold_past_caches(op.op, {&data, 1}, {at, static_cast<std::size_t>(count)}, n / op.element_bytes, nullptr, 0);
      } else {
        op.fold_many(op.op, data, at, count, n / op.element_bytes);
      }
      for (int k = 0; k < ranks_; ++k) at[k] += n;
    });
  }
  [[nodiscard]] const std::byte* const* data() const noexcept { return ranks_ > few_ranks ? many_.data() : few_; }

 private:
  [[nodiscard]] const std::byte** begin() noexcept { return ranks_ > few_ranks ? many_.data() : few_; }

  int ranks_;
  const std::byte* few_[few_ranks];
  detail::short_vector<const std::byte*> many_{};
};

/// The fewest bytes that are whole elements and whole cache lines of 64 bytes.
[[nodiscard]] constexpr std::size_t whole_lines(std::size_t element_bytes) noexcept {
  return element_bytes << (6 - std::min(std::countr_zero(element_bytes), 6));
}
static_assert(whole_lines(1) == 64 && whole_lines(12) == 192 && whole_lines(64) == 64 && whole_lines(160) == 320);

/// Some bytes cut into one slice for each rank: whole elements, and whole cache lines as far as there are enough.
struct slices {
  std::size_t each;
  std::size_t total;
  slices(std::size_t bytes, int ranks, std::size_t element_bytes) noexcept : total(bytes) {
    const std::size_t unit = whole_lines(element_bytes);
    const std::size_t even = bytes / static_cast<std::size_t>(ranks) + element_bytes;
    const std::size_t step = unit <= even ? unit : element_bytes;
    each = (even + step - 1) / step * step;
  }
  [[nodiscard]] std::size_t begin(int k) const noexcept { return std::min(total, each * static_cast<std::size_t>(k)); }
  [[nodiscard]] std::size_t size(int k) const noexcept { return begin(k + 1) - begin(k); }
};

/// The part of `room` bytes that whole elements fill, in whole cache lines if they can.
[[nodiscard]] inline std::size_t whole_elements(std::size_t room, std::size_t element_bytes) noexcept {
  const std::size_t unit = whole_lines(element_bytes);
  return unit <= room ? room / unit * unit : room / element_bytes * element_bytes;
}

}  // namespace cohort::collective
