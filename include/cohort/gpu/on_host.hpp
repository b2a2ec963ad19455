// SPDX-License-Identifier: BSL-1.0
// on_host(op): waits on the host for what a call has put on a stream. The device writes a flag, the poller reads it, and
// the coroutine wakes where it belongs.
#pragma once

#include <cohort/detail/resumption.hpp>
#include <cohort/detail/wait_scope.hpp>
#include <cohort/gpu/stream_ordered.hpp>
#include <cohort/types.hpp>

#include <coroutine>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace cohort {

/// Waits on the host for a place of a stream.
///
/// Completes: `co_await` resumes on the executor of the awaiting coroutine if it has one; else on the thread that blocks
///            in sync_wait or run below it; else on the poller's thread. `wait()` blocks this thread
/// Needs:     to block, by wait() or in sync_wait, another thread than the poller's: a coroutine that was resumed there goes on
///            by co_await alone
/// Errors:    timed_out, peer_lost, aborted, io_error naming rank, operation and device, when awaited
/// Cancels:   dropping it, or the coroutine that awaits it, stops the waiting, and nothing on the device; its timeout{} is
///            off then
class [[nodiscard("it waits when it is awaited")]] host_wait {
 public:
  using value_type = void;

  explicit host_wait(std::shared_ptr<detail::milestone> m) noexcept : place_(std::move(m)) {}
  host_wait(host_wait &&) noexcept = default;
  host_wait& operator=(host_wait&&) noexcept = default;
  ~host_wait() = default;

  [[nodiscard]] bool ready() const { return place_->done(); }
  void wait() const {
    place_->block_attentively();
    place_->rethrow();
  }

  class awaiter {
   public:
    explicit awaiter(const detail::awaited_milestone& m) noexcept : place_(m) {}
    awaiter(const awaiter&) = delete;
    awaiter& operator=(const awaiter&) = delete;
    ~awaiter() {
      if (suspended_) place_->forget_waker();
      arrived();
    }
    [[nodiscard]] bool await_ready() const { return place_->done(); }
    // Not inlined: the compiler must not keep anything of it in a frame that another thread may destroy meanwhile.
    template <class Promise>
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<Promise> h) {
      place_->sleeps(h);
      suspended_ = true;
      // From here on another thread may resume the coroutine, and this awaiter may be gone.
      const std::shared_ptr<detail::milestone> place = place_.get();
      if (place->on_complete(waker(h))) return true;
      place->sleeps(nullptr);
      return false;
    }
    void await_resume() {
      suspended_ = false;
      arrived();
      place_->rethrow();
    }

   private:
    template <class Promise>
    [[nodiscard]] std::function<void()> waker(std::coroutine_handle<Promise> h) {
      std::shared_ptr<detail::milestone> place = place_.get();
      if constexpr (detail::has_executor<Promise>) {
        return [place, executor = h.promise().get_executor()] { executor.execute([place] { place->resume(); }); };
      } else {
        static_cast<void>(h);
        if (std::shared_ptr<detail::inbox> below = detail::wait_scope::mail_for_this_thread()) {
          place_->require_other_thread();
          mail_ = std::move(below);
          mail_->watch(place);
        } else if (transport::engine* const e = transport::engine::resuming()) {
          mail_ = e->inbox();
        }
        if (!mail_) return [place] { place->resume(); };
        mail_->expect(1);
        return [place, mail = mail_] { mail->post(place); };
      }
    }
    void arrived() noexcept {
      if (!mail_) return;
      mail_->unwatch(*place_.get());
      std::exchange(mail_, nullptr)->expect(-1);
    }

