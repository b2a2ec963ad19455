// SPDX-License-Identifier: BSL-1.0
// sync_wait: runs an awaitable to its end from ordinary code, driving whatever communicators it waits for.
#pragma once

#include <cohort/awaitable.hpp>
#include <cohort/detail/wait_scope.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

// A coroutine that starts at once, stores its outcome, and stays until its owner goes.
template <class T>
class eager_wait {
 public:
  struct promise_type {
    std::optional<std::conditional_t<std::is_void_v<T>, char, T>> value{};
    std::exception_ptr failure{};
    eager_wait get_return_object() noexcept {
      return eager_wait{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    template <class U>
    void return_value(U&& v) {
      value.emplace(std::forward<U>(v));
    }
    void unhandled_exception() noexcept { failure = std::current_exception(); }
  };

  explicit eager_wait(std::coroutine_handle<promise_type> h) noexcept : handle_(h) {}
  eager_wait(eager_wait&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  eager_wait& operator=(eager_wait&&) = delete;
  ~eager_wait() {
    if (handle_) handle_.destroy();
  }
  [[nodiscard]] bool done() const noexcept { return handle_.done(); }
  T take() {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
    if constexpr (!std::is_void_v<T>) return std::move(*handle_.promise().value);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

template <class T, class Awaitable>
eager_wait<T> start_waiting(Awaitable& awaitable) {
  if constexpr (std::is_void_v<T>) {
    co_await awaitable;
    co_return char{};
  } else {
    co_return co_await awaitable;
  }
}

}  // namespace detail

/// Runs `awaitable` to its end on this thread.
///
/// Result:   what `co_await awaitable` gives
/// Errors:   what `co_await awaitable` throws
/// Lifetime: everything in flight below it is destroyed before it returns, also after an exception
/// Cost:     spins, then yields, then sleeps in the reactor while nothing moves
template <awaitable Awaitable>
await_result_t<Awaitable> sync_wait(Awaitable&& awaitable) {
  detail::wait_scope scope;
  using result = await_result_t<Awaitable>;
  auto running = detail::start_waiting<result>(awaitable);
  scope.drive_until([&] { return running.done(); });
  return running.take();
}

}  // namespace cohort
