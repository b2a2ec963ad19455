// SPDX-License-Identifier: BSL-1.0
// stream_ordered: what a call on a device gives. The work is enqueued, and whatever is enqueued on the same stream after
// it sees its result; so awaiting it never waits. on_host.hpp is for what the host must see.
#pragma once

#include <cohort/gpu/device_party.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/party_ticket.hpp>
#include <cohort/gpu/stream.hpp>

#include <coroutine>
#include <memory>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

/// Completion-token support is switched on by gpu/asio.hpp, which specialises this.
template <class Token>
struct device_completion_bridge {
  static constexpr bool enabled = false;
};

}  // namespace detail

/// An operation that stands on a stream.
///
/// Result:    none on the host; what is enqueued on the stream from now on sees it
/// Completes: `co_await` at once, without suspending: the order of the stream is the dependency. `co_await on_host(op)`
///            suspends until the device is done
/// Errors:    those of the call are thrown by the call; those of the device come at on_host() or from a later call
/// Cancels:   dropping it changes nothing: the work is enqueued. `timeout{}` with the call, or with on_host(), aborts the
///            communicator when the device is not done in time
/// Lifetime:  the buffers are borrowed until the device has done it, not until `co_await`. It does not keep its
///            communicator, whose end waits for it: on_host() and join() after that are an error
/// Cost:      no allocation
class [[nodiscard("co_await it: on the CPU the same call must be awaited")]] stream_ordered {
 public:
  using value_type = void;

  stream_ordered(const detail::party_ticket& party, cudaStream_t s, const char* operation) noexcept
      : ticket_(party), stream_(s), operation_(operation) {}

  [[nodiscard]] static constexpr bool await_ready() noexcept { return true; }
  static constexpr void await_suspend(std::coroutine_handle<>) noexcept {}
  static constexpr void await_resume() noexcept {}

  /// As an Asio asynchronous operation, which completes by way of the executor; needs <cohort/gpu/asio.hpp>.
  template <class Token>
    requires(detail::device_completion_bridge<std::remove_cvref_t<Token>>::enabled)
  decltype(auto) operator()(Token&& token) const {
    return detail::device_completion_bridge<std::remove_cvref_t<Token>>::initiate(*this, std::forward<Token>(token));
  }

  /// The stream that it stands on.
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_; }

  /// What is enqueued on `later` from now on waits for this operation and all before it on its stream.
  ///
  /// Errors: what CUDA says
  void join(cudaStream_t later) const {
    if (later == stream_) return;
    const std::shared_ptr<detail::device_party> mine = party();
    const device_scope here(device{mine->where(operation_).device});
    detail::event e = mine->events().take();
    e.record(stream_);
    e.hold_back(later);
    // Waiting captured the record that has been made: the event may be recorded anew at once.
    mine->events().give(std::move(e));
  }
  void join(const on& later) const { join(later.stream); }

  /// For on_host().
  ///
  /// Errors: aborted where the communicator has gone
  [[nodiscard]] std::shared_ptr<detail::device_party> party() const { return ticket_.party(); }
  [[nodiscard]] const char* operation() const noexcept { return operation_; }

 private:
  detail::party_ticket ticket_;
  cudaStream_t stream_;
  const char* operation_;
};

namespace detail {

/// What a call returns that a static_assert has refused already.
[[nodiscard]] inline stream_ordered refused_operation() noexcept { return {party_ticket(), nullptr, "refused"}; }

}  // namespace detail
}  // namespace cohort
