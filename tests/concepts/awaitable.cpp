// SPDX-License-Identifier: BSL-1.0
#include <cohort/awaitable.hpp>
#include <cohort/operation.hpp>
#include <cohort/task.hpp>

#include <coroutine>
#include <memory>

namespace {

using namespace cohort;

struct minimal_awaiter {
  bool await_ready() { return true; }
  void await_suspend(std::coroutine_handle<>) {}
  int await_resume() { return 1; }
};
struct through_a_member {
  minimal_awaiter operator co_await() { return {}; }
};
struct through_a_function {};
[[maybe_unused]] minimal_awaiter operator co_await(through_a_function&) { return {}; }

static_assert(awaitable<minimal_awaiter> && awaitable<through_a_member> && awaitable<through_a_function>);
static_assert(std::is_same_v<await_result_t<minimal_awaiter>, int>);
static_assert(std::is_same_v<await_result_t<through_a_member>, int>);
static_assert(std::is_same_v<await_result_t<task<>>, void>);
static_assert(std::is_same_v<await_result_t<operation<std::unique_ptr<int>>>, std::unique_ptr<int>>);

struct never_resumes {
  bool await_ready() { return true; }
  void await_suspend(std::coroutine_handle<>) {}
};
struct ready_is_no_bool {
  void await_ready() {}
  void await_suspend(std::coroutine_handle<>) {}
  void await_resume() {}
};
static_assert(!awaitable<never_resumes> && !awaitable<ready_is_no_bool> && !awaitable<int> && !awaitable<std::coroutine_handle<>>);

// Without asio.hpp an operation takes no completion token.
template <class T>
concept takes_token = requires(operation<int>& op, T token) { op(token); };
static_assert(!takes_token<int> && !takes_token<void (*)(int)>);

}  // namespace
