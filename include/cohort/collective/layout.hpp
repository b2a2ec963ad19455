// SPDX-License-Identifier: BSL-1.0
// Where the blocks of a buffer lie in memory: turns the regions of a schedule into runs of bytes. Used by
// execute.hpp; the element type has become a number of bytes here.
#pragma once

#include <cohort/collective/schedule.hpp>
#include <cohort/transport/piece.hpp>

#include <algorithm>
#include <cstddef>

namespace cohort::collective {

class layout {
 public:
  constexpr layout() = default;

  /// `elements` elements cut into `blocks` parts whose sizes differ by at most one element.
  [[nodiscard]] static layout even(std::byte* base, std::size_t elements, std::size_t element_bytes,
                                   int blocks) noexcept {
    layout l;
    l.kind_ = kind::even;
    l.base_ = base;
    l.blocks_ = blocks;
    l.element_bytes_ = element_bytes;
    l.quotient_ = elements / static_cast<std::size_t>(blocks);
    l.remainder_ = elements % static_cast<std::size_t>(blocks);
    return l;
  }
  /// `blocks` parts of `block_bytes` bytes each.
  [[nodiscard]] static layout uniform(std::byte* base, std::size_t block_bytes, int blocks) noexcept {
    layout l;  // as `even` of one element for each block, without a division
    l.kind_ = kind::even;
    l.base_ = base;
    l.blocks_ = blocks;
    l.element_bytes_ = block_bytes;
    l.quotient_ = 1;
    return l;
  }
  /// Block b is bytes [offsets[b], offsets[b + 1]).
  [[nodiscard]] static layout by_offsets(std::byte* base, const std::size_t* offsets, int blocks) noexcept {
    layout l;
    l.kind_ = kind::offsets;
    l.base_ = base;
    l.blocks_ = blocks;
    l.offsets_ = offsets;
    return l;
  }
  /// Block b is run[b]: a buffer of its own for each.
  [[nodiscard]] static layout list(const transport::piece* runs, int blocks) noexcept {
    layout l;
    l.kind_ = kind::list;
    l.runs_ = runs;
    l.blocks_ = blocks;
    return l;
  }

  /// Block b is runs [starts[b], starts[b + 1]), one after the other.
  [[nodiscard]] static layout table(const transport::piece* runs, const std::size_t* starts, int blocks) noexcept {
    layout l;
    l.kind_ = kind::table;
    l.runs_ = runs;
    l.offsets_ = starts;
    l.blocks_ = blocks;
    return l;
  }

  [[nodiscard]] constexpr int blocks() const noexcept { return blocks_; }

  /// Calls f(data, bytes) for each contiguous run of the region, in order; empty runs are left out.
  template <class F>
  void each_piece(int first, int count, F f) const {
    if (blocks_ == 0) return;
    while (count > 0) {
      first = wrap(first, blocks_);
      const bool one_by_one = kind_ == kind::list || kind_ == kind::table;
      const int here = one_by_one ? 1 : std::min(count, blocks_ - first);
      if (kind_ == kind::list) {
        if (runs_[first].bytes > 0) f(runs_[first].data, runs_[first].bytes);
      } else if (kind_ == kind::table) {
        for (std::size_t i = offsets_[first]; i < offsets_[first + 1]; ++i) {
          if (runs_[i].bytes > 0) f(runs_[i].data, runs_[i].bytes);
        }
      } else {
        const std::size_t from = offset(first);
        const std::size_t to = offset(first + here);
        if (to > from) f(base_ + from, to - from);
      }
      first += here;
      count -= here;
    }
  }

  /// Calls f(data, bytes) for what lies at bytes [from, from + bytes) of a block; less where the block ends before.
  template <class F>
  void each_piece_within(int block, std::size_t from, std::size_t bytes, F f) const {
    each_piece(block, 1, [&](std::byte* data, std::size_t n) {
      if (from >= n) {
        from -= n;
        return;
      }
      const std::size_t part = std::min(bytes, n - from);
      if (part > 0) f(data + from, part);
      bytes -= part;
      from = 0;
    });
  }

  /// The region as one run, if what cuts the blocks keeps it together; otherwise no data.
  [[nodiscard]] transport::piece together(int first, int count) const noexcept {
    if (first + count > blocks_ || kind_ == kind::table || (kind_ == kind::list && count != 1)) return {};
    if (kind_ == kind::list) return runs_[first];
    const std::size_t from = offset(first);
    return {base_ + from, offset(first + count) - from};
  }

  /// Blocks of one size, one after the other.
  struct row {
    std::byte* data = nullptr;
    std::size_t block_bytes = 0;
  };
  /// All blocks, if that is how they lie; otherwise no data.
  [[nodiscard]] row as_row() const noexcept {
    if (kind_ != kind::even || remainder_ != 0) return {};
    return {base_, quotient_ * element_bytes_};
  }
  /// Where all blocks lie one after the other, if each has `block_bytes`; otherwise null.
  [[nodiscard]] std::byte* row_of(std::size_t block_bytes) const noexcept {
    const row all = as_row();
    return all.block_bytes == block_bytes ? all.data : nullptr;
  }

  [[nodiscard]] std::size_t bytes(int first, int count) const {
    std::size_t total = 0;
    each_piece(first, count, [&total](const std::byte*, std::size_t n) { total += n; });
    return total;
  }

 private:
  enum class kind : unsigned char { even, offsets, list, table };

  [[nodiscard]] std::size_t offset(int block) const noexcept {
    const auto b = static_cast<std::size_t>(block);
    if (kind_ == kind::offsets) return offsets_[b];
    return (b * quotient_ + std::min(b, remainder_)) * element_bytes_;
  }

  std::byte* base_ = nullptr;
  const transport::piece* runs_ = nullptr;
  const std::size_t* offsets_ = nullptr;
  std::size_t element_bytes_ = 0;
  std::size_t quotient_ = 0;
  std::size_t remainder_ = 0;
  int blocks_ = 0;
  kind kind_ = kind::even;
};

/// The three buffers that a schedule may name.
struct layouts {
  layout in{};
  layout out{};
  layout work{};

  [[nodiscard]] const layout& of(buffer b) const noexcept {
    return b == buffer::in ? in : b == buffer::out ? out : work;
  }
};

}  // namespace cohort::collective
