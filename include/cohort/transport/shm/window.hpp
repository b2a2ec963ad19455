// SPDX-License-Identifier: BSL-1.0
// The memory in which the ranks of one communicator, all on one host, carry out its collectives: each rank writes a
// part of its own and reads those of the others. Steps are numbered alike on every rank; a part has room for two.
#pragma once

#include <cohort/transport/call.hpp>
#include <cohort/transport/cpu_transport.hpp>
#include <cohort/transport/matching.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

/// The head of a rank's part. Every word has one writer, the owner.
struct window_head {
  /// An operation of a rank: what it is, how far the rank has come, and data short enough to stand here.
  struct alignas(128) entry {
    shared_word step{0};  ///< steps that the owner has entered with its data in place
    std::uint32_t sequence = 0;
    std::uint64_t call = 0;
    std::uint64_t count = 0;
    alignas(32) std::byte data[96] = {};
  };
  entry entries[2];
  alignas(128) shared_word second{0};  ///< steps whose second half the owner has done
  alignas(128) shared_word done{0};    ///< steps that the owner has finished reading
  alignas(128) shared_word status{0};  ///< 1: it sees everybody's part; 2: it does not
};

class shm_window {
 public:
  static constexpr std::size_t inline_bytes = sizeof(window_head::entry::data);
  static constexpr std::size_t head_bytes = shared_segment::page;
  static_assert(sizeof(window_head) <= head_bytes);

  /// Bytes of a rank's part for one step: the two of every rank shall stay in its second-level cache.
  [[nodiscard]] static constexpr std::size_t slot_bytes_for(int ranks) noexcept {
    return ranks <= 2 ? std::size_t{1} << 20 : ranks <= 16 ? std::size_t{512} << 10 : std::size_t{128} << 10;
  }

  shm_window(int rank, int size)
      : rank_(rank),
        size_(size),
        slot_bytes_(slot_bytes_for(size)),
        parts_(static_cast<std::size_t>(size)),
        left_(static_cast<std::size_t>(size), 0),
        agreed_(static_cast<std::size_t>(size), 0) {}

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
  void watch_sleep(int r, const shared_word& asleep) noexcept { parts_[static_cast<std::size_t>(r)].asleep = &asleep; }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  [[nodiscard]] window_head& head(int r) const noexcept { return *parts_[static_cast<std::size_t>(r)].head; }
  [[nodiscard]] std::byte* slot(int r, std::uint32_t step) const noexcept {
    return parts_[static_cast<std::size_t>(r)].memory.data() + head_bytes + (step % 2) * slot_bytes_;
  }
  [[nodiscard]] bool has_part(int r) const noexcept { return parts_[static_cast<std::size_t>(r)].head != nullptr; }
  [[nodiscard]] const shared_word* asleep(int r) const noexcept { return parts_[static_cast<std::size_t>(r)].asleep; }

  // --- the operations of this rank take turns, in the order of their calls
  bool busy = false;
  flag_wait* first_waiting = nullptr;
  flag_wait* last_waiting = nullptr;

  std::uint32_t operations = 0;
  std::uint32_t steps = 0;  ///< of all operations so far

  enum class state : unsigned char { closed, open, refused };
  state opened = state::closed;

  /// What this rank's operation before this one was, and where it began.
  struct past {
    std::uint32_t sequence = 0;
    signature call{};
    std::uint32_t start = 0;
  };
  past previous{};
  past current{};
  /// The last operation of rank r that is known to be the one that this rank called.
  [[nodiscard]] std::uint32_t& agreed(int r) noexcept { return agreed_[static_cast<std::size_t>(r)]; }
  /// Steps that rank r is known to have finished reading.
  [[nodiscard]] std::uint32_t& left(int r) noexcept { return left_[static_cast<std::size_t>(r)]; }

 private:
  struct part {
    shared_segment memory{};
    window_head* head = nullptr;
    const shared_word* asleep = nullptr;
  };
  [[nodiscard]] std::size_t part_bytes() const noexcept { return head_bytes + 2 * slot_bytes_; }

  int rank_;
  int size_;
  std::size_t slot_bytes_;
  std::vector<part> parts_;
  std::vector<std::uint32_t> left_;
  std::vector<std::uint32_t> agreed_;
};

/// One operation's use of the window. It lives in the frame of the operation, and ends with it.
class window_use {
 public:
  window_use(call& c, cpu_transport& transport, shm_window& window) noexcept
      : call_(&c), transport_(&transport), window_(&window) {
    wait_.set.owner = &c;
  }
  window_use(const window_use&) = delete;
  window_use& operator=(const window_use&) = delete;
  ~window_use() {
    transport_->waits().remove(wait_);
    if (call_->waiting == &wait_.set) call_->waiting = nullptr;
    if (queued_) leave_queue();
    if (mine_) pass_turn();
  }

