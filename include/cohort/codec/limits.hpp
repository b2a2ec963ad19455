// SPDX-License-Identifier: BSL-1.0
// What an object may cost, and the count of levels that holds a recursive one to it.
// Held to by codec/writer.hpp and codec/reader.hpp.
#pragma once

#include <cstdint>
#include <string>

namespace cohort {

/// What an object may cost. The sender holds to the same limits, so that most are found out where the object is.
struct codec_limits {
  std::uint64_t bytes = std::uint64_t{256} << 20;     ///< of one message, its header included
  std::uint64_t elements = std::uint64_t{256} << 20;  ///< of one container
  std::uint64_t memory = std::uint64_t{1} << 30;      ///< for all containers of one message; the reader's alone
  int depth = 64;                                     ///< of objects within objects: what a recursive type may nest
};

namespace detail {

/// One level for as long as it lives.
class nesting {
 public:
  explicit nesting(int& depth) noexcept : depth_(&depth) { ++*depth_; }
  nesting(const nesting&) = delete;
  nesting& operator=(const nesting&) = delete;
  ~nesting() { --*depth_; }

 private:
  int* depth_;
};

[[nodiscard]] inline std::string too_deep(int depth) {
  return "objects are nested deeper than the " + std::to_string(depth) + " levels that codec_limits::depth allows";
}

}  // namespace detail

}  // namespace cohort
