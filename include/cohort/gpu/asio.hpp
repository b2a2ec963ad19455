// SPDX-License-Identifier: BSL-1.0
// The Asio bridge of the GPU side: with this header `co_await op` and `co_await on_host(op)` work inside asio::awaitable
// too, and both take any completion token. Opt-in, and not for a .cu: nvcc cannot compile Asio's coroutines, so nothing
// else of gpu/ and nccl/ includes Asio.
#pragma once

#include <cohort/detail/asio_hand_over.hpp>
#include <cohort/gpu/on_host.hpp>

#include <functional>
#include <utility>

namespace cohort::detail {

/// A call stands on its stream as soon as it is made: there is nothing to wait for, on any executor.
struct standing {
  using value_type = void;
  stream_ordered op;
  [[nodiscard]] static bool on_complete(const std::function<void()>&) noexcept { return false; }
  static void cancel() noexcept {}
  static void take() noexcept {}
};

template <class Token>
  requires completion_token_of<Token, void>
struct device_completion_bridge<Token> {
  static constexpr bool enabled = true;

  template <class Given>
  static decltype(auto) initiate(const stream_ordered& op, Given&& token) {
    return hand_over(standing{op}, std::forward<Given>(token));
  }
  template <class Given>
  static decltype(auto) initiate(host_wait&& op, Given&& token) {
    return hand_over(std::move(op), std::forward<Given>(token));
  }
};

}  // namespace cohort::detail
