// SPDX-License-Identifier: BSL-1.0
// The calls of an async_store as Asio asynchronous operations. Part of asio.hpp.
#pragma once

#include <cohort/detail/asio_awaitable_fix.hpp>
#include <cohort/store/store_operation.hpp>

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace cohort::detail {

template <class T>
struct store_completion_signature {
  using type = delivered(std::exception_ptr, T);
};
template <>
struct store_completion_signature<void> {
  using type = void(std::exception_ptr);
};
template <class T>
using store_completion_signature_t = typename store_completion_signature<T>::type;

/// A call that a completion handler waits for. The call completes on the store's thread; everything here happens on the
/// handler's executor.
template <class T, class Handler>
class handed_over_call : public std::enable_shared_from_this<handed_over_call<T, Handler>> {
 public:
  using executor_type = boost::asio::associated_executor_t<Handler>;
  using work_type = std::decay_t<decltype(boost::asio::prefer(std::declval<executor_type>(),
                                                              boost::asio::execution::outstanding_work.tracked))>;

  handed_over_call(store_operation<T> op, Handler handler)
      : op_(std::move(op)),
        executor_(boost::asio::get_associated_executor(handler)),
        handler_(std::move(handler)),
        // The context that runs the handler stays at work until then.
        work_(boost::asio::prefer(executor_, boost::asio::execution::outstanding_work.tracked)) {}

  void start() {
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) {
      slot.assign([call = this](boost::asio::cancellation_type type) {
        if ((type & boost::asio::cancellation_type::terminal) != boost::asio::cancellation_type::none)
          call->op_.cancel();
      });
    }
    // Posted, never called from here: neither from inside the initiating function nor from inside a cancellation.
    const auto arrive = [self = this->shared_from_this()] {
      boost::asio::post(self->executor_, [self] { self->deliver(); });
    };
    if (!op_.on_complete(arrive)) arrive();
  }

 private:
  void deliver() {
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) slot.clear();
    [[maybe_unused]] const work_type work = std::move(work_);
    Handler handler = std::move(handler_);
    std::exception_ptr failure;
    if constexpr (std::is_void_v<T>) {
      try {
        op_.take();
      } catch (...) {
        failure = std::current_exception();
      }
      std::move(handler)(std::move(failure));
    } else {
      T value{};
      try {
        value = op_.take();
      } catch (...) {
        failure = std::current_exception();
      }
      std::move(handler)(std::move(failure), std::move(value));
    }
  }

  store_operation<T> op_;
  executor_type executor_;
  Handler handler_;
  work_type work_;
};

template <class Token, class T>
  requires(!std::is_pointer_v<Token> && boost::asio::completion_token_for<Token, store_completion_signature_t<T>>)
struct store_completion_bridge<Token, T> {
  static constexpr bool enabled = true;

  struct initiation {
    template <class Handler>
    void operator()(Handler&& handler, store_operation<T>&& op) const {
      using call = handed_over_call<T, std::decay_t<Handler>>;
      std::make_shared<call>(std::move(op), std::forward<Handler>(handler))->start();
    }
  };
  template <class Given>
  static decltype(auto) initiate(store_operation<T>&& op, Given&& token) {
    return boost::asio::async_initiate<Given, store_completion_signature_t<T>>(initiation{}, token, std::move(op));
  }
};

}  // namespace cohort::detail
