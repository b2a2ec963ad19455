// SPDX-License-Identifier: BSL-1.0
// The scans: rank r gets what ranks 0 .. r (scan) or 0 .. r-1 (exclusive_scan) hold, combined in that order.
// Called by communicator/everyone.hpp.
#pragma once

#include <cohort/collective/at_once.hpp>
#include <cohort/collective/body.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/collective/window.hpp>

#include <cstring>

namespace cohort::collective {

template <class Channel>
task<> scan_by(const Channel& ch, algorithm how, whole_vector& all, const cohort::detail::reducer& op);

/// False, on every rank: nothing has been combined.
template <class Channel>
task<bool> scan_shared(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                       const cohort::detail::reducer& op);

template <transport::message_transport Transport, class T, class Op>
operation<> scan_in_frame([[maybe_unused]] cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  algorithm how = c.signature().algorithm;
  if constexpr (transport::sharing_transport<Transport>) {
    // Where the inputs can be read from where they are, they need not be copied to the output first.
    if (how == algorithm::shared_memory && combine.prepare == nullptr) {
      if (co_await scan_shared(ch, bytes_of(in), bytes_of(out), count, combine)) {
        conclude(combine, bytes_of(out), count, ch.rank() + 1);
        co_return;
      }
      how = without_window(c, count * sizeof(T), false);
    }
  }
  whole_vector all{bytes_of(out), count, sizeof(T)};
  if constexpr (transport::native_scan<Transport, T, Op>) {
    if (c.signature().algorithm == algorithm::native) {
      contribute(combine, bytes_of(in), bytes_of(out), count, ch.rank() + 1);
      co_await transport::native_collectives<Transport>::scan(c, bytes_of(out), bytes_of(out), count, combine);
      conclude(combine, bytes_of(out), count, ch.rank() + 1);
      co_return;
    }
  }
  all.elsewhere = contribute_late(combine, bytes_of(in), bytes_of(out), count, ch.rank() + 1);
  co_await scan_by(ch, how, all, combine);
  conclude(combine, bytes_of(out), count, ch.rank() + 1);
}

template <transport::message_transport Transport, class T, class Op>
operation<> scan(cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op) {
  if constexpr (transport::sharing_transport<Transport>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (scan_at_once(t, bytes_of(in), bytes_of(out), count, combine)) return operation<>::completed({});
  }
  native_start<Transport> now(t);
  if constexpr (transport::native_scan<Transport, T, Op>) {
    const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
    if (now.scan(bytes_of(in), bytes_of(out), count, combine)) {
      conclude(combine, bytes_of(out), count, t.home->rank() + 1);
      return operation<>::completed({});
    }
  }
  return scan_in_frame<Transport, T, Op>(std::move(t), in, out, count, std::move(op));
}

template <transport::message_transport Transport, class T, class Op>
operation<T> scan_value([[maybe_unused]] cohort::detail::ticket t, T value, Op op) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  contribute(combine, bytes_of(&value), bytes_of(&value), 1, ch.rank() + 1);
  whole_vector all{bytes_of(&value), 1, sizeof(T)};
  if constexpr (transport::native_scan<Transport, T, Op>) {
    if (c.signature().algorithm == algorithm::native) {
      co_await transport::native_collectives<Transport>::scan(c, bytes_of(&value), bytes_of(&value), 1, combine);
      conclude(combine, bytes_of(&value), 1, ch.rank() + 1);
      co_return value;
    }
  }
  co_await scan_by(ch, c.signature().algorithm, all, combine);
  conclude(combine, bytes_of(&value), 1, ch.rank() + 1);
  co_return value;
}

template <class Channel>
task<> exclusive_scan_by_messages(const Channel& ch, algorithm how, std::byte* in, std::byte* out, std::size_t count,
                                  const cohort::detail::reducer& op);

template <class Channel>
task<> exclusive_scan_shared(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                             const cohort::detail::reducer& op);

template <class T, class Op, class Channel>
task<> exclusive_scan_by(const Channel& ch, std::byte* in, std::byte* out, std::size_t count,
                         const cohort::detail::reducer& op) {
  if constexpr (transport::native_scan<typename Channel::transport_type, T, Op>) {
    using library = transport::native_collectives<typename Channel::transport_type>;
    if (ch.current().signature().algorithm == algorithm::native) {
      return library::exclusive_scan(ch.current(), in, out, count, op);
    }
  }
  if constexpr (transport::sharing_transport<typename Channel::transport_type>) {
    if (ch.current().signature().algorithm == algorithm::shared_memory) {
      return exclusive_scan_shared(ch, in, out, count, op);
    }
  }
  return exclusive_scan_by_messages(ch, ch.current().signature().algorithm, in, out, count, op);
}

/// `initial` stands before rank 0's elements.
template <transport::message_transport Transport, class T, class Op>
operation<> exclusive_scan([[maybe_unused]] cohort::detail::ticket t, const T* in, T* out, std::size_t count, Op op,
                           T initial, bool initial_changes_nothing) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  const bool shared = in == out || combine.prepare != nullptr;
  const cohort::detail::borrowed_buffer own(c.engine().scratch(), shared ? count * sizeof(T) : 0);
  const T* mine = in;
  if (shared && count > 0) {
    T* const copy = reinterpret_cast<T*>(own.data());
    contribute(combine, bytes_of(in), bytes_of(copy), count, ch.rank());
    mine = copy;
  }
  co_await exclusive_scan_by<T, Op>(ch, bytes_of(mine), bytes_of(out), count, combine);
  if (ch.rank() == 0) {
    for (std::size_t i = 0; i < count; ++i) std::memcpy(static_cast<void*>(out + i), &initial, sizeof(T));
    co_return;
  }
  if (!initial_changes_nothing) {
    for (std::size_t i = 0; i < count; ++i) {
      combine.fold(combine.op, bytes_of(out + i), bytes_of(&initial), 1, side::left);
    }
  }
  conclude(combine, bytes_of(out), count, ch.rank());
}

template <transport::message_transport Transport, class T, class Op>
operation<T> exclusive_scan_value([[maybe_unused]] cohort::detail::ticket t, T value, Op op, T initial,
                                  bool initial_changes_nothing) {
  call& c = co_await current_call{};
  const transport::channel<Transport> ch(c);
  const cohort::detail::reducer combine = cohort::detail::make_reducer<T>(op);
  T before = initial;
  contribute(combine, bytes_of(&value), bytes_of(&value), 1, ch.rank());
  co_await exclusive_scan_by<T, Op>(ch, bytes_of(&value), bytes_of(&before), 1, combine);
  if (ch.rank() == 0) co_return initial;
  if (!initial_changes_nothing) combine.fold(combine.op, bytes_of(&before), bytes_of(&initial), 1, side::left);
  conclude(combine, bytes_of(&before), 1, ch.rank());
  co_return before;
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/scan.hpp>
#endif
