// SPDX-License-Identifier: BSL-1.0
// What a backend is, and what it can do: a tag type that names a transport, and one capability concept for each
// collective that it has of its own. communicator.hpp asks here once, and nowhere else.
#pragma once

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

/// The functions of a communicator, as `supports` names them.
enum class function : unsigned char {
  send,
  recv,
  exchange,
  barrier,
  broadcast,
  scatter,
  scatter_v,
  gather,
  gather_v,
  reduce,
  all_reduce,
  all_gather,
  all_gather_v,
  reduce_scatter,
  reduce_scatter_v,
  all_to_all,
  all_to_all_v,
  scan,
  exclusive_scan,
  probe,
  batch,
  all_reduce_coalesced,
  all_gather_coalesced,
  reduce_scatter_coalesced,
};

[[nodiscard]] constexpr bool reduces(function f) noexcept {
  return f == function::reduce || f == function::all_reduce || f == function::reduce_scatter ||
         f == function::reduce_scatter_v || f == function::scan || f == function::exclusive_scan ||
         f == function::all_reduce_coalesced || f == function::reduce_scatter_coalesced;
}

/// How a backend carries a call out.
enum class support : unsigned char {
  none,     ///< it does not compile; the error says why
  generic,  ///< by a schedule over send and receive
  native,   ///< by the backend's own collective
};

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

}  // namespace detail

/// What a call of function F with elements of T, combined by Op where it combines, becomes on backend B.
template <class B, function F, class T, class Op = void>
[[nodiscard]] consteval support supports() noexcept {
  if constexpr (!backend<B> || !element<T>) return support::none;
  else if constexpr (reduces(F)) {
    if constexpr (!reduction<Op, T>) return support::none;
    else if constexpr (F == function::all_reduce && native_all_reduce<B, T, Op>) return support::native;
    else if constexpr (detail::has_native<typename B::transport_type, F, T, Op>()) return support::native;
    else return support::generic;
  } else if constexpr (detail::has_native<typename B::transport_type, F, T, void>()) return support::native;
  else return support::generic;
}

}  // namespace cohort
