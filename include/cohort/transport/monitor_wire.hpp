// SPDX-License-Identifier: BSL-1.0
// What the liveness threads of a world tell each other: heartbeats with the wavefront, reports of failures and
// the verdict on them. Pure encoding; every count is checked against the bytes that are there.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/transport/fault.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::transport {

enum class monitor_message : std::uint8_t {
  heartbeat = 1,  ///< rank -> monitor: what it last called on each communicator
  report = 2,     ///< rank -> monitor: something is wrong
  verdict = 3,    ///< monitor -> ranks: what is wrong, for everybody
  ask = 4,        ///< monitor -> ranks: send a heartbeat now
  goodbye = 5,    ///< rank -> monitor: it leaves, with its last heartbeat
  dismissed = 6,  ///< monitor -> ranks: everybody has left
  departed = 7,   ///< monitor -> ranks: these have left in good order
  beat = 8,       ///< monitor -> ranks: it is alive
  closing = 9,    ///< monitor -> ranks: it goes, the others watch over themselves
  welcome = 10,   ///< monitor -> ranks: everybody is connected
  part = 11,      ///< rank -> monitor: the beginning of a heartbeat or goodbye that is too long for one frame
  unformed = 12,  ///< rank -> monitor: it waits on a communicator for one that has left, and may never have formed it
};

inline constexpr std::size_t monitor_frame_limit = std::size_t{1} << 20;
inline constexpr std::size_t fault_text_limit = 4096;

[[nodiscard]] inline std::string encode_arrivals(std::span<const arrival> all) {
  std::string out;
  detail::byte_writer w(out);
  w.number(static_cast<std::uint32_t>(all.size()));
  for (const arrival& a : all) {
    w.number(a.context).number(static_cast<std::uint64_t>(a.entered)).number(static_cast<std::uint64_t>(a.completed));
    w.number(a.members).number(static_cast<std::uint8_t>(a.retired ? 1 : 0));
    w.number(static_cast<std::uint32_t>(a.calls.size()));
    for (const signature& s : a.calls) w.number(s.packed()).number(s.count);
  }
  return out;
}

/// The payloads of as many frames as it takes; at least one.
[[nodiscard]] inline std::vector<std::string> encode_arrivals_in_parts(std::span<const arrival> all,
                                                                       std::size_t limit = monitor_frame_limit) {
  // One that has told the most calls takes 289 bytes; a frame has a count of 4 bytes and its type besides.
  constexpr std::size_t most = 33 + 16 * most_calls_told;
  const std::size_t each = std::max<std::size_t>(1, (limit - 5) / most);
  std::vector<std::string> parts;
  do {
    const auto part = all.first(std::min(each, all.size()));
    parts.push_back(encode_arrivals(part));
    all = all.subspan(part.size());
  } while (!all.empty());
  return parts;
}

[[nodiscard]] inline std::optional<std::vector<arrival>> decode_arrivals(std::string_view bytes) {
  constexpr std::size_t least = 33;
  detail::byte_reader r(bytes);
  const std::size_t count = r.number<std::uint32_t>();
  if (!r.good() || count > r.left() / least) return std::nullopt;
  std::vector<arrival> all(count);
  for (arrival& a : all) {
    a.context = r.number<std::uint64_t>();
    a.entered = static_cast<std::int64_t>(r.number<std::uint64_t>());
    a.completed = static_cast<std::int64_t>(r.number<std::uint64_t>());
    a.members = r.number<std::uint32_t>();
    a.retired = r.number<std::uint8_t>() != 0;
    const std::size_t calls = r.number<std::uint32_t>();
    if (!r.good() || calls > most_calls_told || static_cast<std::int64_t>(calls) > a.entered + 1) return std::nullopt;
    a.calls.resize(calls);
    for (signature& s : a.calls) {
      const auto bits = r.number<std::uint64_t>();
      s = signature::unpack(bits, r.number<std::uint64_t>());
    }
  }
  if (!r.complete()) return std::nullopt;
  return all;
}

struct fault_report {
  fault what{};
  std::vector<int> members{};  ///< world ranks of the communicator
};

[[nodiscard]] inline std::string encode_report(const fault& f, const std::vector<int>& members) {
  std::string out;
  detail::byte_writer w(out);
  w.number(static_cast<std::uint32_t>(f.code)).number(static_cast<std::uint32_t>(f.culprit));
  w.number(static_cast<std::uint32_t>(f.reporter)).number(f.context).number(static_cast<std::uint64_t>(f.sequence));
  w.text(std::string_view{f.text}.substr(0, fault_text_limit)).number(static_cast<std::uint32_t>(members.size()));
  for (const int m : members) w.number(static_cast<std::uint32_t>(m));
  return out;
}

[[nodiscard]] inline std::optional<fault_report> decode_report(std::string_view bytes) {
  detail::byte_reader r(bytes);
  fault_report f;
  f.what.code = static_cast<errc>(r.number<std::uint32_t>());
  f.what.culprit = static_cast<int>(r.number<std::uint32_t>());
  f.what.reporter = static_cast<int>(r.number<std::uint32_t>());
  f.what.context = r.number<std::uint64_t>();
  f.what.sequence = static_cast<std::int64_t>(r.number<std::uint64_t>());
  f.what.text = std::string(r.text(fault_text_limit));
  const std::size_t count = r.number<std::uint32_t>();
  if (!r.good() || count * 4 != r.left()) return std::nullopt;
  f.members.resize(count);
  for (int& m : f.members) m = static_cast<int>(r.number<std::uint32_t>());
  if (!r.complete()) return std::nullopt;
  return f;
}

}  // namespace cohort::transport
