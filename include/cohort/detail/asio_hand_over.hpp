// SPDX-License-Identifier: BSL-1.0
// What another thread ends, as an Asio asynchronous operation: the calls of an async_store, and what waits for a device.
// Part of asio.hpp and of gpu/asio.hpp.
#pragma once

#include <cohort/detail/asio_awaitable_fix.hpp>

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
struct handed_signature {
  using type = delivered(std::exception_ptr, T);
};
template <>
struct handed_signature<void> {
  using type = void(std::exception_ptr);
};
template <class T>
using handed_signature_t = typename handed_signature<T>::type;

template <class Token, class T>
concept completion_token_of =
    !std::is_pointer_v<Token> && boost::asio::completion_token_for<Token, handed_signature_t<T>>;

/// Calls the handler with how an operation has ended.
template <class Op, class Handler>
void deliver_outcome(Op& op, Handler&& handler) {
  using value_type = typename Op::value_type;
  std::exception_ptr failure;
  if constexpr (std::is_void_v<value_type>) {
    try {
      op.take();
    } catch (...) {
      failure = std::current_exception();
    }
    std::forward<Handler>(handler)(std::move(failure));
  } else {
    value_type value{};
    try {
      value = op.take();
    } catch (...) {
      failure = std::current_exception();
    }
    std::forward<Handler>(handler)(std::move(failure), std::move(value));
  }
}

/// An operation that a completion handler waits for. It completes on any thread; everything here happens on the handler's
/// executor.
///
/// Needs: Op::value_type; on_complete(wake), false if it is done already; cancel(); take(), once it is done
template <class Op, class Handler>
class handed_over_call : public std::enable_shared_from_this<handed_over_call<Op, Handler>> {
 public:
  using executor_type = boost::asio::associated_executor_t<Handler>;
  using work_type = std::decay_t<decltype(boost::asio::prefer(std::declval<executor_type>(),
                                                              boost::asio::execution::outstanding_work.tracked))>;

  handed_over_call(Op op, Handler handler)
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
    deliver_outcome(op_, Handler(std::move(handler_)));
  }

  Op op_;
  executor_type executor_;
  Handler handler_;
  work_type work_;
};

/// Starts waiting for `op` with a completion token.
template <class Op, class Token>
decltype(auto) hand_over(Op&& op, Token&& token) {
  static_assert(!std::is_reference_v<Op>, "cohort: it is handed over");
  const auto initiation = []<class Handler>(Handler&& handler, Op&& mine) {
    using call = handed_over_call<Op, std::decay_t<Handler>>;
    std::make_shared<call>(std::move(mine), std::forward<Handler>(handler))->start();
  };
  return boost::asio::async_initiate<Token, handed_signature_t<typename Op::value_type>>(initiation, token,
                                                                                         std::move(op));
}

}  // namespace cohort::detail
