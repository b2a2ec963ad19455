// SPDX-License-Identifier: BSL-1.0
// The memory in which the ranks of one communicator, all on one host, carry out its collectives: each rank writes a
// part of its own and reads those of the others. Steps are numbered alike on every rank; a part has room for two.
// An operation uses it through window_use.hpp.
#pragma once

#include <cohort/collective/operation_kind.hpp>
#include <cohort/detail/hand_back.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/first_look.hpp>
#include <cohort/transport/matching.hpp>
#include <cohort/transport/paying_look.hpp>
#include <cohort/transport/shm/flag_wait.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace cohort::transport {

/// The head of a rank's part. Every word has one writer, the owner.
struct window_head {
  /// How many operations a rank may be ahead of another that it needs nothing of. Two have a core each, mostly, and less
  /// to read; of more than there are cores, whoever has one should get far before the next must have it.
  [[nodiscard]] static constexpr unsigned ahead(int ranks) noexcept { return ranks <= 2 ? 8 : most_ahead; }
  static constexpr unsigned most_ahead = 128;
  /// An entry is written again when everybody has entered the operation `ahead` after it, and so has read it: a rank
  /// looks at what every other has called before it comes to be further ahead.
  static constexpr unsigned kept = 2 * most_ahead;

  /// An operation of a rank: what it is, how far the rank has come, and data short enough to stand here.
  struct alignas(128) entry {
    shared_word step{0};  ///< steps that the owner has entered with its data in place
    std::uint32_t sequence = 0;
    std::uint64_t call = 0;
    std::uint64_t count = 0;
    alignas(32) std::byte data[96] = {};
  };
  entry entries[kept];
  alignas(128) shared_word second{0};  ///< steps whose second half the owner has done
  alignas(128) shared_word pieces{0};  ///< of scans along a chain that stand in the owner's slots, of all steps
  alignas(128) shared_word done{0};    ///< steps that the owner has finished reading
  alignas(128) shared_word status{0};  ///< 1: it sees everybody's part; 2: it does not
  /// 1: it has ended an operation in which the others reach its buffers before they had.
  alignas(128) shared_word given_up{0};
};

static_assert(std::has_single_bit(window_head::ahead(2)) && std::has_single_bit(window_head::most_ahead));

class shm_window {
 public:
  static constexpr std::size_t inline_bytes = sizeof(window_head::entry::data);
  static constexpr std::size_t head_bytes =
      (sizeof(window_head) + shared_segment::page - 1) / shared_segment::page * shared_segment::page;

  /// Bytes of a rank's part for one step: the two of every rank shall stay in its second-level cache.
  [[nodiscard]] static constexpr std::size_t slot_bytes_for(int ranks) noexcept {
    return ranks <= 2 ? std::size_t{1} << 20 : ranks <= 16 ? std::size_t{512} << 10 : std::size_t{128} << 10;
  }

  /// `on_core`: of each rank, whether it takes turns with this one on a core; empty: that is not known, or no rank does
  /// `cores`: how many the ranks take turns on
  shm_window(int rank, int size, const std::vector<bool>& on_core, int cores = 0)
      : rank_(rank),
        size_(size),
        mask_(2 * window_head::ahead(size) - 1),
        slot_bytes_(slot_bytes_for(size)),
        parts_(static_cast<std::size_t>(size)),
        left_(static_cast<std::size_t>(size), 0),
        agreed_(static_cast<std::size_t>(size), 0),
        on_core_(on_core),
        takes_turns_(!on_core.empty()),
        on_two_cores_(takes_turns_ && cores == 2) {
    watched_.reserve(static_cast<std::size_t>(size));
    for (const bool here : {true, false}) {
      for (int k = 1; k < size && takes_turns(); ++k) {
        const int r = (rank + k) % size;
        if (on_core_[static_cast<std::size_t>(r)] == here) in_turn_.push_back(r);
      }
    }
  }

