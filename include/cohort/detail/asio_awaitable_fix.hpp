// SPDX-License-Identifier: BSL-1.0
// asio::awaitable of Boost 1.81 does not compile for operations that complete with (std::exception_ptr, T): its
// handler asks the result structure itself whether there is an exception. Part of asio.hpp.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/version.hpp>

#include <exception>
#include <utility>

namespace cohort::detail {

#if BOOST_VERSION < 108300
/// The return type of a completion signature means nothing to Asio; this one selects the handler below.
struct delivered {};
#else
using delivered = void;
#endif

}  // namespace cohort::detail

#if BOOST_VERSION < 108300
namespace boost::asio::detail {

template <class T, class Executor>
class awaitable_async_op_handler<cohort::detail::delivered(std::exception_ptr, T), Executor>
    : public awaitable_thread<Executor> {
 public:
  struct result_type {
    std::exception_ptr failure{};
    T* value = nullptr;
  };

  awaitable_async_op_handler(awaitable_thread<Executor>* self, result_type& result)
      : awaitable_thread<Executor>(std::move(*self)), result_(result) {}

  void operator()(std::exception_ptr failure, T value) {
    result_.failure = std::move(failure);
    result_.value = &value;
    this->entry_point()->top_of_stack_->attach_thread(this);
    this->entry_point()->top_of_stack_->clear_cancellation_slot();
    this->pump();
  }

  static T resume(result_type& result) {
    if (result.failure) std::rethrow_exception(std::exchange(result.failure, nullptr));
    return std::move(*result.value);
  }

 private:
  result_type& result_;
};

}  // namespace boost::asio::detail
#endif
