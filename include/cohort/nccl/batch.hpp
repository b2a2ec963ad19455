// SPDX-License-Identifier: BSL-1.0
// Messages of communicator<nccl> that are started together, and how tags match there: NCCL knows none, so both sides hand it
// the messages of a batch in the order of their tags. `sending`, `receiving` and what comes of them; the call itself is in
// messages.hpp.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/stream_ordered.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {
namespace detail {

/// Refuses a source or a label that NCCL cannot have; the same for every call that takes one.
template <class Source>
constexpr bool check_device_source() noexcept {
  static_assert(
      !std::is_same_v<std::remove_cvref_t<Source>, from_any_t>,
      "cohort: NCCL cannot receive from whoever comes first: write from{rank}, or use the communicator of the "
      "host that this one was made of for such messages");
  return true;
}
template <class Label>
constexpr bool check_device_label() noexcept {
  static_assert(!std::is_same_v<std::remove_cvref_t<Label>, any_tag_t>,
                "cohort: NCCL has no tags, so there is none to be told: its messages match in the order of the calls: "
                "leave any_tag out, or use the communicator of the host that this one was made of for such messages");
  return true;
}

}  // namespace detail

/// One message of a batch on devices, before it is started.
struct device_message {
  const void* from = nullptr;  ///< of a send
  void* into = nullptr;        ///< of a receive
  std::size_t bytes = 0;
  int peer = -1;
  int label = 0;
  bool sends = false;
};

/// A send for a batch.
///
/// Lifetime: buffer is borrowed until the stream has done it
template <class Buffer>
  requires device_range<std::remove_reference_t<Buffer>>
[[nodiscard]] device_message sending(Buffer&& buffer, to destination, tag label = tag{0}) {
  detail::check_device_buffer<Buffer>();
  const auto what = detail::view_on_device(buffer);
  return {what.data(), nullptr, what.size_bytes(), destination.rank, label.value, true};
}

/// A receive for a batch.
///
/// Shapes:   as many elements as are sent
/// Lifetime: buffer is borrowed until the stream has done it
template <class Buffer, message_source Source, message_label Label>
  requires device_range<std::remove_reference_t<Buffer>>
[[nodiscard]] device_message receiving(Buffer&& buffer, Source source, Label label) {
  detail::check_device_output<Buffer>();
  if constexpr (detail::check_device_source<Source>() && detail::check_device_label<Label>() &&
                std::is_same_v<Source, from> && std::is_same_v<Label, tag>) {
    const auto what = detail::view_on_device(buffer);
    return {nullptr, what.data(), what.size_bytes(), source.rank, label.value, false};
  } else {
    return {};
  }
}
template <class Buffer, message_source Source>
  requires device_range<std::remove_reference_t<Buffer>>
[[nodiscard]] device_message receiving(Buffer&& buffer, Source source) {
  return receiving(std::forward<Buffer>(buffer), source, tag{0});
}

// Chosen where nothing else fits, the calls of the host included. The first mistake is the one that is named.
template <class Buffer, class Destination>
[[nodiscard]] device_message sending(Buffer&&, Destination, tag = tag{0}) {
  static_assert(std::is_same_v<Destination, to>,
                "cohort: a destination is a type, so that it cannot be taken for a tag: write to{1}");
  if constexpr (std::is_same_v<Destination, to>) detail::check_device_buffer<Buffer>();
  return {};
}
template <class Buffer, class Source, class Label>
[[nodiscard]] device_message receiving(Buffer&&, Source, Label) {
  static_assert(message_source<Source>,
                "cohort: a source is a type, so that it cannot be taken for a tag: write from{0}");
  static_assert(message_label<Label>, "cohort: a tag is a type, so that it cannot be taken for a rank: write tag{7}");
  if constexpr (message_source<Source> && message_label<Label>) detail::check_device_buffer<Buffer>();
  return {};
}
template <class Buffer, class Source>
[[nodiscard]] device_message receiving(Buffer&& buffer, Source source) {
  return receiving(std::forward<Buffer>(buffer), source, tag{0});
}

/// Messages that stand on a stream together.
///
/// Completes: as every call there: `co_await` of it or of its all() at once, on_host() when the device is done
class [[nodiscard]] device_batch : public stream_ordered {
 public:
  device_batch(stream_ordered op, std::size_t size) noexcept : stream_ordered(std::move(op)), size_(size) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const stream_ordered& all() const noexcept { return *this; }
  /// One message: NCCL tells of all of them together.
  [[nodiscard]] const stream_ordered& operator[](std::size_t) const noexcept { return *this; }

 private:
  std::size_t size_;
};

namespace detail {

/// The order in which both sides hand messages to NCCL, which matches the k-th from a rank to another with the k-th receive
/// there: by tag, and where tags are equal as they were given. By insertion: a batch is short, and nothing is allocated.
inline void order_by_tag(std::span<device_message> messages) noexcept {
  for (std::size_t i = 1; i < messages.size(); ++i) {
    const device_message m = messages[i];
    std::size_t at = i;
    for (; at > 0 && messages[at - 1].label > m.label; --at) messages[at] = messages[at - 1];
    messages[at] = m;
  }
}

/// What is wrong with the messages that a rank sends to itself, in their order: each waits for its other half in the same
/// batch.
///
/// Result: nothing, or the end of a sentence
[[nodiscard]] inline std::string unmatched_own(std::span<const device_message> ordered, int rank) {
  const auto own = [&](bool sends, std::size_t& at) -> const device_message* {
    while (at < ordered.size() && (ordered[at].peer != rank || ordered[at].sends != sends)) ++at;
    return at < ordered.size() ? &ordered[at++] : nullptr;
  };
  const auto words = [](const device_message* m) {
    return m == nullptr ? std::string("nothing")
                        : std::to_string(m->bytes) + " bytes under tag " + std::to_string(m->label);
  };
  std::size_t out = 0;
  std::size_t in = 0;
  for (;;) {
    const device_message* const sent = own(true, out);
    const device_message* const expected = own(false, in);
    if (sent == nullptr && expected == nullptr) return {};
    if (sent != nullptr && expected != nullptr && sent->label == expected->label && sent->bytes == expected->bytes) {
      continue;
    }
    return "this rank sends itself " + words(sent) + " and receives " + words(expected) +
           " from itself: both halves of such a message belong into one batch, with one tag and one size";
  }
}

}  // namespace detail
}  // namespace cohort
