// SPDX-License-Identifier: BSL-1.0
// as_result: awaits an operation and gives its outcome as a value, for code that does not want exceptions.
#pragma once

#include <cohort/awaitable.hpp>
#include <cohort/error.hpp>
#include <cohort/task.hpp>

#include <boost/system/result.hpp>

#include <exception>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

[[nodiscard]] inline boost::system::error_code code_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::system_error& e) {
    return boost::system::error_code(e.code());
  } catch (const std::bad_alloc&) {
    return boost::system::error_code(make_error_code(errc::out_of_memory));
  } catch (...) {
    return boost::system::error_code(make_error_code(errc::user_function_failed));
  }
}

}  // namespace detail

/// Awaits without throwing.
///
/// Result:   the value, or the error code (compare `std::error_code(r.error()) == cohort::errc::timed_out`)
/// Errors:   none; the sentence that names rank and operation comes with the exception only
/// Lifetime: takes the operation over
template <class Awaitable>
  requires(awaitable<Awaitable> && !std::is_lvalue_reference_v<Awaitable>)
task<boost::system::result<await_result_t<Awaitable>>> as_result(Awaitable operation) {
  using result = boost::system::result<await_result_t<Awaitable>>;
  std::exception_ptr failure;
  try {
    if constexpr (std::is_void_v<await_result_t<Awaitable>>) {
      co_await operation;
      co_return result{};
    } else {
      co_return result{co_await operation};
    }
  } catch (...) {
    failure = std::current_exception();
  }
  co_return result{detail::code_of(failure)};
}

}  // namespace cohort
