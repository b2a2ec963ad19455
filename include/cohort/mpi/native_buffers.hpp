// SPDX-License-Identifier: BSL-1.0
// The buffers of MPI's own collectives: the caller's, or copies that MPI can keep. Used by the bodies in native_bodies.hpp.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/detail/byte_buffer.hpp>
#include <cohort/mpi/endpoint.hpp>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

namespace cohort::transport::detail_mpi {

using collective::layout;

/// A buffer whose blocks lie one after the other: the caller's, or a copy. Of a list of buffers, as MPI wants one; of what is
/// short, as it may be a value in the frame of the operation, which can be gone before MPI is done with what was given up.
class gathered {
 public:
  /// `fill`: the blocks are read from the caller's buffers; else they are only written there, by `give`.
  gathered(mpi_endpoint& endpoint, const layout& where, bool fill) : where_(where) {
    std::size_t runs = 0;
    where_.each_piece(0, where_.blocks(), [&](std::byte* data, std::size_t n) {
      if (runs++ == 0) data_ = data;
      bytes_ += n;
    });
    if (bytes_ == 0 || (runs == 1 && (bytes_ > longest_value || !endpoint.keeps_values()))) return;
    copy_ = detail::borrowed_buffer(endpoint.scratch(), bytes_);
    data_ = copy_.data();
    copied_ = true;
    if (fill) each([](std::byte* mine, std::byte* theirs, std::size_t n) { std::memcpy(mine, theirs, n); });
  }
  gathered(mpi_endpoint& endpoint, std::byte* data, std::size_t bytes, bool fill)
      : gathered(endpoint, layout::uniform(data, bytes, data != nullptr ? 1 : 0), fill) {
    if (bytes == 0) data_ = data;  // MPI tells buffers by their addresses, of no elements too
  }
  gathered(mpi_endpoint& endpoint, const std::byte* data, std::size_t bytes)
      : gathered(endpoint, const_cast<std::byte*>(data), bytes, true) {}
  /// Only if it is a copy.
  void give() const {
    if (copied_) each([](std::byte* mine, std::byte* theirs, std::size_t n) { std::memcpy(theirs, mine, n); });
  }
  /// MPI may still use it: then nobody else does.
  void leave() noexcept {
    if (copied_) copy_.leave();
  }
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  /// Whether this is in the other buffer: then it is in its place there.
  [[nodiscard]] bool within(const gathered& other) const noexcept {
    return bytes_ > 0 && data_ >= other.data_ && data_ < other.data_ + other.bytes_;
  }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  static constexpr std::size_t longest_value = std::size_t{4} << 10;

  template <class F>
  void each(F f) const {
    std::byte* at = data_;
    where_.each_piece(0, where_.blocks(), [&](std::byte* data, std::size_t n) {
      f(at, data, n);
      at += n;
    });
  }

  layout where_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  bool copied_ = false;
  detail::borrowed_buffer copy_{};
};

/// What goes into a reduction and what comes of it, which may be one buffer.
class operands {
 public:
  /// `out`: null where nothing comes of it. What MPI leaves there as it is, is what was there.
  operands(mpi_endpoint& endpoint, const std::byte* in, std::byte* out, std::size_t bytes)
      : in_(endpoint, in, in != out ? bytes : 0), out_(endpoint, out, bytes, true), in_place_(in == out) {}
  void give() const { out_.give(); }
  void leave() noexcept {
    in_.leave();
    out_.leave();
  }
  [[nodiscard]] const std::byte* in() const noexcept { return in_place_ ? out_.data() : in_.data(); }
  [[nodiscard]] std::byte* out() const noexcept { return out_.data(); }

 private:
  gathered in_;
  gathered out_;
  bool in_place_;
};

/// The sizes of the blocks of a layout as MPI's counts and displacements, in bytes.
struct cuts {
  std::vector<int> counts{};
  std::vector<int> places{};
  bool even = true;

  [[nodiscard]] static cuts of(const layout& where, std::size_t unit = 1) {
    cuts c;
    std::size_t at = 0;
    for (int b = 0; b < where.blocks(); ++b) {
      const std::size_t n = where.bytes(b, 1) / unit;
      c.counts.push_back(static_cast<int>(n));
      c.places.push_back(static_cast<int>(at));
      c.even = c.even && static_cast<int>(n) == c.counts.front();
      at += n;
    }
    return c;
  }
};

/// MPI may still read it: it goes to nobody else.
template <class T>
void leave(T& what) noexcept {
  static_cast<void>(new (std::nothrow) T(std::move(what)));
}

}  // namespace cohort::transport::detail_mpi
