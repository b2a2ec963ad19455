// SPDX-License-Identifier: BSL-1.0
// device_span<T>: elements in the memory of a device. A type of its own, and no range: the host must not walk through
// it, and a host buffer is not taken for one. What every call of communicator<nccl> takes.
#pragma once

#include <cohort/element.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace cohort {

/// A pointer into device memory and a number of elements.
///
/// Lifetime: owns nothing; what it points to must live until the work that uses it has been carried out
template <class T>
  requires element<std::remove_const_t<T>>
class device_span {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  constexpr device_span() = default;
  constexpr device_span(T* data, std::size_t size) noexcept : data_(data), size_(size) {}
  /// From a span of the same elements that may be written.
  template <class U>
    requires(std::is_const_v<T>&& std::same_as<const U, T>)
  constexpr device_span(const device_span<U>& other) noexcept : data_(other.data()), size_(other.size()) {}

  [[nodiscard]] constexpr T* data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }

  /// Needs: offset + count is no more than size()
  [[nodiscard]] constexpr device_span subspan(std::size_t offset, std::size_t count) const noexcept {
    return {data_ + offset, count};
  }
  [[nodiscard]] constexpr device_span first(std::size_t count) const noexcept { return {data_, count}; }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0;
};
template <class T>
device_span(T*, std::size_t) -> device_span<T>;

namespace detail {

template <class B>
inline constexpr bool is_device_span = false;
template <class T>
inline constexpr bool is_device_span<device_span<T>> = true;

/// A class that owns device memory says so by a member `device_view()`.
template <class B>
concept owns_device_memory = requires(B& b) {
  requires is_device_span<std::remove_cvref_t<decltype(b.device_view())>>;
};

}  // namespace detail

/// What a call on a device backend takes as a buffer: a device_span, or a device_buffer that has a name.
template <class B>
concept device_range = detail::is_device_span<std::remove_cvref_t<B>> || detail::owns_device_memory<B>;

namespace detail {

/// Refuses what is no device buffer, with what to write instead. B is deduced as B&&.
template <class B>
constexpr bool check_device_buffer() noexcept {
  using Plain = std::remove_cvref_t<B>;
  static_assert(
      !std::is_arithmetic_v<Plain>,
      "cohort: one value lies in the memory of the host, which this backend does not reach: make the call on the "
      "communicator of the host that this one was made of (loss = co_await world.all_reduce(loss, sum{})), or "
      "leave the value on the device, in a device_buffer<T>(1)");
  static_assert(device_range<std::remove_reference_t<B>> || std::is_arithmetic_v<Plain>,
                "cohort: a buffer of this backend lies in the memory of a device, and this is memory of the host: copy "
                "it into a cohort::device_buffer<T>, or, if the pointer is one of the device (cudaMalloc, a tensor), "
                "write cohort::device_span(pointer, count)");
  static_assert(
      !owns_device_memory<std::remove_reference_t<B>> || is_device_span<Plain> || std::is_lvalue_reference_v<B>,
      "cohort: this device_buffer would be gone before the operation has used it (an operation owns nothing "
      "of yours): give it a name that lives until the stream has done the work");
  return true;
}

/// The span of a buffer of either kind.
template <class B>
[[nodiscard]] constexpr auto view_on_device(B& b) noexcept {
  if constexpr (is_device_span<std::remove_cvref_t<B>>) return b;
  else return b.device_view();
}
template <class B>
using device_element_t = typename decltype(view_on_device(std::declval<std::remove_reference_t<B>&>()))::value_type;

template <class B>
constexpr bool check_device_output() noexcept {
  if constexpr (check_device_buffer<B>() && device_range<std::remove_reference_t<B>>) {
    using View = decltype(view_on_device(std::declval<std::remove_reference_t<B>&>()));
    static_assert(!std::is_const_v<typename View::element_type>,
                  "cohort: the result is written here, so the elements must not be const: pass a device_span<T>, not a "
                  "device_span<const T>");
  }
  return true;
}

/// The element type of an input and an output, both of which have been refused if they are not right.
template <class In, class Out>
[[nodiscard]] constexpr auto checked_device_pair() noexcept {
  check_device_buffer<In>();
  check_device_output<Out>();
  if constexpr (device_range<std::remove_reference_t<In>> && device_range<std::remove_reference_t<Out>>) {
    static_assert(
        std::is_same_v<device_element_t<In>, device_element_t<Out>>,
        "cohort: input and output have different element types: elements travel as they are, so convert on one "
        "side before the call");
    return std::type_identity<device_element_t<Out>>{};
  } else {
    return std::type_identity<char>{};
  }
}
template <class In, class Out>
using checked_device_element = typename decltype(checked_device_pair<In, Out>())::type;

}  // namespace detail
}  // namespace cohort
