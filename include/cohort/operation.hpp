// SPDX-License-Identifier: BSL-1.0
// operation<T>: a collective or a message in flight. It starts when it is called and is awaited later; made by
// the functions of communicator.hpp, completed by the engine.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/detail/frame_pool.hpp>
#include <cohort/detail/resumption.hpp>
#include <cohort/detail/wait_scope.hpp>
#include <cohort/transport/engine.hpp>

#include <coroutine>
#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort {

template <class T = void>
class operation;

namespace detail {

/// What a front function hands to the coroutine of an operation: its place in the order of calls.
///
/// Lifetime: `home` is borrowed until the coroutine's promise has been made, which keeps a copy: an operation that needs
///           no frame touches no count of owners, each of which would wait for the writes before it
struct ticket {
  const std::shared_ptr<group>& home;
  std::int64_t sequence;
  transport::signature signature{};
  call::options chosen;
  call::beginning begun{};
  ticket(const std::shared_ptr<group>& h, std::int64_t n, const transport::signature& s, call::options o) noexcept
      : home(h), sequence(n), chosen(std::move(o)) {
    signature.copy_by_words(s);
  }
};

template <class T>
struct stored {
  using type = T;
};
template <>
struct stored<void> {
  struct type {};
};
template <class T>
using stored_t = typename stored<T>::type;

/// The outcome of an operation without a result that needed no frame, once there is one. A std::optional of nothing has two
/// bytes, which are copied in one: see the members of operation.
class nothing_if_any {
 public:
  void emplace(stored_t<void>) noexcept { there_ = true; }
  void reset() noexcept { there_ = false; }
  explicit operator bool() const noexcept { return there_; }

 private:
  bool there_ = false;
};
template <class T>
using outcome_if_any = std::conditional_t<std::is_void_v<T>, nothing_if_any, std::optional<stored_t<T>>>;

/// Completion-token support is switched on by asio.hpp, which specialises this.
template <class Token, class T>
struct completion_bridge {
  static constexpr bool enabled = false;
};

class operation_promise_base : public pooled_frame {
 public:
  explicit operation_promise_base(ticket& t) : call_(t.home, t.sequence, t.signature, std::move(t.chosen)) {
    call_.begun = std::move(t.begun);
  }

  std::suspend_never initial_suspend() const noexcept { return {}; }
  struct final_awaiter {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) const noexcept {
      h.promise().conclude();
    }
    void await_resume() const noexcept {}
  };
  final_awaiter final_suspend() const noexcept { return {}; }
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

  [[nodiscard]] call& record() noexcept { return call_; }
  [[nodiscard]] transport::engine& engine() noexcept { return call_.engine(); }
  void continue_with(resumption r) noexcept { continuation_ = r; }
  void drop_continuation() noexcept {
    if (continuation_.resume != nullptr) engine().forget(continuation_.argument);
    continuation_ = {};
  }

 protected:
  /// Of what lies in the frame.
  template <class... Kept>
  static consteval void check_alignment() noexcept {
    static_assert(((alignof(Kept) <= frame_pool::most_aligned) && ...),
                  "cohort: a value is kept by its operation, in memory that is aligned to 64 bytes: pass elements of a "
                  "type that needs more in a buffer");
  }
  void conclude() noexcept {
    blame_user_function();
    call_.finish();
    if (continuation_.resume != nullptr) engine().resume_later(continuation_.resume, continuation_.argument);
  }
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  // An exception that is not the communicator's own failure came out of the caller's functor: nobody else can
  // complete this operation any more.
  void blame_user_function() noexcept;

  call call_;
  resumption continuation_{};
  std::exception_ptr failure_{};
};

template <class T>
class operation_promise final : public operation_promise_base {
 public:
  template <class... Rest>
  explicit operation_promise(ticket& t, Rest&...) : operation_promise_base(t) {
    check_alignment<T, Rest...>();
  }
  operation<T> get_return_object() noexcept;
  template <class U = T>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow();
    return std::move(*value_);
  }

 private:
  std::optional<T> value_{};
};

template <>
class operation_promise<void> final : public operation_promise_base {
 public:
  template <class... Rest>
  explicit operation_promise(ticket& t, Rest&...) : operation_promise_base(t) {
    check_alignment<Rest...>();
  }
  operation<void> get_return_object() noexcept;
  void return_void() const noexcept {}
  void take() const { rethrow(); }
};

}  // namespace detail

/// An operation in flight.
///
/// Completes: `co_await` resumes on the executor of the awaiting coroutine if its promise has one, else on the
///            thread that drives the communicator's engine; `wait()` drives it on the calling thread
/// Errors:    cohort::error at `co_await` and `wait()`; as_result(op) gives a value instead
/// Cancels:   destroying it in flight aborts the communicator: every other rank gets errc::aborted naming this one
/// Lifetime:  buffers are borrowed until it has completed
/// Cost:      one recycled coroutine frame
template <class T>
class [[nodiscard("an operation that is dropped in flight aborts its communicator: co_await it")]] operation {
 public:
  using promise_type = detail::operation_promise<T>;
  using value_type = T;

