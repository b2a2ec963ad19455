// SPDX-License-Identifier: BSL-1.0
// The Asio bridge: with this header an operation, and a call of an async_store, is also an Asio asynchronous operation,
// so that `co_await op` works inside asio::awaitable and `op(token)` takes any completion token. Opt-in; the core
// includes no Asio.
#pragma once

#include <cohort/detail/asio_hand_over.hpp>
#include <cohort/detail/asio_store_bridge.hpp>
#include <cohort/operation.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_allocator.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/execution/outstanding_work.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/prefer.hpp>
#include <boost/asio/system_executor.hpp>

#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace cohort {

/// The completion signature of an operation<T>: the exception of a failed operation is the cohort::error that
/// `co_await` would throw, with its text; the value is then a default-constructed T.
template <class T>
struct completion_signature {
  using type = detail::handed_signature_t<T>;
};
template <class T>
using completion_signature_t = typename completion_signature<T>::type;

namespace detail {

/// Where a handler without an executor of its own is called: on the io_context of its communicator. Nobody runs that of a
/// communicator which has one to itself: there it is Asio's own default.
inline boost::asio::any_io_executor executor_of(boost::asio::io_context* callers) {
  if (callers == nullptr) return boost::asio::system_executor{};
  return callers->get_executor();
}

/// An operation that a completion handler waits for. It owns itself from initiation to completion.
template <class T, class Handler>
class handed_over {
 public:
  using executor_type = boost::asio::associated_executor_t<Handler, boost::asio::any_io_executor>;
  using work_type = std::decay_t<decltype(boost::asio::prefer(std::declval<executor_type>(),
                                                              boost::asio::execution::outstanding_work.tracked))>;
  using allocator_type =
      typename std::allocator_traits<boost::asio::associated_allocator_t<Handler>>::template rebind_alloc<handed_over>;

  handed_over(operation<T> op, Handler handler)
      : op_(std::move(op)),
        handler_(std::move(handler)),
        // The context that runs the handler stays at work until then.
        work_(boost::asio::prefer(boost::asio::get_associated_executor(handler_, executor_of(op_.context())),
                                  boost::asio::execution::outstanding_work.tracked)) {}

  static void start(operation<T> op, Handler handler) {
    allocator_type allocator(boost::asio::get_associated_allocator(handler));
    handed_over* const self = std::allocator_traits<allocator_type>::allocate(allocator, 1);
    try {
      ::new (static_cast<void*>(self)) handed_over(std::move(op), std::move(handler));
    } catch (...) {
      std::allocator_traits<allocator_type>::deallocate(allocator, self, 1);
      throw;
    }
    if (self->op_.ready()) return self->complete(false);
    self->listen_for_cancellation();
    self->op_.on_complete({[](void* p) { static_cast<handed_over*>(p)->complete(true); }, self});
  }

 private:
  void listen_for_cancellation() {
    auto slot = boost::asio::get_associated_cancellation_slot(handler_);
    if (!slot.is_connected()) return;
    slot.assign([this](boost::asio::cancellation_type type) {
      // There is no partial cancellation of a collective: it ends for everybody.
      if ((type & boost::asio::cancellation_type::terminal) != boost::asio::cancellation_type::none)
        op_.record()->request_stop();
    });
  }

  // Never from inside the initiating function: the handler is then posted, not called.
  void complete(bool inside_turn) {
    if (auto slot = boost::asio::get_associated_cancellation_slot(handler_); slot.is_connected()) slot.clear();
    operation<T> op = std::move(op_);
    Handler handler = std::move(handler_);
    [[maybe_unused]] const work_type work = std::move(work_);
    // Memory first: the handler may start the next operation with it.
    allocator_type allocator(boost::asio::get_associated_allocator(handler));
    this->~handed_over();
    std::allocator_traits<allocator_type>::deallocate(allocator, this, 1);
    const auto executor = boost::asio::get_associated_executor(handler, executor_of(op.context()));
    auto deliver = [handler = std::move(handler), op = std::move(op)]() mutable {
      deliver_outcome(op, std::move(handler));
    };
    if (inside_turn) {
      boost::asio::dispatch(executor, std::move(deliver));
    } else {
      boost::asio::post(executor, std::move(deliver));
    }
  }

  operation<T> op_;
  Handler handler_;
  work_type work_;
};

template <class Token, class T>
  requires completion_token_of<Token, T>
struct completion_bridge<Token, T> {
  static_assert(
      std::is_void_v<T> || std::is_default_constructible_v<T>,
      "cohort: a completion handler gets a value even when the operation fails, so the element type must have a "
      "default constructor: use the form that writes into a buffer");
  static constexpr bool enabled = true;

  struct initiation {
    template <class Handler>
    void operator()(Handler&& handler, operation<T>&& op) const {
      handed_over<T, std::decay_t<Handler>>::start(std::move(op), std::forward<Handler>(handler));
    }
  };
  template <class Given>
  static decltype(auto) initiate(operation<T>&& op, Given&& token) {
    return boost::asio::async_initiate<Given, completion_signature_t<T>>(initiation{}, token, std::move(op));
  }
};

}  // namespace detail
}  // namespace cohort
