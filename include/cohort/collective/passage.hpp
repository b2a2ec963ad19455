// SPDX-License-Identifier: BSL-1.0
// Where ranks that share memory carry a call out: in their window, by messages, by reading each other's memory, or in whichever has
// been faster lately. A window copies what goes from one rank to another twice; a message is copied as suits the two, be it once, by
// both of them; who has as much to read as to be read reads without one. Which is faster depends on how far apart the cores are and
// how busy the machine is, and may change within minutes, by more than twice.
#pragma once

#include <cohort/collective/operation_kind.hpp>
#include <cohort/detail/trials.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>

namespace cohort::collective {

enum class passage : unsigned char { messages, window, single_copy, either };

/// Either for long blocks where each is for one other rank, or there is one other rank. What no window is faster for goes by
/// messages: short scans of two ranks, of which the second has nothing to say to the first.
///
/// Needs: `bytes` as `selection_table::choose`
[[nodiscard]] constexpr passage passage_of(operation_kind kind, std::size_t bytes, int ranks) noexcept {
  // With shorter blocks it would be felt that the ranks agree first.
  constexpr std::size_t worth_asking = std::size_t{64} << 10;
  // Without a division, which would take as long as the rest of a short call's way to here.
  const auto together = [bytes, ranks](std::size_t least) {
    if (bytes < least && bytes * static_cast<std::size_t>(ranks) < least) return passage::window;
    return bytes > worth_asking ? passage::either : passage::messages;
  };
  switch (kind) {
    case operation_kind::scatter: return together(std::size_t{512} << 10);
    case operation_kind::all_to_all: return together(std::size_t{ranks == 2 ? 512U : 1024U} << 10);
    case operation_kind::all_gather:
      return ranks == 2 && bytes >= std::size_t{512} << 10 ? passage::either : passage::window;
    case operation_kind::broadcast: return ranks == 2 && bytes > worth_asking ? passage::either : passage::window;
    case operation_kind::scan: return ranks == 2 && bytes <= std::size_t{4} << 10 ? passage::messages : passage::window;
    default: return passage::window;
  }
}

/// What a rank has found of calls that may go either way, on one communicator, and what the ranks have agreed on. Every rank counts
/// and times them alike; so that they need not agree on each, they do on a few in a row.
class passage_trials {
 public:
  /// The ways there are, from the first to be tried: many short programs make no more calls than that. Where all give alike, each can
  /// read what is for it, which copies once instead of twice, and messages would copy nothing faster. Elsewhere a root that has
  /// nothing to read had better copy too, as it does of messages, which have to choose how they are copied at first; a window is
  /// slower where it has a block for each of several ranks.
  using order = std::array<passage, 2>;
  [[nodiscard]] static constexpr order order_of(operation_kind kind, int ranks) noexcept {
    if (kind == operation_kind::scatter) {
      return ranks > 2 ? order{passage::messages, passage::window} : order{passage::window, passage::messages};
    }
    if (kind == operation_kind::broadcast) return {passage::window, passage::messages};
    return {passage::single_copy, passage::window};
  }

  /// Of calls of one kind, with blocks of about one length: what fits into a cache is another matter than what does not.
  class record {
   public:
    struct turn {
      passage found_faster;  ///< or to be tried
      bool to_agree;         ///< the ranks are to agree on this call and those that follow
    };
    /// The next call, in the order of the calls.
    ///
    /// Needs: `plan` and `ways` are always the same
    [[nodiscard]] turn next(const cohort::detail::trial_plan& plan, const order& ways) noexcept {
      const bool to_agree = trials_.may_change(plan);
      return {ways[trials_.next(plan)], to_agree};
    }
    void agree(passage how) noexcept { agreed_ = how; }
    [[nodiscard]] passage agreed() const noexcept { return agreed_; }
    /// One has been carried out.
    void took(passage how, std::size_t bytes, std::chrono::nanoseconds time, const cohort::detail::trial_plan& plan,
              const order& ways) noexcept {
      const float each = static_cast<float>(time.count()) / static_cast<float>(bytes);
      trials_.took(how == ways[0] ? 0 : 1, each, plan);
    }

   private:
    cohort::detail::trials<order{}.size()> trials_{};
    passage agreed_ = passage::either;  ///< nothing yet
  };

  [[nodiscard]] record& of(operation_kind kind, std::size_t bytes) noexcept {
    const std::size_t row = row_of(kind);
    const int bits = std::clamp(static_cast<int>(std::bit_width(bytes)) - shortest, 0, static_cast<int>(lengths) - 1);
    return records_[row * lengths + static_cast<std::size_t>(bits)];
  }

 private:
  static constexpr int shortest = 17;  // in bits, of a block
  static constexpr std::size_t lengths = 8;
  static constexpr std::size_t kinds = 4;

  [[nodiscard]] static constexpr std::size_t row_of(operation_kind kind) noexcept {
    switch (kind) {
      case operation_kind::scatter: return 0;
      case operation_kind::all_to_all: return 1;
      case operation_kind::broadcast: return 2;
      default: return 3;  // all_gather
    }
  }

  std::array<record, kinds * lengths> records_{};
};

}  // namespace cohort::collective
