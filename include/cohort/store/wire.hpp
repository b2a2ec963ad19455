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
#include <vector>

namespace cohort::detail {

enum class store_call : std::uint32_t { set = 1, get, try_get, add, compare_set, wait, delete_key, num_keys };

[[nodiscard]] constexpr std::string_view name_of(store_call call) noexcept {
  switch (call) {
    case store_call::set:
      return "set";
    case store_call::get:
      return "get";
    case store_call::try_get:
      return "try_get";
    case store_call::add:
      return "add";
    case store_call::compare_set:
      return "compare_set";
    case store_call::wait:
      return "wait";
    case store_call::delete_key:
      return "delete_key";
    case store_call::num_keys:
      return "num_keys";
  }
  return "unknown call";
}

/// In front of every request.
struct request_head {
  std::uint32_t size = 0;  ///< bytes that follow
  std::uint32_t id = 0;    ///< comes back in the reply
  store_call call = store_call::set;
  std::uint64_t patience_ms = 0;  ///< how long get and wait may wait
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
  std::vector<std::string> keys{};
};

inline void encode(store_call call, const request_body& body, std::span<const std::string> keys, std::string& out) {
  byte_writer to(out);
  if (call == store_call::wait) {
    to.number(static_cast<std::uint32_t>(keys.size()));
    for (const std::string& key : keys) to.text(key);
    return;
  }
  to.text(body.key);
  if (call == store_call::set) to.text(body.value);
  if (call == store_call::add) to.number(static_cast<std::uint64_t>(body.amount));
  if (call == store_call::compare_set) to.text(body.expected).text(body.value);
}

/// The body of a request, its views into `bytes`; nothing unless every byte is accounted for.
[[nodiscard]] inline std::optional<request_body> decode_request_body(store_call call, std::string_view bytes,
                                                                     const store_limits& limits) {
  request_body body;
  byte_reader from(bytes);
  if (call == store_call::wait) {
    const std::size_t count = from.number<std::uint32_t>();
    if (count > limits.keys || count > from.left() / 4) return std::nullopt;  // each takes 4 bytes at least
    body.keys.reserve(count);
    for (std::size_t i = 0; i < count && from.good(); ++i) body.keys.emplace_back(from.text(limits.key));
    return from.complete() ? std::optional(std::move(body)) : std::nullopt;
  }
  body.key = from.text(limits.key);
  if (call == store_call::set) body.value = from.text(limits.value);
  if (call == store_call::add) body.amount = static_cast<std::int64_t>(from.number<std::uint64_t>());
  if (call == store_call::compare_set) {
    body.expected = from.text(limits.value);
    body.value = from.text(limits.value);
  }
  return from.complete() ? std::optional(std::move(body)) : std::nullopt;
}

}  // namespace cohort::detail
