// SPDX-License-Identifier: BSL-1.0
// The requests and replies of the TCP store as bytes: pure encoding and checked decoding, shared by tcp_store and
// tcp_store_server.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort::detail {

enum class store_call : std::uint32_t {
  set = 1,
  get,
  try_get,
  add,
  compare_set,
  wait,
  delete_key,
  num_keys,
  append,
  multi_get,
  multi_set,
  queue_push,
  queue_pop,
  try_queue_pop,
  queue_len,
  queue_taken,  ///< "the item of that reply has arrived": has no reply itself
  forget,       ///< "nobody waits for that reply any more, its item may go back": has no reply either
};
inline constexpr std::uint32_t store_calls = 17;

[[nodiscard]] constexpr std::string_view name_of(store_call call) noexcept {
  switch (call) {
    case store_call::set: return "set";
    case store_call::get: return "get";
    case store_call::try_get: return "try_get";
    case store_call::add: return "add";
    case store_call::compare_set: return "compare_set";
    case store_call::wait: return "wait";
    case store_call::delete_key: return "delete_key";
    case store_call::num_keys: return "num_keys";
    case store_call::append: return "append";
    case store_call::multi_get: return "multi_get";
    case store_call::multi_set: return "multi_set";
    case store_call::queue_push: return "queue_push";
    case store_call::queue_pop: return "queue_pop";
    case store_call::try_queue_pop: return "try_queue_pop";
    case store_call::queue_len: return "queue_len";
    case store_call::queue_taken: return "queue_taken";
    case store_call::forget: return "forget";
  }
  return "unknown call";
}

/// Whether it is answered only when there is something, or at its deadline.
[[nodiscard]] constexpr bool may_wait(store_call call) noexcept {
  return call == store_call::get || call == store_call::wait || call == store_call::multi_get ||
         call == store_call::queue_pop;
}

/// In front of every request.
struct request_head {
  std::uint32_t size = 0;  ///< bytes that follow
  std::uint32_t id = 0;    ///< comes back in the reply
  store_call call = store_call::set;
  std::uint64_t patience_ms = 0;  ///< how long a call that may wait does
};
inline constexpr std::size_t request_head_size = 24;

/// In front of every reply. A status other than 0 is an errc, and its text follows; for timed_out the indices of the
/// missing keys follow instead.
struct reply_head {
  std::uint32_t size = 0;
  std::uint32_t id = 0;
  std::uint32_t status = 0;
};
inline constexpr std::size_t reply_head_size = 16;

/// Longer waits are as good as endless ones, and fit the arithmetic of every clock.
inline constexpr std::uint64_t most_patience_ms = std::uint64_t{1} << 40;

[[nodiscard]] constexpr std::size_t largest_request(const store_limits& limits) noexcept {
  return 2 * limits.value + limits.key + 64;
}
[[nodiscard]] constexpr std::size_t largest_reply(const store_limits& limits) noexcept {
  return limits.value + 4 * limits.keys + 8192;
}

inline void encode(const request_head& head, std::string& out) {
  byte_writer(out)
      .number(head.size)
      .number(head.id)
      .number(static_cast<std::uint32_t>(head.call))
      .number(std::uint32_t{0})
      .number(head.patience_ms);
}
[[nodiscard]] inline request_head decode_request_head(
    std::span<const unsigned char, request_head_size> bytes) noexcept {
  request_head head;
  head.size = get_little<std::uint32_t>(bytes.data());
  head.id = get_little<std::uint32_t>(bytes.data() + 4);
  head.call = static_cast<store_call>(get_little<std::uint32_t>(bytes.data() + 8));
  head.patience_ms = get_little<std::uint64_t>(bytes.data() + 16);
  return head;
}

inline void encode(const reply_head& head, std::string& out) {
  byte_writer(out).number(head.size).number(head.id).number(head.status).number(std::uint32_t{0});
}
[[nodiscard]] inline reply_head decode_reply_head(std::span<const unsigned char, reply_head_size> bytes) noexcept {
  return {get_little<std::uint32_t>(bytes.data()), get_little<std::uint32_t>(bytes.data() + 4),
          get_little<std::uint32_t>(bytes.data() + 8)};
}

/// What follows the head of a request; which fields it has depends on the call.
struct request_body {
  std::string_view key{};
  std::string_view value{};
  std::string_view expected{};
  std::int64_t amount = 0;
  std::uint32_t earlier = 0;        ///< of queue_taken and forget: the id of the request that is meant
  std::vector<std::string> keys{};  ///< of wait and multi_get
  std::vector<key_value> pairs{};   ///< of multi_set
};