  operation(operation && other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)),
        taken_(other.taken_),
        refusal_(std::exchange(other.refusal_, nullptr)),
        value_(std::move(other.value_)),
        context_(other.context_) {
    other.value_.reset();
  }
  operation& operator=(operation&& other) noexcept {
    if (this != &other) {
      release();
      handle_ = std::exchange(other.handle_, nullptr);
      value_ = std::move(other.value_);
      other.value_.reset();
      refusal_ = std::exchange(other.refusal_, nullptr);
      context_ = other.context_;
      taken_ = other.taken_;
    }
    return *this;
  }
  ~operation() { release(); }

  /// An operation that needed no message.
  [[nodiscard]] static operation completed(detail::stored_t<T> value) {
    operation op;
    op.value_.emplace(std::move(value));
    return op;
  }
  /// A call that was refused before anything was sent.
  [[nodiscard]] static operation refused(std::exception_ptr why) {
    operation op;
    op.refusal_ = std::move(why);
    return op;
  }

  /// Whether awaiting it would not wait.
  [[nodiscard]] bool ready() const noexcept { return !handle_ || handle_.done(); }

  /// Blocks this thread, which drives the communicator meanwhile.
  T wait() {
    if (!ready()) handle_.promise().engine().drive_until([this] { return handle_.done(); });
    return take();
  }

  class awaiter {
   public:
    explicit awaiter(operation& op) noexcept : op_(&op) {}
    awaiter(const awaiter&) = delete;
    awaiter& operator=(const awaiter&) = delete;
    ~awaiter() {
      if (suspended_) op_->detach();
    }
    bool await_ready() const noexcept { return op_->ready(); }
    template <class Promise>
    void await_suspend(std::coroutine_handle<Promise> h) {
      auto& promise = op_->handle_.promise();
      promise.continue_with(resume_.bind(h));
      suspended_ = true;
      detail::wait_scope::note(promise.record().home().shared_engine());
    }
    T await_resume() {
      suspended_ = false;
      return op_->take();
    }

   private:
    operation* op_;
    detail::resume_slot resume_{};
    bool suspended_ = false;
  };
  awaiter operator co_await() noexcept { return awaiter{*this}; }

  /// Starts waiting as an Asio asynchronous operation; needs <cohort/asio.hpp>.
  template <class Token>
    requires(detail::completion_bridge<std::remove_cvref_t<Token>, T>::enabled)
  decltype(auto) operator()(Token&& token) {
    return detail::completion_bridge<std::remove_cvref_t<Token>, T>::initiate(std::move(*this),
                                                                              std::forward<Token>(token));
  }

  /// For bridges: calls `resume(argument)` once, on the engine's thread, when it is complete.
  void on_complete(detail::resumption r) { handle_.promise().continue_with(r); }
  [[nodiscard]] transport::engine* engine() const noexcept { return handle_ ? &handle_.promise().engine() : nullptr; }
  [[nodiscard]] call* record() const noexcept { return handle_ ? &handle_.promise().record() : nullptr; }
  /// The caller's io_context that its communicator is on, or nullptr.
  [[nodiscard]] transport::callers_io context() const noexcept { return context_; }
  void set_context(transport::callers_io callers) noexcept { context_ = callers; }
  /// Whether its outcome has been fetched.
  [[nodiscard]] bool taken() const noexcept { return taken_; }
  /// The outcome; the operation must be ready. Once only.
  T take() {
    taken_ = true;
    if (refusal_) std::rethrow_exception(refusal_);
    if constexpr (std::is_void_v<T>) {
      if (!value_) handle_.promise().take();
    } else {
      return value_ ? std::move(*value_) : handle_.promise().take();
    }
  }

 private:
  friend promise_type;
  operation() = default;
  explicit operation(std::coroutine_handle<promise_type> handle) noexcept : handle_(handle) {}

  void detach() noexcept {
    if (handle_) handle_.promise().drop_continuation();
  }
  void release() noexcept {
    if (!handle_) return;
    // Nobody is taken back here: an awaiter that goes before it was resumed does that itself, and where a coroutine stood
    // that was resumed, there may stand another.
    // Whoever waits for this rank must not wait for ever.
    if (!handle_.done()) handle_.promise().engine().abandon(handle_.promise().record());
    std::exchange(handle_, nullptr).destroy();
  }

  // No two words beside each other: compilers copy such as one, and a read of what has just been written as two waits until
  // all writes before it are done, among them those to memory that another rank looks at.
  std::coroutine_handle<promise_type> handle_{};
  bool taken_ = false;
  std::exception_ptr refusal_{};
  detail::outcome_if_any<T> value_{};
  transport::callers_io context_ = nullptr;
};

namespace detail {

template <class T>
operation<T> operation_promise<T>::get_return_object() noexcept {
  return operation<T>{std::coroutine_handle<operation_promise<T>>::from_promise(*this)};
}
inline operation<void> operation_promise<void>::get_return_object() noexcept {
  return operation<void>{std::coroutine_handle<operation_promise<void>>::from_promise(*this)};
}

}  // namespace detail
}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/operation.hpp>
#endif