  /// Makes this rank's part.
  ///
  /// Errors: out_of_memory, io_error
  [[nodiscard]] const shared_segment& make_own() {
    shared_segment& mine = parts_[static_cast<std::size_t>(rank_)].memory;
    mine = shared_segment::create(part_bytes());
    parts_[static_cast<std::size_t>(rank_)].head = ::new (mine.data()) window_head;
    return mine;
  }
  /// The part has been offered to everybody.
  void close_own_descriptor() noexcept { parts_[static_cast<std::size_t>(rank_)].memory.close_descriptor(); }
  void adopt(int r, owned_fd fd) {
    part& p = parts_[static_cast<std::size_t>(r)];
    p.memory = shared_segment::adopt(std::move(fd), part_bytes());
    p.head = reinterpret_cast<window_head*>(p.memory.data());
  }
  void watch_sleep(int r, const shared_word& asleep) noexcept { watched_.push_back({r, &asleep}); }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  /// Whether ranks take turns on cores, and which on which is known. Then the other ranks, those first that take turns with this one,
  /// as it should not wait for the rest while it is in their way.
  [[nodiscard]] bool takes_turns() const noexcept { return takes_turns_; }
  [[nodiscard]] std::span<const int> in_turn() const noexcept { return in_turn_; }
  /// Whether that rank has another core than this one.
  [[nodiscard]] bool on_other_core(int r) const noexcept {
    return takes_turns() && !on_core_[static_cast<std::size_t>(r)];
  }
  /// Who reads what all others do. Not `on_two_cores` where its lines would go to and fro between these more often than it saves:
  /// if more ranks than two on a core read of each other.
  [[nodiscard]] detail::readers readers_of_all(bool given_by_one) const noexcept {
    const bool few = given_by_one || size_ <= 4;
    return on_two_cores_ && few ? detail::readers::on_two_cores : detail::readers::many;
  }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] window_head& head(int r) const noexcept { return *parts_[static_cast<std::size_t>(r)].head; }
  [[nodiscard]] unsigned ahead() const noexcept { return static_cast<unsigned>(mask_ / 2 + 1); }
  [[nodiscard]] window_head::entry& entry(int r, std::uint64_t operation) const noexcept {
    return head(r).entries[operation & mask_];
  }
  [[nodiscard]] std::byte* slot(int r, std::uint32_t step) const noexcept {
    return parts_[static_cast<std::size_t>(r)].memory.data() + head_bytes + (step % 2) * slot_bytes_;
  }
  [[nodiscard]] bool has_part(int r) const noexcept { return parts_[static_cast<std::size_t>(r)].head != nullptr; }
  /// A rank that may sleep, and the word that says whether it does.
  struct sleeper {
    int rank;
    const shared_word* asleep;
  };
  [[nodiscard]] std::span<const sleeper> watched() const noexcept { return watched_; }
  /// For who waits for the others again and again in short operations of that kind.
  [[nodiscard]] first_look& when(operation_kind kind) noexcept { return when_[static_cast<std::size_t>(kind)]; }

  // --- the operations of this rank take turns, in the order of their calls
  bool busy = false;
  flag_wait* first_waiting = nullptr;
  flag_wait* last_waiting = nullptr;

  /// The operation that the front of its call has begun, and left to a frame to finish; or none.
  static constexpr std::int64_t none = -1;
  std::int64_t begun = none;
  bool halfway = false;  ///< and has raised the second half of its step
  /// Whether ranks on other cores raise what all raise at once while this one looks for it.
  paying_look across_cores{};

  std::uint64_t operations = 0;
  std::uint32_t steps = 0;   ///< of all operations so far
  std::uint32_t pieces = 0;  ///< of all scans along a chain so far
  std::uint32_t rounds = 0;  ///< steps whose data have gone round the slots so far

  enum class state : unsigned char { closed, open, refused };
  state opened = state::closed;
  bool unreadable = false;  ///< to some rank the memory of another; known to all

  /// What an operation of this rank was, and where it began; of the last ones.
  struct past {
    std::uint64_t call = 0;  ///< as in its entry
    std::uint32_t sequence = 0;
    std::uint32_t start = 0;
    std::uint64_t count = 0;  // not beside `call`: signature::copy_by_words says why
  };
  [[nodiscard]] past& own(std::uint64_t operation) noexcept { return own_[operation & mask_]; }
  /// The first operation of which it is not known that rank r has called the same.
  [[nodiscard]] std::uint64_t& agreed(int r) noexcept { return agreed_[static_cast<std::size_t>(r)]; }
  /// Steps that rank r is known to have finished reading.
  [[nodiscard]] std::uint32_t& left(int r) noexcept { return left_[static_cast<std::size_t>(r)]; }

 private:
  struct part {
    shared_segment memory{};
    window_head* head = nullptr;
  };
  [[nodiscard]] std::size_t part_bytes() const noexcept { return head_bytes + 2 * slot_bytes_; }

  int rank_;
  int size_;
  std::uint64_t mask_;  // 2 * ahead() - 1
  std::size_t slot_bytes_;
  std::vector<part> parts_;
  std::vector<sleeper> watched_{};
  std::vector<std::uint32_t> left_;
  std::vector<std::uint64_t> agreed_;
  std::vector<bool> on_core_;
  std::vector<int> in_turn_{};
  bool takes_turns_;  // looked at by each short operation
  bool on_two_cores_;
  past own_[window_head::kept]{};
  std::array<first_look, static_cast<std::size_t>(last_operation_kind) + 1> when_{};
};

}  // namespace cohort::transport
