// SPDX-License-Identifier: BSL-1.0
// A task as in cppcoro: lazy, awaited through `operator co_await() &&`, continued by symmetric transfer. It converts
// nothing that its body awaits, and knows nothing of executors.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>
#include <variant>

namespace cppcoro_style {

template <class T>
class task {
 public:
  struct promise_type {
    struct continue_awaiter {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) const noexcept {
        return h.promise().continuation;
      }
      void await_resume() const noexcept {}
    };
    task get_return_object() noexcept { return task{std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    continue_awaiter final_suspend() const noexcept { return {}; }
    void return_value(T value) { outcome.template emplace<1>(std::move(value)); }
    void unhandled_exception() noexcept { outcome.template emplace<2>(std::current_exception()); }

    std::coroutine_handle<> continuation = std::noop_coroutine();
    std::variant<std::monostate, T, std::exception_ptr> outcome{};
  };

  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  task& operator=(task&&) = delete;
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
    T await_resume() const {
      auto& outcome = handle.promise().outcome;
      if (outcome.index() == 2) std::rethrow_exception(std::get<2>(outcome));
      return std::move(std::get<1>(outcome));
    }
  };
  awaiter operator co_await() && noexcept { return {handle_}; }

 private:
  explicit task(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace cppcoro_style