  /// Waits for a word; trivially destructible, so that it may be a temporary in a co_await expression.
  class reaching {
   public:
    enum class next : unsigned char { nothing, check, check_previous, left };
    reaching(window_use& use, const shared_word* word, std::uint32_t number, int peer, next what) noexcept
        : use_(&use), word_(word), number_(number), peer_(peer), what_(what) {}
    [[nodiscard]] bool await_ready() const noexcept {
      if (word_ == nullptr || reached(*word_, number_)) return true;
      // Without a pause first: one may last as long as a word takes to come from another core.
      const int looks = use_->transport_->brief_looks();
      for (int i = 0; i < looks; ++i) {
        if (reached(*word_, number_)) return true;
      }
      for (int i = 0; i < looks / 16; ++i) {
        pause();
        if (reached(*word_, number_)) return true;
      }
      return false;
    }
    bool await_suspend(std::coroutine_handle<> h) const noexcept { return use_->suspend(h, word_, number_, peer_); }
    void await_resume() const {
      use_->resumed();
      if (what_ == next::check) use_->check(peer_);
      if (what_ == next::check_previous) use_->check_previous(peer_);
      if (what_ == next::left) use_->window_->left(peer_) = number_;
    }

   private:
    window_use* use_;
    const shared_word* word_;
    std::uint32_t number_;
    int peer_;
    next what_;
  };
  class turn_awaiter {
   public:
    explicit turn_awaiter(window_use& use) noexcept : use_(&use) {}
    [[nodiscard]] bool await_ready() const noexcept { return !use_->window_->busy; }
    bool await_suspend(std::coroutine_handle<> h) const noexcept { return use_->enqueue(h); }
    void await_resume() const {
      use_->resumed();
      use_->begin();
    }

   private:
    window_use* use_;
  };

  /// Waits until the operations that were called before have ended here.
  [[nodiscard]] turn_awaiter turn() noexcept { return turn_awaiter(*this); }
  /// Whether there is nothing to wait for before this operation begins: `previous_of` and `left_by` of every rank.
  [[nodiscard]] bool may_begin() const noexcept {
    for (int k = 0; k < window_->size(); ++k) {
      if (k == window_->rank()) continue;
      if (window_->agreed(k) != window_->operations - 1) return false;
      if (static_cast<std::int32_t>(window_->left(k) - must_be_done_) < 0) return false;
    }
    return true;
  }
  /// Waits until rank k has entered the operation before this one, and holds the two ranks' calls against each other:
  /// an operation that needs nothing of some rank would not find out otherwise that it called something else.
  [[nodiscard]] reaching previous_of(int k) noexcept {
    const bool known = window_->agreed(k) == window_->operations - 1;
    return {*this, known ? nullptr : &window_->head(k).entries[parity_ ^ 1U].step, window_->previous.start + 1, k,
            known ? reaching::next::nothing : reaching::next::check_previous};
  }
  /// Waits until rank k reads nothing any more of what this rank is about to overwrite.
  [[nodiscard]] reaching left_by(int k) noexcept {
    const bool known = static_cast<std::int32_t>(window_->left(k) - must_be_done_) >= 0;
    return {*this, known ? nullptr : &window_->head(k).done, must_be_done_, k,
            known ? reaching::next::nothing : reaching::next::left};
  }
  /// Waits until rank k's data of this step are in place.
  [[nodiscard]] reaching arrived(int k) noexcept {
    return {*this, &entry(k).step, window_->steps + 1, k, reaching::next::check};
  }
  /// Waits until the second half of this step is done on rank k.
  [[nodiscard]] reaching second_of(int k) noexcept {
    return {*this, &window_->head(k).second, window_->steps + 1, k, reaching::next::nothing};
  }

  /// Waits for another word.
  [[nodiscard]] reaching reach(const shared_word& word, std::uint32_t number, int writer) noexcept {
    return {*this, &word, number, writer, reaching::next::nothing};
  }

  [[nodiscard]] call& current() const noexcept { return *call_; }
  [[nodiscard]] cpu_transport& transport() const noexcept { return *transport_; }
  [[nodiscard]] shm_window& window() const noexcept { return *window_; }
  [[nodiscard]] bool open() const noexcept { return window_->opened == shm_window::state::open; }

  [[nodiscard]] int rank() const noexcept { return window_->rank(); }
  [[nodiscard]] int size() const noexcept { return window_->size(); }
  /// The k-th of the other ranks, beginning behind this one, so that not all read from one at a time.
  [[nodiscard]] int other(int k) const noexcept {
    const int r = window_->rank() + k;
    return r < window_->size() ? r : r - window_->size();
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return window_->slot_bytes(); }
  [[nodiscard]] std::byte* slot(int k) const noexcept { return window_->slot(k, window_->steps); }
  [[nodiscard]] std::byte* mine() const noexcept { return slot(window_->rank()); }
  [[nodiscard]] std::byte* short_data(int k) const noexcept { return entry(k).data; }

  /// Says what this operation is; before anything is raised.
  void announce() noexcept {
    window_head::entry& own = entry(window_->rank());
    const signature& s = call_->signature();
    own.sequence = static_cast<std::uint32_t>(call_->sequence());
    own.call = s.packed();
    own.count = s.count;
    window_->current = {own.sequence, s, window_->steps};
  }

