// SPDX-License-Identifier: BSL-1.0
// A long message over several streams at once: how its sender cuts it into chunks, what stands in front of each, and how
// its receiver knows that every byte has come, once. Pure; used by stripe_set.hpp.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/detail/frame_pool.hpp>
#include <cohort/transport/piece.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace cohort::transport {

/// Shorter messages go over one stream, whatever the number of others: cutting them costs more than it brings.
inline constexpr std::uint64_t shortest_striped = std::uint64_t{1} << 20;
/// A stream that is slower than the others carries fewer of them, and a receiver keeps one a stream where it combines
/// what arrives.
inline constexpr std::size_t longest_chunk = std::size_t{256} << 10;
/// Every chunk but the last of a message has as many bytes, so that a receiver need not remember many.
inline constexpr std::size_t shortest_chunk = std::size_t{32} << 10;

/// What stands in front of the bytes of a chunk: which message, and where in it they belong.
struct chunk {
  static constexpr std::size_t header_bytes = 24;
  using bytes_type = std::array<unsigned char, header_bytes>;

  std::uint64_t ticket = 0;  ///< 0, with nothing else: nothing more comes on this stream
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  [[nodiscard]] bool is_goodbye() const noexcept { return ticket == 0 && offset == 0 && bytes == 0; }
  [[nodiscard]] bytes_type encode() const noexcept {
    bytes_type b{};
    detail::put_little(&b[0], ticket);
    detail::put_little(&b[8], offset);
    detail::put_little(&b[16], bytes);
    return b;
  }
  [[nodiscard]] static chunk decode(const unsigned char* b) noexcept {
    return {detail::get_little<std::uint64_t>(b), detail::get_little<std::uint64_t>(b + 8),
            detail::get_little<std::uint64_t>(b + 16)};
  }
  friend bool operator==(const chunk&, const chunk&) = default;
};

/// What the lengths of all pieces have in common: chunks of as many bytes end where elements do. 0 where the pieces have
/// no bytes.
[[nodiscard]] inline std::uint64_t common_unit(std::span<const piece> pieces) noexcept {
  std::uint64_t unit = 0;
  for (const piece& p : pieces) unit = std::gcd(unit, static_cast<std::uint64_t>(p.bytes));
  return unit;
}

/// Whether chunks of a message may be cut at the multiples of `unit`, which a receiver has asked for.
[[nodiscard]] constexpr bool can_be_cut(std::uint64_t total, std::uint64_t unit) noexcept {
  return unit > 0 && unit <= longest_chunk && total % unit == 0;
}

/// Needs:  can_be_cut(total, unit)
/// Result: a multiple of `unit` that gives each of so many streams a few chunks, if the message is long enough for that
[[nodiscard]] constexpr std::uint64_t chunk_length(std::uint64_t total, std::uint64_t unit,
                                                   std::size_t streams) noexcept {
  constexpr std::uint64_t least = 2 * shortest_chunk;
  const std::uint64_t fair = total / (4 * std::max<std::uint64_t>(1, streams));
  const std::uint64_t wanted = std::clamp<std::uint64_t>(fair, least, longest_chunk);
  return std::max(unit, wanted / unit * unit);
}

/// The chunks of one message, from its front.
class chunk_cutter {
 public:
  /// Needs: can_be_cut(total, unit)
  chunk_cutter(std::uint64_t ticket, std::uint64_t total, std::uint64_t unit, std::size_t streams) noexcept
      : ticket_(ticket), total_(total), length_(chunk_length(total, unit, streams)) {}

  [[nodiscard]] std::uint64_t ticket() const noexcept { return ticket_; }
  [[nodiscard]] bool done() const noexcept { return cut_ == total_; }
  /// Needs: !done()
  [[nodiscard]] chunk next() noexcept {
    const chunk c{ticket_, cut_, std::min(length_, total_ - cut_)};
    cut_ += c.bytes;
    return c;
  }

 private:
  std::uint64_t ticket_;
  std::uint64_t total_;
  std::uint64_t length_;
  std::uint64_t cut_ = 0;
};

/// Which bytes of one message have come, or are coming.
///
/// Cost: one entry for each gap between them; a sender that does as the others do leaves as many as it has streams
class chunk_ledger {
 public:
  /// Needs: can_be_cut(total, unit)
  chunk_ledger(std::uint64_t total, std::uint64_t unit) noexcept : total_(total), unit_(unit) {}

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] bool complete() const noexcept { return arrived_ == total_; }

  /// The header of a chunk has come. False, and nothing is changed, when it is none of this message: it lies outside, has
  /// bytes of one that came before, or is cut where no rank cuts.
  [[nodiscard]] bool begin(const chunk& c) {
    if (c.bytes == 0 || c.bytes > longest_chunk || c.offset > total_ || c.bytes > total_ - c.offset) return false;
    const std::uint64_t end = c.offset + c.bytes;
    if (c.offset % unit_ != 0 || c.bytes % unit_ != 0 || (c.bytes < shortest_chunk && end != total_)) return false;
    const auto after = std::upper_bound(known_.begin(), known_.end(), c.offset,
                                        [](std::uint64_t offset, const range& r) { return offset < r.first; });
    if (after != known_.end() && after->first < end) return false;
    const bool meets_next = after != known_.end() && after->first == end;
    if (after != known_.begin()) {
      const auto before = after - 1;
      if (before->last > c.offset) return false;
      if (before->last == c.offset) {
        before->last = meets_next ? after->last : end;
        if (meets_next) known_.erase(after);
        return true;
      }
    }
    if (meets_next) {
      after->first = c.offset;
    } else {
      known_.insert(after, range{c.offset, end});
    }
    return true;
  }
  /// All bytes of a chunk that has begun are here.
  void end(const chunk& c) noexcept { arrived_ += c.bytes; }

  /// How many entries it has.
  [[nodiscard]] std::size_t entries() const noexcept { return known_.size(); }

 private:
  struct range {
    std::uint64_t first;
    std::uint64_t last;  // the byte behind
  };

  std::uint64_t total_;
  std::uint64_t unit_;
  std::uint64_t arrived_ = 0;
  std::vector<range, detail::pool_allocator<range>> known_{};
};

/// Calls f(number of the piece, where in it, bytes) for each part of a piece that lies in these bytes of a message, while
/// f returns true.
template <class F>
void each_part(std::span<const piece> pieces, std::uint64_t offset, std::uint64_t bytes, F f) {
  for (std::size_t i = 0; i < pieces.size() && bytes > 0; ++i) {
    if (offset >= pieces[i].bytes) {
      offset -= pieces[i].bytes;
      continue;
    }
    const std::uint64_t part = std::min<std::uint64_t>(bytes, pieces[i].bytes - offset);
    if (!f(i, static_cast<std::size_t>(offset), static_cast<std::size_t>(part))) return;
    bytes -= part;
    offset = 0;
  }
}

}  // namespace cohort::transport