    detail::awaited_milestone place_;
    std::shared_ptr<detail::inbox> mail_{};
    bool suspended_ = false;
  };
  awaiter operator co_await() const noexcept { return awaiter{place_}; }

  /// Starts waiting as an Asio asynchronous operation; needs <cohort/gpu/asio.hpp>.
  template <class Token>
    requires(detail::device_completion_bridge<std::remove_cvref_t<Token>>::enabled)
  decltype(auto) operator()(Token&& token) {
    return detail::device_completion_bridge<std::remove_cvref_t<Token>>::initiate(std::move(*this),
                                                                                  std::forward<Token>(token));
  }

  /// For bridges: calls `wake` once when it is over, on the poller's thread. False: it is over already.
  [[nodiscard]] bool on_complete(std::function<void()> wake) const { return place_->on_complete(std::move(wake)); }
  /// Ends the waiting with errc::cancelled, unless it is over; nothing on the device.
  void cancel() const {
    place_->finish(place_->explain(errc::cancelled, "the wait for it was cancelled; the device goes on with it"));
  }
  /// How it has ended. Once it is over.
  void take() const { place_->rethrow(); }

 private:
  detail::awaited_milestone place_;
};

namespace detail {

[[nodiscard]] inline std::shared_ptr<milestone> milestone_of(const stream_ordered& op,
                                                             const std::shared_ptr<device_party>& party,
                                                             std::chrono::nanoseconds allowed) {
  auto m = std::make_shared<milestone>();
  m->stream = op.stream();
  m->behind = party;
  m->where = party->where(op.operation());
  const auto longest = milestone::clock::time_point::max() - m->started;
  m->until = allowed < longest ? m->started + allowed : milestone::clock::time_point::max();
  return m;
}

/// "on_host after all_reduce on rank 1 of 4, device 1: ..."
[[nodiscard]] inline error refused_after(const stream_ordered& op, const std::string& what, const std::string& text) {
  const where_on_device where = op.party()->where(op.operation());
  error_details d;
  d.rank = where.rank;
  d.operation = where.operation;
  return {errc::invalid_argument, what + " after " + where.words() + ": " + text, std::move(d)};
}

/// Refuses what a graph cannot have.
inline void refuse_while_capturing(const stream_ordered& op, const char* what) {
  if (!is_capturing(op.stream())) return;
  throw refused_after(
      op, what,
      "the stream is being captured into a graph, and a graph has no host that waits: await the launch of "
      "the graph instead, by on_host(world.enqueued(stream)) after it");
}
inline void refuse_timeout_of_nothing(const stream_ordered& op, std::chrono::nanoseconds allowed) {
  if (allowed > std::chrono::nanoseconds::zero()) return;
  throw refused_after(op, "on_host",
                      "timeout of " + std::to_string(allowed.count()) +
                          " ns: expected more than zero; leave it out for that of the communicator");
}

}  // namespace detail

/// Waits on the host until the device has done `op` and everything before it on its stream.
///
/// Completes: as host_wait; the wait starts with this call
/// Needs:     a stream that is not being captured; outside of world.group()
/// Errors:    invalid_argument at the call while the stream is captured or a group is open, and for a timeout
///            that is not more than zero; the others when awaited
/// Cancels:   timeout{}, else the communicator's default, aborts the communicator: its work leaves the stream, and every
///            later call reports the first cause
/// Cost:      one allocation and one flag: about a microsecond on the host
template <class... Options>
[[nodiscard]] host_wait on_host(const stream_ordered& op, Options&&... options) {
  static_assert((std::same_as<std::remove_cvref_t<Options>, timeout> && ...),
                "cohort: on_host takes the operation and, if wanted, timeout{5s}");
  const std::shared_ptr<detail::device_party> party = op.party();
  std::chrono::nanoseconds allowed = party->default_timeout();
  ((detail::refuse_timeout_of_nothing(op, options.after), allowed = options.after), ...);
  party->require_enqueued(op.operation(), "on_host()");
  detail::refuse_while_capturing(op, "on_host");
  const device_scope here(device{party->where(op.operation()).device});
  auto m = detail::milestone_of(op, party, allowed);
  party->watch().follow(m);
  return host_wait(std::move(m));
}

}  // namespace cohort
