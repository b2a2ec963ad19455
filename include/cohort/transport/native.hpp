// SPDX-License-Identifier: BSL-1.0
// Collectives that a transport's own library has: one concept for each, asked by collective/. A transport that has some
// specialises `native_collectives`; every other one carries everything out by schedules.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/detail/reducer.hpp>
#include <cohort/reduction.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/channel.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace cohort::transport {

/// To be specialised: static functions with the names of the collectives, as the concepts below call them.
///
/// Needs: each is called in the order of the calls on the communicator, before its operation has suspended
template <class Transport>
struct native_collectives {};

template <class T>
concept native_barrier = requires(call& c) {
  { native_collectives<T>::barrier(c) } -> std::same_as<task<>>;
};
template <class T>
concept native_broadcast = requires(call& c, std::byte* data, std::size_t bytes) {
  { native_collectives<T>::broadcast(c, 0, data, bytes) } -> std::same_as<task<>>;
};
/// `out` has a block for each rank, this rank's own in its place.
template <class T>
concept native_all_gather = requires(call& c, const collective::layout& out) {
  { native_collectives<T>::all_gather(c, out) } -> std::same_as<task<>>;
};
template <class T>
concept native_gather = requires(call& c, const collective::layout& in, const collective::layout& out) {
  { native_collectives<T>::gather(c, 0, in, out) } -> std::same_as<task<>>;
};
template <class T>
concept native_scatter = requires(call& c, const collective::layout& in, const collective::layout& out) {
  { native_collectives<T>::scatter(c, 0, in, out) } -> std::same_as<task<>>;
};
template <class T>
concept native_all_to_all = requires(call& c, const collective::layout& in, const collective::layout& out) {
  { native_collectives<T>::all_to_all(c, in, out) } -> std::same_as<task<>>;
};

/// A library that calls the functor back cannot be told that it threw: it may not.
template <class T, class Op>
concept never_throws = std::is_nothrow_invocable_v<const Op&, const T&, const T&> ||
    (detail::number<T>&& detail::fixed_functor_code<Op> != 0);

/// In place where in and out are the same.
template <class Tr, class T, class Op>
concept native_all_reduce = never_throws<T, Op> &&
    requires(call& c, const std::byte* in, std::byte* out, const detail::reducer& op) {
  { native_collectives<Tr>::all_reduce(c, in, out, std::size_t{}, op) } -> std::same_as<task<>>;
};
/// `out` on the root alone.
template <class Tr, class T, class Op>
concept native_reduce = never_throws<T, Op> &&
    requires(call& c, const std::byte* in, std::byte* out, const detail::reducer& op) {
  { native_collectives<Tr>::reduce(c, 0, in, out, std::size_t{}, op) } -> std::same_as<task<>>;
};
template <class Tr, class T, class Op>
concept native_scan = never_throws<T, Op> &&
    requires(call& c, const std::byte* in, std::byte* out, const detail::reducer& op) {
  { native_collectives<Tr>::scan(c, in, out, std::size_t{}, op) } -> std::same_as<task<>>;
  { native_collectives<Tr>::exclusive_scan(c, in, out, std::size_t{}, op) } -> std::same_as<task<>>;
};
template <class Tr, class T, class Op>
concept native_reduce_scatter = never_throws<T, Op> &&
    requires(call& c, const collective::layout& where, const detail::reducer& op) {
  { native_collectives<Tr>::reduce_scatter(c, where, where, op) } -> std::same_as<task<>>;
};

}  // namespace cohort::transport
