// SPDX-License-Identifier: BSL-1.0
// How a long message gets from one rank of a host to another: copied twice, through a ring that both see; or once, by the
// kernel, by the receiver alone or by both ends, each a share. Which is faster depends on how far the two cores are from
// each other, whether they are one core's two halves, and what else they do: so it is measured, of each, between each two.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace cohort::transport {

enum class copying : unsigned char { through_ring, single_copy, by_both };

class copy_choice {
 public:
  /// The ways there are, from the first to be tried.
  static constexpr std::array ways{copying::through_ring, copying::single_copy, copying::by_both};
  /// So many messages in a row are a trial: of each way at first, and from then on of a slower one again every so often.
  [[nodiscard]] static constexpr unsigned trial(std::uint64_t bytes) noexcept { return bytes < long_bytes ? 12 : 4; }
  /// Until there have been that many, again whenever there have been twice as many: the first are of ends that have just begun.
  static constexpr unsigned look_again = 512;
  /// And of short ones, which are soon so many, when they have been.
  static constexpr unsigned look_rarely = 8 * look_again;
  /// So many after one of another kind say nothing: the caches hold nothing of it, and the other end waits in another way. A
  /// long one takes longer than that matters, and there may never be many.
  [[nodiscard]] static constexpr unsigned unsettled(std::uint64_t bytes) noexcept { return bytes < long_bytes ? 4 : 1; }
  static constexpr std::uint64_t long_bytes = std::uint64_t{1} << 20;
  /// So much of the present one's time the other must save before it takes its place.
  static constexpr float worth_while = 0.03F;

  copy_choice() = default;
  /// Nothing is measured where the caller has decided.
  explicit copy_choice(std::optional<copying> always) noexcept : always_(always) {}

  /// What the next message of so many bytes is to be moved by.
  [[nodiscard]] copying next(std::uint64_t bytes) noexcept {
    if (always_) return *always_;
    paces& p = paces_of(bytes);
    const unsigned turn = p.turns++;
    const unsigned each = trial(bytes);
    const auto first = static_cast<unsigned>(ways.size() * each);
    if (turn < first) return ways[turn / each];
    const bool at_first = turn < look_again;
    const unsigned rest = bytes < long_bytes && turn >= look_rarely ? look_rarely : look_again;
    const unsigned often = at_first ? std::bit_floor(turn) : rest;
    if (turn % often >= each || often < first) return p.faster;
    // The others take turns.
    const unsigned looks = at_first ? static_cast<unsigned>(std::bit_width(turn)) : turn / often;
    return ways[(static_cast<std::size_t>(p.faster) + 1 + looks % (ways.size() - 1)) % ways.size()];
  }

  /// A message of so many bytes has been moved, or what there was to be moved of it.
  ///
  /// Needs: bytes > 0
  void took(copying how, std::uint64_t bytes, std::chrono::nanoseconds time) noexcept {
    if (always_) return;
    paces& p = paces_of(bytes);
    if (std::exchange(p.last, how) != how) p.in_a_row = 0;
    if (p.in_a_row < unsettled(bytes)) {
      ++p.in_a_row;
      return;
    }
    pace& known = p.of[static_cast<std::size_t>(how)];
    known.add(static_cast<float>(std::max<std::int64_t>(time.count(), 1)) / static_cast<float>(bytes));
    for (const copying rival : ways) {
      const pace& present = p.of[static_cast<std::size_t>(p.faster)];
      const pace& other = p.of[static_cast<std::size_t>(rival)];
      if (present.samples == 0 || other.samples == 0) continue;
      if (other.mean < present.mean * (1 - worth_while)) p.faster = rival;
    }
  }

 private:
  /// The mean of the first, and then of the last few. A rank that lost its core for a while says nothing about copying: what
  /// took twice the mean counts as that.
  struct pace {
    float mean = 0;  // nanoseconds a byte
    unsigned samples = 0;

    void add(float now) noexcept {
      samples = std::min(samples + 1, 8U);
      if (samples > 1) now = std::min(now, 2 * mean);
      mean += (now - mean) / static_cast<float>(samples);
    }
  };
  /// Messages of about one length: what fits into a cache is another matter than what does not.
  struct paces {
    std::array<pace, ways.size()> of{};
    unsigned turns = 0;
    copying faster = copying::through_ring;
    std::optional<copying> last{};
    unsigned in_a_row = 0;  ///< of the last kind, up to `unsettled`
  };
  static constexpr int shortest = 17;  // in bits: everything below 128 KiB is alike
  static constexpr std::size_t lengths = 10;

  [[nodiscard]] paces& paces_of(std::uint64_t bytes) noexcept {
    const int bits = std::clamp(static_cast<int>(std::bit_width(bytes)) - shortest, 0, static_cast<int>(lengths) - 1);
    return paces_[static_cast<std::size_t>(bits)];
  }

  std::optional<copying> always_{};
  std::array<paces, lengths> paces_{};
};

}  // namespace cohort::transport
