// SPDX-License-Identifier: BSL-1.0
// Bodies of codec/writer.hpp that are no templates.
#pragma once

#include <cohort/codec/writer.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace cohort {

COHORT_DECL void writer::count(std::size_t n) {
  if (n > limits_.elements) {
    throw error(errc::limit_exceeded, "a container of " + std::to_string(n) +
                                          " elements: codec_limits::elements allows " +
                                          std::to_string(limits_.elements));
  }
  length(n);
}

COHORT_DECL void writer::length(std::uint64_t n) {
  std::byte encoded[10] = {};
  std::size_t used = 0;
  for (; n >= 0x80; n >>= 7) encoded[used++] = static_cast<std::byte>(n | 0x80U);
  encoded[used++] = static_cast<std::byte>(n);
  bytes({encoded, used});
}

COHORT_DECL void writer::bytes(std::span<const std::byte> raw) {
  if (raw.size() > limits_.bytes || size() > limits_.bytes - raw.size()) {
    throw error(errc::limit_exceeded,
                "the object takes more than " + std::to_string(limits_.bytes) + " bytes, which is codec_limits::bytes");
  }
  out_->insert(out_->end(), raw.begin(), raw.end());
}

}  // namespace cohort
