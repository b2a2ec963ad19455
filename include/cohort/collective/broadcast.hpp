// SPDX-License-Identifier: BSL-1.0
// The broadcast: one rank's vector to everybody. Called by communicator/rooted.hpp; moves bytes by a schedule.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/body.hpp>
#include <cohort/collective/window.hpp>

namespace cohort::collective {

template <class Channel>
task<> broadcast_by(const Channel& ch, algorithm how, int root, std::byte* data, std::size_t count,
                    std::size_t element_bytes);

template <transport::message_transport Transport>
operation<> broadcast(cohort::detail::ticket t, std::byte* data, std::size_t count, std::size_t element_bytes);

template <transport::message_transport Transport, class T>
operation<T> broadcast_value_in_frame([[maybe_unused]] cohort::detail::ticket t, T value) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  co_await broadcast_by(ch, c.signature().algorithm, c.signature().root, bytes_of(&value), 1, sizeof(T));
  co_return value;
}

template <transport::message_transport Transport, class T>
operation<T> broadcast_value(cohort::detail::ticket t, T value) {
  if constexpr (transport::sharing_transport<Transport>) {
    T result = value;
    if (broadcast_at_once(t, bytes_of(&result), sizeof(T))) {
      return operation<T>::completed(std::move(result));
    }
  }
  return broadcast_value_in_frame<Transport, T>(std::move(t), value);
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/broadcast.hpp>
#endif
