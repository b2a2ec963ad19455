// SPDX-License-Identifier: BSL-1.0
// What a call accepts as a buffer: any contiguous range of elements that outlives the call. Asked by every
// function of the communicator; what does not fit is a compile error that says what to write.
#pragma once

#include <cohort/element.hpp>
#include <cohort/types.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <type_traits>

namespace cohort {

/// Anything with begin and end: what a caller means as a buffer, right or wrong.
template <class B>
concept range_like = requires(B& b) {
  std::ranges::begin(b);
  std::ranges::end(b);
};

/// One value, which is neither a buffer nor an option: the value forms take it.
template <class V>
concept single_value = !range_like<V> && !call_option<V> && !std::is_pointer_v<std::remove_cvref_t<V>>;

/// A contiguous run of elements: vector, array, span, a built-in array, ...
template <class B>
concept contiguous_buffer = range_like<B> && std::ranges::contiguous_range<B> && std::ranges::sized_range<B> &&
    element<std::remove_cvref_t<std::ranges::range_reference_t<B>>>;

/// A range of contiguous buffers, one for each rank.
template <class B>
concept buffer_list = range_like<B> && std::ranges::forward_range<B> && std::ranges::sized_range<B> &&
    range_like<std::remove_reference_t<std::ranges::range_reference_t<B>>> &&
    contiguous_buffer<std::remove_reference_t<std::ranges::range_reference_t<B>>>;

template <class B>
using buffer_element_t = std::remove_cvref_t<std::ranges::range_reference_t<B>>;

template <buffer_list B>
using list_element_t = buffer_element_t<std::remove_reference_t<std::ranges::range_reference_t<B>>>;

namespace detail {

template <class B>
inline constexpr bool outlives_call = std::is_lvalue_reference_v<B> || std::ranges::borrowed_range<B>;

/// Refuses a buffer that cannot be read, with the reason. B is deduced as B&&.
template <class B>
constexpr bool check_buffer() noexcept {
  using range = std::remove_reference_t<B>;
  static_assert(outlives_call<B>,
                "cohort: this container would be gone before the operation has used it (an operation owns nothing of "
                "yours): give it a name that lives until co_await, or pass a std::span of something that does");
  static_assert(!is_bit_vector<std::remove_cv_t<range>>,
                "cohort: std::vector<bool> packs its bits, so there is no array of bool to send: use "
                "std::vector<char> or std::array<bool, N>");
  if constexpr (!is_bit_vector<std::remove_cv_t<range>>) {
    static_assert(
        std::ranges::contiguous_range<range> && std::ranges::sized_range<range>,
        "cohort: a buffer is contiguous in memory (std::vector, std::array, std::span, a built-in array): copy "
        "the elements of this range into a std::vector first");
    if constexpr (std::ranges::contiguous_range<range>) check_element<buffer_element_t<range>>();
  }
  return true;
}

template <class B>
constexpr bool check_output() noexcept {
  if constexpr (check_buffer<B>() && std::ranges::contiguous_range<std::remove_reference_t<B>>) {
    static_assert(!std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<std::remove_reference_t<B>>>>,
                  "cohort: the result is written here, so the elements must not be const: pass a std::span<T>, not a "
                  "std::span<const T>, and no const container");
  }
  return true;
}

template <class A, class B>
constexpr bool check_same_element() noexcept {
  static_assert(std::is_same_v<A, B>,
                "cohort: input and output have different element types: elements travel as they are, so convert on one "
                "side before the call");
  return true;
}

template <class... Options>
constexpr bool check_options() noexcept {
  static_assert(
      (call_option<Options> && ...),
      "cohort: the trailing arguments of an operation are options: timeout{5s}, stop{token}; a root is root{0}, a "
      "destination to{1}, a source from{0}, a tag tag{7}");
  return true;
}

template <class B>
[[nodiscard]] auto view(B& b) noexcept {
  return std::span(std::ranges::data(b), std::ranges::size(b));
}

}  // namespace detail
}  // namespace cohort
