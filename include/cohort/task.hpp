// SPDX-License-Identifier: BSL-1.0
// task<T>: the library's own coroutine type, lazy and move-only. What a rank's main function returns, and
// what the steps of a collective are written in.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/frame_pool.hpp>

#include <coroutine>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort {

template <class T = void>
class task;

namespace detail {

struct task_promise_base : pooled_frame {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr failure{};

  struct final_awaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> finished) const noexcept {
      return finished.promise().continuation;
    }
    void await_resume() const noexcept {}
  };

  std::suspend_always initial_suspend() const noexcept { return {}; }
  final_awaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { failure = std::current_exception(); }
};

template <class T>
struct task_promise : task_promise_base {
  std::optional<T> value{};
  task<T> get_return_object() noexcept;
  template <class U = T>
    requires std::is_constructible_v<T, U&&>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (failure) std::rethrow_exception(failure);
    return std::move(*value);
  }
};

template <>
struct task_promise<void> : task_promise_base {
  task<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const {
    if (failure) std::rethrow_exception(failure);
  }
};

}  // namespace detail

/// A coroutine that starts when it is awaited and gives one value of T.
///
/// Completes: resumes the awaiter on the thread on which its last step ended
/// Errors:    an exception that leaves the body is rethrown at `co_await`
/// Lifetime:  the task owns its frame; destroying it destroys the frame, and with it what it was waiting for
template <class T>
class [[nodiscard("a task does nothing until it is awaited")]] task {
 public:
  using promise_type = detail::task_promise<T>;

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  task& operator=(task&& other) noexcept {
    if (this != &other) {
      if (handle_) handle_.destroy();
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  ~task() {
    if (handle_) handle_.destroy();
  }

  struct awaiter {
    std::coroutine_handle<promise_type> handle;
    bool await_ready() const noexcept { return handle.done(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiting) const noexcept {
      handle.promise().continuation = awaiting;
      return handle;
    }
    T await_resume() const { return handle.promise().take(); }
  };
  awaiter operator co_await() const noexcept { return awaiter{handle_}; }

 private:
  friend promise_type;
  explicit task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

namespace detail {
template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
  return task<T>{std::coroutine_handle<task_promise<T>>::from_promise(*this)};
}
inline task<void> task_promise<void>::get_return_object() noexcept {
  return task<void>{std::coroutine_handle<task_promise<void>>::from_promise(*this)};
}
}  // namespace detail

}  // namespace cohort
