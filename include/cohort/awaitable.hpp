// SPDX-License-Identifier: BSL-1.0
// The concept of things that can be awaited, and what awaiting them gives. Used by when_all, sync_wait and
// as_result.
#pragma once

#include <concepts>
#include <coroutine>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

template <class A>
concept awaiter = requires(A& a, std::coroutine_handle<> h) {
  { a.await_ready() } -> std::convertible_to<bool>;
  a.await_suspend(h);
  a.await_resume();
};

template <class A>
concept has_member_co_await = requires(A&& a) { std::forward<A>(a).operator co_await(); };
template <class A>
concept has_free_co_await = requires(A&& a) { operator co_await(std::forward<A>(a)); };

template <class A>
struct awaiter_of {};
template <has_member_co_await A>
struct awaiter_of<A> {
  using type = decltype(std::declval<A>().operator co_await());
};
template <class A>
  requires(!has_member_co_await<A> && has_free_co_await<A>)
struct awaiter_of<A> {
  using type = decltype(operator co_await(std::declval<A>()));
};
template <class A>
  requires(!has_member_co_await<A> && !has_free_co_await<A> && awaiter<A>)
struct awaiter_of<A> {
  using type = A;
};

}  // namespace detail

/// Something `co_await` takes: operation, task, or any other coroutine library's awaitable.
template <class A>
concept awaitable = requires { typename detail::awaiter_of<A&>::type; };

template <awaitable A>
using await_result_t =
    std::remove_cvref_t<decltype(std::declval<typename detail::awaiter_of<A&>::type&>().await_resume())>;

}  // namespace cohort
