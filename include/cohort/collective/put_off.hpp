// SPDX-License-Identifier: BSL-1.0
// Copies of a rank's input that a schedule asks for and that may never have to be made: what is sent is read from the input, and
// what is combined with something that arrives is read from there by the same pass. Used by round_plan.hpp.
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

  /// The bytes at `data` are written otherwise.
  void forget(const std::byte* data, std::size_t bytes) {
    for (std::size_t i = 0; i < all_.size();) {
      const put_off whole = all_[i];
      if (!whole.overlaps(data, bytes)) {
        ++i;
        continue;
      }
      all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
      // What is left in front and behind stands where it is not looked at again.
      const std::byte* const end = whole.to + whole.bytes;
      short_vector<put_off> rest;
      if (whole.to < data)
        rest.push_back({whole.to, whole.from, static_cast<std::size_t>(data - whole.to), whole.lasting});
      if (data + bytes < end) {
        const auto skipped = static_cast<std::size_t>(data + bytes - whole.to);
        rest.push_back({whole.to + skipped, whole.from + skipped, whole.bytes - skipped, whole.lasting});
      }
      all_.insert(all_.begin() + static_cast<std::ptrdiff_t>(i), rest.begin(), rest.end());
      i += rest.size();
    }
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
