// SPDX-License-Identifier: BSL-1.0
// The bounded writer that every codec encodes with: it holds the sender to the limits of the receiver.
// Integers are little-endian and of fixed width; counts are variable-length, 7 bits a byte, in their shortest form.
#pragma once

#include <cohort/codec/limits.hpp>
#include <cohort/codec/properties.hpp>
#include <cohort/detail/byte_codec.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/type_name.hpp>
#include <cohort/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace cohort {

/// Appends values to the bytes of a message.
///
/// Errors:   limit_exceeded where a limit is passed, invalid_argument for a value that has no encoding
/// Lifetime: the vector is borrowed; after an error its contents beyond what it held before are of no use
class writer {
 public:
  explicit writer(std::vector<std::byte>& out, const codec_limits& limits = {}) noexcept
      : out_(&out), start_(out.size()), limits_(limits) {}

  /// Writes a value with its codec.
  template <class T>
  void write(const T& value) {
    if constexpr (std::is_array_v<T>) {
      write_array(value);
    } else if constexpr (!detail::codec_nests<T>()) {
      codec<T>::encode(*this, value);
    } else {
      if (depth_ >= limits_.depth) throw error(errc::limit_exceeded, detail::too_deep(limits_.depth));
      const detail::nesting level(depth_);
      const std::size_t before = size();
      codec<T>::encode(*this, value);
      if constexpr (!detail::is_library_codec<T>) {
        if (size() - before < detail::min_encoded_size<T>()) too_short<T>(size() - before);
      }
    }
  }

  template <std::unsigned_integral U>
  void number(U value) {
    unsigned char encoded[sizeof(U)] = {};
    detail::put_little(encoded, value);
    bytes(std::as_bytes(std::span(encoded)));
  }

  /// The number of elements of a container.
  void count(std::size_t n);

  /// An unsigned number of variable length.
  void length(std::uint64_t n);

  void bytes(std::span<const std::byte> raw);

  /// Bytes that were written through this writer.
  [[nodiscard]] std::size_t size() const noexcept { return out_->size() - start_; }
  [[nodiscard]] const codec_limits& limits() const noexcept { return limits_; }

 private:
  template <class T, std::size_t N>
  void write_array(const T (&values)[N]) {
    if constexpr (detail::is_bulk<T>()) {
      bytes(std::as_bytes(std::span(values)));
    } else {
      for (const T& value : values) write(value);
    }
  }
  template <class T>
  [[noreturn]] static void too_short(std::size_t written) {
    throw error(errc::invalid_argument, "codec<" + std::string(detail::type_name<T>()) + ">::encode wrote " +
                                            std::to_string(written) + " bytes, and a value takes at least " +
                                            std::to_string(detail::min_encoded_size<T>()));
  }

  std::vector<std::byte>* out_;
  std::size_t start_;
  codec_limits limits_;
  int depth_ = 0;
};

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/codec/impl/writer.hpp>
#endif
