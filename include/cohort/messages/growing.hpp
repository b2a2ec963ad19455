// SPDX-License-Identifier: BSL-1.0
// growing(container): a receive buffer that takes the size of the message that comes. For messages whose length only
// their sender knows.
#pragma once

#include <cohort/memory.hpp>
#include <cohort/transport/request.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>

namespace cohort {

/// A container that a message can be received into whole: contiguous, of elements, with resize.
template <class C>
concept growable_buffer = contiguous_buffer<C> && requires(C& c, std::size_t n) {
  c.resize(n);
  { c.max_size() } -> std::convertible_to<std::size_t>;
};

template <growable_buffer Container>
class growing_buffer {
 public:
  using container_type = Container;
  using element_type = buffer_element_t<Container>;

  growing_buffer(Container& into, std::size_t most) noexcept : into_(&into), most_(most) {}
  [[nodiscard]] Container& container() const noexcept { return *into_; }
  [[nodiscard]] std::size_t most() const noexcept { return most_; }

 private:
  Container* into_;
  std::size_t most_;
};

/// The container is resized to the message, by the thread that delivers it. A message of more than `most` elements is
/// errc::truncated.
///
/// Lifetime: the container is borrowed until the receive has completed; its elements move when it grows
/// Cost:     resize, which for std::vector fills the new elements with zeros first
template <growable_buffer Container>
[[nodiscard]] growing_buffer<Container> growing(Container& into,
                                                std::size_t most = std::numeric_limits<std::size_t>::max()) noexcept {
  return {into, most};
}

namespace detail {

template <class B>
inline constexpr bool is_growing = false;
template <class C>
inline constexpr bool is_growing<growing_buffer<C>> = true;

/// The room of a receive that grows: it lives in the frame of the operation.
struct growing_room {
  void* container = nullptr;
  std::size_t most = 0;
  transport::piece piece{};
  bool (*grow)(growing_room& room, std::uint64_t bytes) noexcept = nullptr;

  template <class Container>
  [[nodiscard]] static growing_room of(const growing_buffer<Container>& b) noexcept {
    growing_room room;
    room.container = &b.container();
    room.most = b.most();
    room.grow = [](growing_room& r, std::uint64_t bytes) noexcept {
      using T = buffer_element_t<Container>;
      auto& c = *static_cast<Container*>(r.container);
      if (bytes % sizeof(T) != 0 || bytes / sizeof(T) > r.most || bytes / sizeof(T) > c.max_size()) return false;
      try {
        c.resize(static_cast<std::size_t>(bytes / sizeof(T)));
      } catch (...) {
        return false;
      }
      r.piece = {reinterpret_cast<std::byte*>(std::ranges::data(c)), static_cast<std::size_t>(bytes)};
      return true;
    };
    return room;
  }
};

}  // namespace detail
}  // namespace cohort
