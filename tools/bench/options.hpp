// SPDX-License-Identifier: BSL-1.0
// What `cohort bench` was asked to measure: its options, checked, with their defaults filled in.
#pragma once

#include <cohort/collective/operation_kind.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::tool {

enum class element_kind { float32, float64, half, bfloat16, int8, int16, int32, int64 };
enum class functor_kind {
  sum,
  product,
  min,
  max,
  average,
  bit_and,
  bit_or,
  bit_xor,
  logical_and,
  logical_or,
  premultiplied_sum,
  user
};
enum class transport_kind { automatic, shm, tcp };
enum class format_kind { table, csv, json };

struct bench_options {
  std::string operation;               ///< as the function of the communicator, or p2p
  std::optional<operation_kind> kind;  ///< empty for p2p
  std::size_t smallest = 8;
  std::size_t largest = std::size_t{64} << 20;
  double factor = 2;
  element_kind type = element_kind::float32;
  functor_kind functor = functor_kind::sum;
  std::optional<int> ranks;  ///< empty: not said
  transport_kind transport = transport_kind::automatic;
  std::optional<int> root;  ///< empty: another rank every call
  double seconds = 0.3;     ///< of measuring at each size
  std::optional<int> samples;
  format_kind format = format_kind::table;
  bool plot = false;
  bool explain = false;
  bool registered = false;  ///< the buffers, so that the ranks of a host reach each other's
};

[[nodiscard]] std::string_view name_of(element_kind type) noexcept;
[[nodiscard]] std::string_view name_of(functor_kind functor) noexcept;

/// Whether the operation combines elements, so that a functor means something.
[[nodiscard]] bool reduces(const bench_options& options) noexcept;

/// The sizes to measure: from the smallest, each `factor` times the one before; one of 0 for a barrier.
[[nodiscard]] std::vector<std::size_t> sizes_of(const bench_options& options);

/// Result: nothing when `words` were understood and `options` is filled; else the exit code to end with.
std::optional<int> parse_bench_options(const std::vector<std::string>& words, bench_options& options);

}  // namespace cohort::tool