  /// This rank's data of this step are in place.
  void raise() noexcept {
    entry(window_->rank()).step.store(window_->steps + 1, std::memory_order_release);
    wake();
  }
  void raise_second() noexcept {
    window_->head(window_->rank()).second.store(window_->steps + 1, std::memory_order_release);
    wake();
  }
  /// This rank has read what it needs of this step.
  void end_step() noexcept {
    ++window_->steps;
    window_->head(window_->rank()).done.store(window_->steps, std::memory_order_release);
    wake();
    first_step_ = false;
    must_be_done_ = window_->steps - 1;
  }
  /// The operation has ended; the next may begin.
  void finish() noexcept { pass_turn(); }
  /// Something was written that others may wait for.
  void wake() noexcept {
    neighbours& all = *transport_->host_ranks();
    all.written();
    for (int k = 0; k < window_->size(); ++k) {
      const shared_word* const asleep = window_->asleep(k);
      if (asleep != nullptr && asleep->load(std::memory_order_relaxed) != 0) all.ring(call_->home().world_rank(k));
    }
  }

 private:
  [[nodiscard]] window_head::entry& entry(int k) const noexcept { return window_->head(k).entries[parity_]; }

  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
  }

  bool suspend(std::coroutine_handle<> h, const shared_word* word, std::uint32_t number, int writer) noexcept {
    if (call_->home().failure()) {
      wait_.set.failed = true;
      return false;
    }
    wait_.word = word;
    wait_.number = number;
    wait_.writer = writer;
    wait_.set.pending = 1;
    wait_.set.waiter = h;
    call_->waiting = &wait_.set;
    transport_->waits().add(wait_);
    return true;
  }
  bool enqueue(std::coroutine_handle<> h) noexcept {
    if (!suspend(h, nullptr, 0, -1)) return false;
    transport_->waits().remove(wait_);
    wait_.next = nullptr;
    wait_.previous = window_->last_waiting;
    (window_->last_waiting != nullptr ? window_->last_waiting->next : window_->first_waiting) = &wait_;
    window_->last_waiting = &wait_;
    queued_ = true;
    return true;
  }
  void leave_queue() noexcept {
    (wait_.previous != nullptr ? wait_.previous->next : window_->first_waiting) = wait_.next;
    (wait_.next != nullptr ? wait_.next->previous : window_->last_waiting) = wait_.previous;
    wait_.previous = wait_.next = nullptr;
    queued_ = false;
  }
  void resumed() {
    transport_->waits().remove(wait_);
    if (queued_) leave_queue();
    call_->waiting = nullptr;
    if (wait_.set.failed) throw call_->failure();
  }

  void begin() noexcept {
    window_->busy = true;
    mine_ = true;
    parity_ = window_->operations++ % 2;
    must_be_done_ = window_->steps - 1;
    window_->previous = window_->current;
  }
  void pass_turn() noexcept {
    if (!std::exchange(mine_, false)) return;
    flag_wait* const following = window_->first_waiting;
    // Still busy if somebody waits: nobody may come before it.
    window_->busy = following != nullptr;
    if (following != nullptr) transport_->waits().end(*following, *transport_);
  }

  void check(int k) {
    // Rank k has entered this step: it has read everything of those before.
    window_->left(k) = window_->steps;
    if (!first_step_) return;
    if (!agrees(entry(k), window_->current)) disagree(k, entry(k), window_->current);
    window_->agreed(k) = window_->operations;
  }
  void check_previous(int k) {
    const window_head::entry& theirs = window_->head(k).entries[parity_ ^ 1U];
    if (!agrees(theirs, window_->previous)) disagree(k, theirs, window_->previous);
    window_->agreed(k) = window_->operations - 1;
    if (static_cast<std::int32_t>(window_->previous.start - window_->left(k)) > 0) {
      window_->left(k) = window_->previous.start;
    }
  }
  [[nodiscard]] static bool agrees(const window_head::entry& theirs, const shm_window::past& mine) noexcept {
    return theirs.call == mine.call.packed() && theirs.count == mine.call.count && theirs.sequence == mine.sequence;
  }
  [[noreturn]] void disagree(int k, const window_head::entry& theirs, const shm_window::past& mine) {
    const group& g = call_->home();
    const signature other = signature::unpack(theirs.call, theirs.count);
    std::string text;
    if (other == mine.call) {
      text = "rank " + std::to_string(g.rank()) + " called " + describe(other) + " as #" +
             std::to_string(mine.sequence) + ", rank " + std::to_string(k) + " as #" + std::to_string(theirs.sequence) +
             "; the ranks of a communicator call the same operations in the same order";
    } else {
      text = describe_disagreement(g.rank(), mine.call, k, other);
    }
    transport_->report_mismatch(g, mine.sequence, g.world_rank(k), errc::mismatch, std::move(text));
    throw call_->failure();
  }

  call* call_;
  cpu_transport* transport_;
  shm_window* window_;
  flag_wait wait_{};
  std::uint32_t must_be_done_ = 0;
  unsigned parity_ = 0;
  bool first_step_ = true;
  bool mine_ = false;
  bool queued_ = false;
};

}  // namespace cohort::transport
