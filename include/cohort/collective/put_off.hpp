// SPDX-License-Identifier: BSL-1.0
// Copies of a rank's input that a schedule asks for and that may never have to be made: what is sent is read from the input, and
// what is combined with something that arrives is read from there by the same pass. Used by round_plan.hpp, and by body.hpp to
// know what is worth it.
#pragma once

#include <cohort/collective/short_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace cohort::collective::detail {

/// What is shorter is copied sooner than it is looked for elsewhere.
inline constexpr std::size_t shortest_put_off = std::size_t{4} << 10;

class put_off_copies {
 public:
  /// From now on the bytes at `to` are those at `from`, which nobody writes while that is so.
  ///
  /// `lasting`: they are wanted there when the schedule has ended
  void add(std::byte* to, const std::byte* from, std::size_t bytes, bool lasting) {
    if (bytes > 0) all_.push_back({to, from, bytes, lasting});
  }
  [[nodiscard]] bool none() const noexcept { return all_.empty(); }

  /// Calls f(where, bytes) for the bytes at `data`, in order, with where they are now.
  template <class F>
  void each_source(std::byte* data, std::size_t bytes, F f) const {
    while (bytes > 0) {
      const std::byte* where = data;
      std::size_t here = bytes;
      for (const put_off& p : all_) {
        if (p.has(data)) {
          where = p.source_of(data);
          here = std::min(bytes, p.bytes - static_cast<std::size_t>(data - p.to));
          break;
        }
        if (p.to > data && p.to < data + here) here = static_cast<std::size_t>(p.to - data);
      }
      f(where, here);
      data += here;
      bytes -= here;
    }
  }

  /// The bytes at `data` are written otherwise: of what is put off, the parts in front of them and behind them are left.
  void forget(const std::byte* data, std::size_t bytes) {
    short_vector<put_off> left;
    for (const put_off& p : all_) {
      if (!p.overlaps(data, bytes)) {
        left.push_back(p);
        continue;
      }
      if (p.to < data) left.push_back({p.to, p.from, static_cast<std::size_t>(data - p.to), p.lasting});
      if (data + bytes < p.to + p.bytes) {
        const auto skipped = static_cast<std::size_t>(data + bytes - p.to);
        left.push_back({p.to + skipped, p.from + skipped, p.bytes - skipped, p.lasting});
      }
    }
    all_.swap(left);
  }
  /// The bytes at `data` are needed there.
  void make(const std::byte* data, std::size_t bytes) {
    for (const put_off& p : all_) {
      if (!p.overlaps(data, bytes)) continue;
      std::byte* const begin = p.to + std::max<std::ptrdiff_t>(0, data - p.to);
      const std::byte* const end = std::min<const std::byte*>(p.to + p.bytes, data + bytes);
      std::memcpy(begin, p.source_of(begin), static_cast<std::size_t>(end - begin));
    }
    forget(data, bytes);
  }
  /// The schedule has ended.
  void make_lasting() {
    for (const put_off& p : all_) {
      if (p.lasting) std::memcpy(p.to, p.from, p.bytes);
    }
    all_.clear();
  }

 private:
  struct put_off {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
    bool lasting;

    [[nodiscard]] bool has(const std::byte* at) const noexcept { return at >= to && at < to + bytes; }
    [[nodiscard]] bool overlaps(const std::byte* data, std::size_t n) const noexcept {
      return to < data + n && data < to + bytes;
    }
    [[nodiscard]] const std::byte* source_of(const std::byte* at) const noexcept { return from + (at - to); }
  };

  short_vector<put_off> all_{};
};

}  // namespace cohort::collective::detail
