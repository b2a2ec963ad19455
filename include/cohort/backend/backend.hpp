// SPDX-License-Identifier: BSL-1.0
// What a backend is, and what it can do: a tag type that names a transport, and one capability concept for each
// collective that it has of its own. communicator.hpp asks here once, and nowhere else.
#pragma once

#include <cohort/backend/function.hpp>
#include <cohort/element.hpp>
#include <cohort/reduction.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/native.hpp>

#include <concepts>
#include <string_view>

namespace cohort {

/// A backend needs a name and a transport that sends and receives; everything else is built on that.
template <class B>
concept backend = requires {
  typename B::transport_type;
  { B::name } -> std::convertible_to<std::string_view>;
}
&&transport::message_transport<typename B::transport_type>;

/// A backend opts in with a member `template <class T, class Op> static constexpr bool native_all_reduce = ...` and
/// the function itself.
template <class B, class T, class Op>
concept native_all_reduce = requires {
  requires B::template native_all_reduce<T, Op>;
};

namespace detail {

/// Whether the library that the transport stands on has this function itself.
template <class Transport, function F, class T, class Op>
[[nodiscard]] consteval bool has_native() noexcept {
  using enum function;
  if constexpr (F == barrier) return transport::native_barrier<Transport>;
  else if constexpr (F == broadcast) return transport::native_broadcast<Transport>;
  else if constexpr (F == scatter || F == scatter_v) return transport::native_scatter<Transport>;
  else if constexpr (F == gather || F == gather_v) return transport::native_gather<Transport>;
  else if constexpr (F == all_gather || F == all_gather_v) return transport::native_all_gather<Transport>;
  else if constexpr (F == all_to_all || F == all_to_all_v) return transport::native_all_to_all<Transport>;
  else if constexpr (F == reduce) return transport::native_reduce<Transport, T, Op>;
  else if constexpr (F == all_reduce) return transport::native_all_reduce<Transport, T, Op>;
  else if constexpr (F == scan || F == exclusive_scan) return transport::native_scan<Transport, T, Op>;
  else if constexpr (F == reduce_scatter || F == reduce_scatter_v)
    return transport::native_reduce_scatter<Transport, T, Op>;
  else return false;
}

/// A backend whose communicator is a class of its own says itself what its calls are.
template <class B, function F, class T, class Op>
concept tells_support = requires {
  { B::template supports<F, T, Op>() } -> std::same_as<support>;
};

}  // namespace detail

/// What a call of function F with elements of T, combined by Op where it combines, becomes on backend B.
template <class B, function F, class T, class Op = void>
[[nodiscard]] consteval support supports() noexcept {
  if constexpr (!element<T>) return support::none;
  else if constexpr (detail::tells_support<B, F, T, Op>) return B::template supports<F, T, Op>();
  else if constexpr (!backend<B>) return support::none;
  else if constexpr (reduces(F)) {
    if constexpr (!reduction<Op, T>) return support::none;
    else if constexpr (F == function::all_reduce && native_all_reduce<B, T, Op>) return support::native;
    else if constexpr (detail::has_native<typename B::transport_type, F, T, Op>()) return support::native;
    else return support::generic;
  } else if constexpr (detail::has_native<typename B::transport_type, F, T, void>()) return support::native;
  else return support::generic;
}

}  // namespace cohort
