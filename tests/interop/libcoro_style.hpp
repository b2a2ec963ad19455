// SPDX-License-Identifier: BSL-1.0
// Tasks as in libcoro: concepts decide what may be awaited, and they look at an lvalue; functions that wait for any
// awaitable wrap it in a coroutine that is resumed by hand.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

namespace libcoro_style {

template <class T>
concept awaiter = requires(T t, std::coroutine_handle<> h) {
  { t.await_ready() } -> std::same_as<bool>;
  t.await_suspend(h);
  t.await_resume();
};
template <class T>
concept member_co_await_awaitable = requires(T t) {
  { t.operator co_await() } -> awaiter;
};
template <class T>
concept awaitable = member_co_await_awaitable<T> || awaiter<T>;

template <member_co_await_awaitable T>
auto get_awaiter(T&& value) {
  return std::forward<T>(value).operator co_await();
}

/// The coroutine that a wait is made of; holds what it awaits by reference.
template <class T>
class waiting {
 public:
  struct promise_type {
    waiting get_return_object() noexcept { return waiting{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_value(T v) { value.emplace(std::move(v)); }
    void unhandled_exception() noexcept { failure = std::current_exception(); }
    std::optional<T> value{};
    std::exception_ptr failure{};
  };

  waiting(waiting&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  waiting& operator=(waiting&&) = delete;
  ~waiting() {
    if (handle_) handle_.destroy();
  }
  void resume() const { handle_.resume(); }
  [[nodiscard]] bool is_ready() const noexcept { return handle_.done(); }
  [[nodiscard]] T result() const {
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
    return *handle_.promise().value;
  }

 private:
  explicit waiting(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

template <class T, awaitable A>
waiting<T> wait_for(A& what) {
  co_return co_await what;
}

}  // namespace libcoro_style
