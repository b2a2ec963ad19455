// SPDX-License-Identifier: BSL-1.0
// Several messages that are started together: what each is (`sending`, `receiving`), and what comes of them. Made by
// communicator.batch of communicator/messages.hpp.
#pragma once

#include <cohort/memory.hpp>
#include <cohort/messages/growing.hpp>
#include <cohort/messages/transfer.hpp>
#include <cohort/operation.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {
namespace messages {

/// One message of a batch, before it is started.
struct item {
  end what{};
  std::uint16_t type = 0;
  std::size_t count = 0;
  bool sending = false;
  bool any_source = false;
  bool has_data = false;

  template <class Buffer>
  [[nodiscard]] static item of(Buffer& buffer) {
    item i;
    if constexpr (cohort::detail::is_growing<std::remove_cv_t<Buffer>>) {
      using T = typename Buffer::element_type;
      i.type = element_type_id<T>;
      i.what.element_bytes = sizeof(T);
      i.what.room = cohort::detail::growing_room::of(buffer);
      i.has_data = true;
    } else {
      const auto elements = cohort::detail::view(buffer);
      using T = buffer_element_t<Buffer>;
      i.type = element_type_id<T>;
      i.count = elements.size();
      i.what.bytes = {collective::bytes_of(elements.data()), elements.size_bytes()};
      i.what.element_bytes = sizeof(T);
      i.has_data = elements.data() != nullptr || elements.empty();
    }
    return i;
  }
  void comes_from(from source) noexcept { what.peer = source.rank; }
  void comes_from(from_any_t) noexcept { any_source = true; }
  void has(tag label) noexcept { what.tag = label.value; }
  void has(any_tag_t) noexcept { what.any_tag = true; }
};

}  // namespace messages

/// A send for a batch.
///
/// Lifetime: buffer is borrowed until the batch has completed
template <class Buffer>
[[nodiscard]] messages::item sending(Buffer&& buffer, to destination, tag label = tag{0}) {
  detail::check_buffer<Buffer>();
  messages::item i = messages::item::of(buffer);
  i.sending = true;
  i.what.peer = destination.rank;
  i.has(label);
  return i;
}

/// A receive for a batch: into a buffer, or into a container that grows.
///
/// Lifetime: buffer is borrowed until the batch has completed
template <class Buffer, message_source Source, message_label Label>
[[nodiscard]] messages::item receiving(Buffer&& buffer, Source source, Label label) {
  if constexpr (!detail::is_growing<std::remove_cvref_t<Buffer>>) detail::check_output<Buffer>();
  messages::item i = messages::item::of(buffer);
  i.comes_from(source);
  i.has(label);
  return i;
}
template <class Buffer, message_source Source>
[[nodiscard]] messages::item receiving(Buffer&& buffer, Source source) {
  return receiving(std::forward<Buffer>(buffer), source, tag{0});
}

/// Messages in flight that were started together: an operation for each, in the order of the list, and one for all.
///
/// Lifetime: destroying it with a message in flight aborts the communicator, as with any operation
class [[nodiscard("messages that are dropped in flight abort their communicator: co_await its all()")]] message_batch {
 public:
  explicit message_batch(std::vector<operation<received>> each) noexcept : each_(std::move(each)) {}

  [[nodiscard]] std::size_t size() const noexcept { return each_.size(); }
  /// The operation of one message; awaited there, it is not awaited again by `all`.
  [[nodiscard]] operation<received>& operator[](std::size_t i) noexcept { return each_[i]; }

  /// Waits for every message that has not been awaited alone.
  ///
  /// Result:   one `received` for each message; of a send: source -1, its tag and what it sent. Of one that was awaited
  ///           before: nothing but zeros
  /// Errors:   the first, when all have ended
  /// Lifetime: the batch must stay where it is until then
  template <class Results = std::vector<received>>  // g++ compiles coroutines that are no templates wherever included
  [[nodiscard]] task<Results> all() {
    Results results(each_.size());
    std::exception_ptr failure;
    for (std::size_t i = 0; i < each_.size(); ++i) {
      if (each_[i].taken()) continue;
      try {
        results[i] = co_await each_[i];
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    co_return results;
  }
  /// Blocks this thread until all have ended, and drives the communicator meanwhile.
  std::vector<received> wait() {
    std::vector<received> results(each_.size());
    std::exception_ptr failure;
    for (std::size_t i = 0; i < each_.size(); ++i) {
      if (each_[i].taken()) continue;
      try {
        results[i] = each_[i].wait();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return results;
  }

 private:
  std::vector<operation<received>> each_;
};

}  // namespace cohort
