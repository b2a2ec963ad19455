// SPDX-License-Identifier: BSL-1.0
// when_all: waits for several operations or tasks together and gives all their values.
#pragma once

#include <cohort/awaitable.hpp>
#include <cohort/task.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cohort {
namespace detail {

// Counts the members still running; the last one resumes whoever waits.
struct join_counter {
  std::size_t pending = 0;
  std::coroutine_handle<> waiter{};
  std::exception_ptr first_failure{};

  // True for the last one.
  [[nodiscard]] bool arrive() noexcept { return --pending == 0; }
};

template <class T>
using regular_t = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
struct joined {
  std::optional<regular_t<T>> value{};
};

// Runs one member to its end, stores its outcome, and reports to the counter.
class join_member {
 public:
  struct promise_type : pooled_frame {
    join_counter* counter = nullptr;
    join_member get_return_object() noexcept {
      return join_member{std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    struct final_awaiter {
      bool await_ready() const noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) const noexcept {
        join_counter& c = *h.promise().counter;
        return c.arrive() && c.waiter ? c.waiter : std::noop_coroutine();
      }
      void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() noexcept {
      if (!counter->first_failure) counter->first_failure = std::current_exception();
    }
  };

  explicit join_member(std::coroutine_handle<promise_type> h) noexcept : handle_(h) {}
  join_member(join_member&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  join_member& operator=(join_member&&) = delete;
  ~join_member() {
    if (handle_) handle_.destroy();
  }
  void start(join_counter& counter) const {
    handle_.promise().counter = &counter;
    handle_.resume();
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

template <class T, class Awaitable>
join_member join_one(Awaitable& awaitable, joined<T>& into) {
  if constexpr (std::is_void_v<T>) {
    co_await awaitable;
    into.value.emplace();
  } else {
    into.value.emplace(co_await awaitable);
  }
}

struct join_awaiter {
  join_counter& counter;
  explicit join_awaiter(join_counter& c) noexcept : counter(c) {}
  bool await_ready() const noexcept { return counter.pending == 0; }
  void await_suspend(std::coroutine_handle<> h) const noexcept { counter.waiter = h; }
  void await_resume() const {
    if (counter.first_failure) std::rethrow_exception(counter.first_failure);
  }
};

}  // namespace detail

/// Waits for all of them, whatever becomes of each.
///
/// Result:   nothing if none gives a value, else a tuple with std::monostate for those that give none
/// Order:    tasks are started from left to right; operations are in flight already
/// Errors:   the first exception, when every member has ended
/// Lifetime: takes the members over
template <class... Awaitables>
  requires(sizeof...(Awaitables) > 0 && (awaitable<Awaitables> && ...) &&
           !(std::is_lvalue_reference_v<Awaitables> || ...))
task<std::conditional_t<(std::is_void_v<await_result_t<Awaitables>> && ...), void,
                        std::tuple<detail::regular_t<await_result_t<Awaitables>>...>>>
when_all(Awaitables... members) {
  constexpr bool nothing = (std::is_void_v<await_result_t<Awaitables>> && ...);
  std::tuple<detail::joined<await_result_t<Awaitables>>...> values;
  detail::join_counter counter;
  counter.pending = sizeof...(Awaitables);
  std::vector<detail::join_member> running;
  running.reserve(sizeof...(Awaitables));
  std::tuple<Awaitables&...> all{members...};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (running.push_back(detail::join_one<await_result_t<Awaitables>>(std::get<I>(all), std::get<I>(values))), ...);
  }
  (std::index_sequence_for<Awaitables...>{});
  for (const detail::join_member& m : running) m.start(counter);
  co_await detail::join_awaiter{counter};
  if constexpr (!nothing) {
    co_return std::apply(
        [](auto&... each) {
          return std::tuple<detail::regular_t<await_result_t<Awaitables>>...>{std::move(*each.value)...};
        },
        values);
  }
}

/// The same for any number of one kind.
///
/// Result: nothing, or a vector of the values in the order of the members
template <awaitable Awaitable>
task<std::conditional_t<std::is_void_v<await_result_t<Awaitable>>, void,
                        std::vector<detail::regular_t<await_result_t<Awaitable>>>>>
when_all(std::vector<Awaitable> members) {
  using result = await_result_t<Awaitable>;
  std::vector<detail::joined<result>> values(members.size());
  detail::join_counter counter;
  counter.pending = members.size();
  std::vector<detail::join_member> running;
  running.reserve(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) running.push_back(detail::join_one<result>(members[i], values[i]));
  for (const detail::join_member& m : running) m.start(counter);
  co_await detail::join_awaiter{counter};
  if constexpr (!std::is_void_v<result>) {
    std::vector<result> all;
    all.reserve(values.size());
    for (detail::joined<result>& v : values) all.push_back(std::move(*v.value));
    co_return all;
  }
}

}  // namespace cohort