/// The keys or pairs of a caller, which are not copied into a request_body first.
struct request_lists {
  std::span<const std::string> keys{};
  std::span<const key_value> pairs{};
};

inline void encode(store_call call, const request_body& body, const request_lists& lists, std::string& out) {
  byte_writer to(out);
  switch (call) {
    case store_call::wait:
    case store_call::multi_get:
      to.number(static_cast<std::uint32_t>(lists.keys.size()));
      for (const std::string& key : lists.keys) to.text(key);
      return;
    case store_call::multi_set:
      to.number(static_cast<std::uint32_t>(lists.pairs.size()));
      for (const auto& [key, value] : lists.pairs) to.text(key).text(value);
      return;
    case store_call::queue_taken:
    case store_call::forget: to.number(body.earlier); return;
    case store_call::set:
    case store_call::append:
    case store_call::queue_push: to.text(body.key).text(body.value); return;
    case store_call::add: to.text(body.key).number(static_cast<std::uint64_t>(body.amount)); return;
    case store_call::compare_set: to.text(body.key).text(body.expected).text(body.value); return;
    default: to.text(body.key);
  }
}

/// A whole request; the size in its head is filled in.
[[nodiscard]] inline std::string encoded_request(request_head head, const request_body& body,
                                                 const request_lists& lists) {
  std::string bytes;
  encode(head, bytes);
  encode(head.call, body, lists, bytes);
  head.size = static_cast<std::uint32_t>(bytes.size() - request_head_size);
  std::string front;
  encode(head, front);
  return bytes.replace(0, front.size(), front);
}

/// The body of a request, its views into `bytes`; nothing unless every byte is accounted for.
[[nodiscard]] inline std::optional<request_body> decode_request_body(store_call call, std::string_view bytes,
                                                                     const store_limits& limits) {
  request_body body;
  byte_reader from(bytes);
  // A count is believed when so many entries, each with its lengths of 4 bytes, fit into what is left.
  const auto count = [&](std::size_t lengths) -> std::optional<std::size_t> {
    const std::size_t n = from.number<std::uint32_t>();
    return n <= limits.keys && n <= from.left() / (4 * lengths) ? std::optional(n) : std::nullopt;
  };
  switch (call) {
    case store_call::wait:
    case store_call::multi_get: {
      const std::optional<std::size_t> n = count(1);
      if (!n) return std::nullopt;
      body.keys.reserve(*n);
      for (std::size_t i = 0; i < *n && from.good(); ++i) body.keys.emplace_back(from.text(limits.key));
      break;
    }
    case store_call::multi_set: {
      const std::optional<std::size_t> n = count(2);
      if (!n) return std::nullopt;
      body.pairs.reserve(*n);
      for (std::size_t i = 0; i < *n && from.good(); ++i) {
        const std::string_view key = from.text(limits.key);
        body.pairs.emplace_back(key, from.text(limits.value));
      }
      break;
    }
    case store_call::queue_taken:
    case store_call::forget: body.earlier = from.number<std::uint32_t>(); break;
    case store_call::set:
    case store_call::append:
    case store_call::queue_push:
      body.key = from.text(limits.key);
      body.value = from.text(limits.value);
      break;
    case store_call::add:
      body.key = from.text(limits.key);
      body.amount = static_cast<std::int64_t>(from.number<std::uint64_t>());
      break;
    case store_call::compare_set:
      body.key = from.text(limits.key);
      body.expected = from.text(limits.value);
      body.value = from.text(limits.value);
      break;
    default: body.key = from.text(limits.key);
  }
  return from.complete() ? std::optional(std::move(body)) : std::nullopt;
}

/// The values of a multi_get as the body of its reply, and back; nothing unless there are `count` and no more.
[[nodiscard]] inline std::string encode_values(std::span<const std::string> values) {
  std::string bytes;
  byte_writer to(bytes);
  for (const std::string& value : values) to.text(value);
  return bytes;
}
[[nodiscard]] inline std::optional<std::vector<std::string>> decode_values(std::string_view bytes, std::size_t count,
                                                                           const store_limits& limits) {
  std::vector<std::string> values;
  byte_reader from(bytes);
  for (std::size_t i = 0; i < count && from.good(); ++i) values.emplace_back(from.text(limits.value));
  return from.complete() ? std::optional(std::move(values)) : std::nullopt;
}

}  // namespace cohort::detail
