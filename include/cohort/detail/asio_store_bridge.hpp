// SPDX-License-Identifier: BSL-1.0
// The calls of an async_store as Asio asynchronous operations. Part of asio.hpp.
#pragma once

#include <cohort/detail/asio_hand_over.hpp>
#include <cohort/store/store_operation.hpp>

#include <utility>

namespace cohort::detail {

template <class Token, class T>
  requires completion_token_of<Token, T>
struct store_completion_bridge<Token, T> {
  static constexpr bool enabled = true;

  template <class Given>
  static decltype(auto) initiate(store_operation<T>&& op, Given&& token) {
    return hand_over(std::move(op), std::forward<Given>(token));
  }
};

}  // namespace cohort::detail
