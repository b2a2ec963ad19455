// SPDX-License-Identifier: BSL-1.0
// store_operation<T>: a call of an async_store in flight. It starts when it is called and is awaited later; completed
// by whatever serves the store, on a thread of its own.
#pragma once

#include <cohort/detail/inbox.hpp>
#include <cohort/detail/pending.hpp>
#include <cohort/detail/resumption.hpp>
#include <cohort/detail/wait_scope.hpp>
#include <cohort/store.hpp>
#include <cohort/store/wire.hpp>
#include <cohort/transport/engine.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {
namespace detail {

/// What a call gave; which of the fields depends on the call.
struct store_outcome {
  std::optional<std::string> text{};
  std::int64_t number = 0;
  std::vector<std::string> list{};
};

class store_driver;

/// A call between the coroutine that waits for it and the thread that carries it out.
class store_pending final : public pending, public std::enable_shared_from_this<store_pending> {
 public:
  // --- what is asked; not changed after the call was handed to its driver
  store_call call = store_call::get;
  std::string key{};
  std::string value{};
  std::string expected{};
  std::int64_t amount = 0;
  std::vector<std::string> keys{};
  std::vector<key_value> pairs{};
  enum class waiting : unsigned char { throws, lists, checks };
  waiting form = waiting::throws;  ///< of `wait`: what is said of missing keys; `checks` does not wait
  std::size_t prefix = 0;          ///< bytes in front of the caller's keys
  deadline started = std::chrono::steady_clock::now();
  deadline until = deadline::max();
  std::weak_ptr<store_driver> driver{};
  std::uint32_t id = 0;  ///< the driver's
  bool lent = false;     ///< its item is this caller's only when the driver has been told

  // --- the thread that carries it out
  /// False: nobody wants it any more, and `outcome` is as it was.
  [[nodiscard]] bool succeed(store_outcome& outcome) { return finish(&outcome, nullptr); }
  void fail(std::exception_ptr why) { (void)finish(nullptr, std::move(why)); }
  /// Before `succeed` with an item that nothing but the call has: its driver stays until the item is taken or given up.
  void hold(std::shared_ptr<store_driver> server) {
    const std::lock_guard lock(mutex_);
    held_ = std::move(server);
  }

  // --- who waits for it
  /// The outcome, once. The call must be done.
  [[nodiscard]] store_outcome take();
  /// Nobody will ask any more.
  void abandon() noexcept;
  /// Ends it with errc::cancelled, unless it is done.
  void cancel();

 private:
  bool finish(store_outcome* outcome, std::exception_ptr why) {
    return end([&] {
      if (outcome != nullptr) outcome_ = std::move(*outcome);
      failure_ = std::move(why);
    });
  }

  bool settled_ = false;  ///< taken, abandoned or cancelled
  store_outcome outcome_{};
  std::exception_ptr failure_{};
  std::shared_ptr<store_driver> held_{};
};

/// Carries out calls, on a thread of its own. Every function may be called by any thread.
class store_driver {
 public:
  store_driver() = default;
  store_driver(const store_driver&) = delete;
  store_driver& operator=(const store_driver&) = delete;
  virtual ~store_driver() = default;
  virtual void submit(std::shared_ptr<store_pending> call) = 0;
  /// Its caller has the item of this queue_pop, or will never have it. False: the item has gone back already.
  [[nodiscard]] virtual bool taken(std::shared_ptr<store_pending> call) = 0;
  virtual void abandoned(std::shared_ptr<store_pending> call, std::optional<std::string> item) = 0;
  [[nodiscard]] virtual std::string describe() const = 0;
  /// Ends every call that is not done.
  virtual void close() noexcept = 0;
};

[[nodiscard]] constexpr bool takes_item(store_call call) noexcept {
  return call == store_call::queue_pop || call == store_call::try_queue_pop;
}

inline store_outcome store_pending::take() {
  std::exception_ptr why;
  store_outcome got;
  std::shared_ptr<store_driver> released;
  {
    const std::lock_guard lock(mutex_);
    why = std::move(failure_);
    got = std::move(outcome_);
    released = std::move(held_);
    settled_ = true;
  }
  if (why) std::rethrow_exception(why);
  for (std::string& name : got.list) {
    if (call == store_call::wait) name.erase(0, prefix);
  }
  if (takes_item(call) && got.text && lent) {
    const auto served_by = driver.lock();
    if (!served_by || !served_by->taken(shared_from_this())) {
      throw store_error(name_of(call), "the connection ended before the item of " + detail::quoted(key) +
                                           " was taken; it has gone back to its queue");
    }
  }
  return got;
}

inline void store_pending::abandon() noexcept {
  std::optional<std::string> item;
  std::shared_ptr<store_driver> released;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(settled_, true)) return;
    item = std::move(outcome_.text);
    released = std::move(held_);
    if (std::exchange(done_, true) && !(takes_item(call) && item)) return;
  }
  try {
    if (const auto served_by = driver.lock()) served_by->abandoned(shared_from_this(), std::move(item));
  } catch (...) {  // no memory to say so: the call runs to its deadline, and its item stays lent until the end
  }
}

