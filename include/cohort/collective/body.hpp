// SPDX-License-Identifier: BSL-1.0
// What the bodies of all collectives share: finding their own call, and seeing arrays as bytes.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/collective/put_off.hpp>
#include <cohort/collective/short_vector.hpp>
#include <cohort/detail/fold.hpp>
#include <cohort/operation.hpp>
#include <cohort/reduction.hpp>
#include <cohort/transport/channel.hpp>
#include <cohort/transport/native.hpp>

#include <coroutine>
#include <cstddef>
#include <cstring>
#include <exception>
#include <utility>

namespace cohort::collective {

/// `call& c = co_await current_call{}` in the body of an operation: the record of that operation.
///
/// Errors: what the operation's functor threw before it had a frame
class current_call {
 public:
  [[nodiscard]] bool await_ready() const noexcept { return false; }
  template <class Promise>
  bool await_suspend(std::coroutine_handle<Promise> h) noexcept {
    call_ = &h.promise().record();
    return false;
  }
  [[nodiscard]] call& await_resume() const {
    if (call_->begun.failure) std::rethrow_exception(std::exchange(call_->begun.failure, nullptr));
    return *call_;
  }

 private:
  call* call_ = nullptr;
};

/// What the layouts of an operation point to when its buffers are lists or counts.
struct block_lists {
  detail::short_vector<transport::piece> runs{};
  detail::short_vector<transport::piece> other_runs{};
  detail::short_vector<std::size_t> offsets{};
  detail::short_vector<std::size_t> other_offsets{};
  block_lists() = default;
};
/// The same once they are: most operations have none. It lives in the operation's frame.
class block_table {
 public:
  block_table() = default;
  [[nodiscard]] block_lists& lists() {
    if (lists_.empty()) lists_.emplace_back();
    return lists_.front();
  }

 private:
  detail::short_vector<block_lists> lists_{};
};

/// A schedule never writes to a buffer that the caller gave as const.
template <class T>
[[nodiscard]] std::byte* bytes_of(const T* data) noexcept {
  return reinterpret_cast<std::byte*>(const_cast<T*>(data));
}

/// This rank's contribution, ready to be combined in `out`.
inline void contribute(const cohort::detail::reducer& op, const std::byte* in, std::byte* out, std::size_t count,
                       int ranks) {
  if (op.prepare != nullptr) {
    op.prepare(op.op, out, in, count, ranks);
  } else if (in != out && count > 0) {
    std::memcpy(out, in, count * op.element_bytes);
  }
}

/// The same, where a schedule may read it from `in` as well.
///
/// Result: null, or where it has been left: then nobody may write to that while the schedule goes on
[[nodiscard]] inline const std::byte* contribute_late(const cohort::detail::reducer& op, const std::byte* in,
                                                      std::byte* out, std::size_t count, int ranks) {
  const std::size_t bytes = count * op.element_bytes;
  const bool apart = in + bytes <= out || out + bytes <= in;
  if (op.prepare == nullptr && apart && bytes >= detail::shortest_put_off) return in;
  contribute(op, in, out, count, ranks);
  return nullptr;
}

inline void conclude(const cohort::detail::reducer& op, std::byte* out, std::size_t count, int ranks) {
  if (op.finish != nullptr) op.finish(op.op, out, out, count, ranks);
}

/// A vector in one buffer.
struct whole_vector {
  std::byte* data;
  std::size_t count;
  std::size_t element_bytes;
  const std::byte* elsewhere = nullptr;  ///< this rank's operand, if it is not there yet
  bool lasting = true;                   ///< else `data` is of no use in the end
  [[nodiscard]] layout cut(int blocks) const noexcept { return layout::even(data, count, element_bytes, blocks); }
};

}  // namespace cohort::collective