inline void store_pending::cancel() {
  auto why = std::make_exception_ptr(
      error(errc::cancelled, std::string(name_of(call)) + ": cancelled before the store answered"));
  // An answer that comes at the same time is its caller's or nobody's: only in the second case has it been given up.
  if (!finish(nullptr, std::move(why))) return;
  if (const auto served_by = driver.lock()) served_by->abandoned(shared_from_this(), std::nullopt);
}

template <class T>
[[nodiscard]] T outcome_as([[maybe_unused]] store_outcome&& got) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::move(got.text).value_or(std::string{});
  } else if constexpr (std::is_same_v<T, std::optional<std::string>>) {
    return std::move(got.text);
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    return std::move(got.list);
  } else if constexpr (std::is_same_v<T, bool>) {
    return got.number != 0;
  } else if constexpr (!std::is_void_v<T>) {
    return static_cast<T>(got.number);
  }
}

/// Completion-token support is switched on by asio.hpp, which specialises this.
template <class Token, class T>
struct store_completion_bridge {
  static constexpr bool enabled = false;
};

}  // namespace detail

/// A call of an async_store in flight.
///
/// Completes: `co_await` resumes on the executor of the awaiting coroutine if its promise has one; else on the thread
/// of
///            the sync_wait or the engine that runs the coroutine; else, where nothing drives it, on the store's own
///            thread with no lock held. `wait()` blocks the calling thread and drives nothing
/// Errors:    cohort::error at `co_await` and `wait()`; as_result(op) gives a value instead
/// Cancels:   destroying it gives the call up: one that still waits ends without effect, any other may or may not have
///            taken effect. An item that a dropped queue_pop had been given goes back to its queue
/// Lifetime:  owns copies of what it was called with; async_store may go first, which ends the call with an error
/// Cost:      one allocation, and one more for a coroutine that sleeps on it
template <class T>
class [[nodiscard("a store call that is dropped is given up: co_await it")]] store_operation {
 public:
  using value_type = T;

  explicit store_operation(std::shared_ptr<detail::store_pending> call) noexcept : call_(std::move(call)) {}
  store_operation(store_operation && other) noexcept : call_(std::move(other.call_)) {}
  store_operation& operator=(store_operation&& other) noexcept {
    if (this != &other) {
      if (call_) call_->abandon();
      call_ = std::move(other.call_);
    }
    return *this;
  }
  ~store_operation() {
    if (call_) call_->abandon();
  }

  /// Whether awaiting it would not wait.
  [[nodiscard]] bool ready() const { return call_->done(); }

  /// Blocks this thread.
  T wait() {
    call_->block();
    return take();
  }

  class awaiter {
   public:
    explicit awaiter(store_operation& op) noexcept : op_(&op), call_(op.call_) {}
    awaiter(const awaiter&) = delete;
    awaiter& operator=(const awaiter&) = delete;
    ~awaiter() {
      if (!suspended_) return;
      call_->forget_waker();
      arrived();
    }
    bool await_ready() const { return call_->done(); }
    // Not inlined: the compiler must not keep anything of it in a frame that another thread may destroy meanwhile.
    template <class Promise>
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<Promise> h) {
      call_->sleeps(h);
      suspended_ = true;
      // From here on another thread may resume the coroutine, and this awaiter may be gone.
      const std::shared_ptr<detail::store_pending> call = call_;
      if (call->on_complete(waker(h))) return true;
      call->sleeps(nullptr);
      return false;
    }
    T await_resume() {
      suspended_ = false;
      arrived();
      return op_->take();
    }

   private:
    template <class Promise>
    std::function<void()> waker(std::coroutine_handle<Promise> h) {
      std::shared_ptr<detail::store_pending> call = call_;
      if constexpr (detail::has_executor<Promise>) {
        return [call, executor = h.promise().get_executor()] { executor.execute([call] { call->resume(); }); };
      } else {
        if (mail_ = detail::wait_scope::mail_for_this_thread(); !mail_) {
          if (transport::engine* const e = transport::engine::resuming()) mail_ = e->inbox();
        }
        if (!mail_) return [call] { call->resume(); };
        mail_->expect(1);
        return [call, mail = mail_] { mail->post(call); };
      }
    }
    void arrived() noexcept {
      if (mail_) std::exchange(mail_, nullptr)->expect(-1);
    }

    store_operation* op_;
    std::shared_ptr<detail::store_pending> call_;
    std::shared_ptr<detail::inbox> mail_{};
    bool suspended_ = false;
  };
  awaiter operator co_await() noexcept { return awaiter{*this}; }

  /// Starts waiting as an Asio asynchronous operation; needs <cohort/asio.hpp>.
  template <class Token>
    requires(detail::store_completion_bridge<std::remove_cvref_t<Token>, T>::enabled)
  decltype(auto) operator()(Token&& token) {
    return detail::store_completion_bridge<std::remove_cvref_t<Token>, T>::initiate(std::move(*this),
                                                                                    std::forward<Token>(token));
  }

  /// For bridges: calls `wake` once when it is done, on the store's thread. False: it is done already.
  [[nodiscard]] bool on_complete(std::function<void()> wake) { return call_->on_complete(std::move(wake)); }
  /// Ends it with errc::cancelled, unless it is done.
  void cancel() { call_->cancel(); }
  /// The outcome; the operation must be ready. Once only.
  T take() { return detail::outcome_as<T>(call_->take()); }

 private:
  std::shared_ptr<detail::store_pending> call_;
};

}  // namespace cohort
