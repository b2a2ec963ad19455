// SPDX-License-Identifier: BSL-1.0
// The ranks of this host that share memory with this one: who they are, how to hand them memory, and how to wake them.
// Owned by the transport of backend cpu; windows and links are made of what it brings.
#pragma once

#include <cohort/transport/core_use.hpp>
#include <cohort/transport/shm/host_address.hpp>
#include <cohort/transport/shm/mail.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <linux/membarrier.h>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

/// What one process shows all others of its host from the beginning.
struct host_desk {
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t for_anything = 1;
  /// It waits for one word in a window, of this rank of the world.
  [[nodiscard]] static constexpr std::uint32_t for_window_of(int rank) noexcept {
    return 2 + static_cast<std::uint32_t>(rank);
  }
  /// Not `awake`: it waits in the kernel, and whoever writes what it may wait for rings.
  alignas(128) std::atomic<std::uint32_t> asleep{awake};
  alignas(128) core_use use{};
};

class neighbours {
 public:
  using clock = std::chrono::steady_clock;

  /// Errors: io_error, out_of_memory
  neighbours(int rank, int size, host_address mine)
      : rank_(rank), mine_(std::move(mine)), mail_(mine_.mail, mine_.word) {
    others_.resize(static_cast<std::size_t>(size));
    memory_ = shared_segment::create(sizeof(host_desk));
    desk_ = ::new (memory_.data()) host_desk;
    // Where the kernel orders the two sides on demand, whoever writes a flag needs no fence.
    fenced_by_kernel_ = ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] const host_address& address() const noexcept { return mine_; }
  [[nodiscard]] int descriptor() const noexcept { return mail_.descriptor(); }

  /// Hands this rank's desk to those of its host and waits for theirs, and until they can have its own: whoever goes on before may
  /// do something else than look for room. Who does not send one is no neighbour.
  ///
  /// Result: the ranks whose memory this one can see, itself among them
  [[nodiscard]] std::vector<int> meet(std::vector<host_address> all, clock::time_point until) {
    std::size_t expected = 0;
    for (std::size_t r = 0; r < others_.size(); ++r) {
      others_[r].address = std::move(all[r]);
      others_[r].here = others_[r].address.host == mine_.host && !others_[r].address.mail.empty();
      if (!others_[r].here || static_cast<int>(r) == rank_) continue;
      ++expected;
      try {
        send(static_cast<int>(r), letter_kind::desk, 0, 0, memory_);
      } catch (const error&) {
        continue;  // it will not have this rank's desk, and says so in its list
      }
    }
    memory_.close_descriptor();
    while ((expected > 0 || mail_.has_waiting()) && clock::now() < until) {
      mail_.flush();
      std::optional<received_letter> got = mail_.receive();
      if (!got) {
        pollfd mail{mail_.descriptor(), POLLIN, 0};
        ::poll(&mail, 1, 1);
        continue;
      }
      if (got->text.kind != letter_kind::desk || !valid(got->text.from)) {
        held_.push_back(std::move(*got));
        continue;
      }
      other& o = others_[static_cast<std::size_t>(got->text.from)];
      if (o.desk != nullptr) continue;
      try {
        o.memory = shared_segment::adopt(std::move(got->enclosed), sizeof(host_desk));
        o.desk = reinterpret_cast<host_desk*>(o.memory.data());
      } catch (const error&) {
        o.here = false;
      }
      --expected;
    }
    std::vector<int> seen;
    for (std::size_t r = 0; r < others_.size(); ++r) {
      if (static_cast<int>(r) == rank_ || others_[r].desk != nullptr) seen.push_back(static_cast<int>(r));
    }
    return seen;
  }

  /// What every rank of this host sees, in the order of the ranks; of ranks elsewhere nothing.
  ///
  /// Order: after `meet`; two ranks share memory when each sees the other, which both conclude from the same lists
  void agree(const std::vector<std::vector<int>>& seen_by) {
    sees_ = seen_by;
    for (std::vector<int>& list : sees_) std::sort(list.begin(), list.end());
  }

  [[nodiscard]] bool shares(int a, int b) const {
    const auto sees = [this](int x, int y) {
      const std::vector<int>& list = sees_[static_cast<std::size_t>(x)];
      return std::binary_search(list.begin(), list.end(), y);
    };
    return !sees_.empty() && (a == b || (sees(a, b) && sees(b, a)));
  }
  /// Whether each of these ranks shares memory with each other of them.
  [[nodiscard]] bool all_share(const std::vector<int>& ranks) const {
    if (sees_.empty()) return false;
    for (const int r : ranks) {
      if (!shares(rank_, r)) return false;
    }
    for (const int a : ranks) {
      for (const int b : ranks) {
        if (a < b && !shares(a, b)) return false;
      }
    }
    return true;
  }
  /// The other ranks with which this one shares memory.
  [[nodiscard]] std::vector<int> sharing() const {
    std::vector<int> ranks;
    for (int r = 0; r < static_cast<int>(others_.size()); ++r) {
      if (r != rank_ && shares(rank_, r)) ranks.push_back(r);
    }
    return ranks;
  }

  /// When a rank that shares memory with this one works, and when this one does.
  [[nodiscard]] const core_use& use_of(int r) const noexcept { return others_[static_cast<std::size_t>(r)].desk->use; }
  [[nodiscard]] core_use& own_use() noexcept { return desk_->use; }

  // --- letters
  /// Sends at once, or when `collect` finds room for it.
  void send(int to, letter_kind kind, std::uint64_t context, std::uint64_t number, const shared_segment& memory) {
    letter text = letter_to(to, kind);
    text.context = context;
    text.number = number;
    text.bytes = memory.size();
    send(text, to, memory.fd());
  }
  void send(int to, letter_kind kind, std::uint64_t context, std::uint64_t number) {
    letter text = letter_to(to, kind);
    text.context = context;
    text.number = number;
    send(text, to, -1);
  }
  /// Calls `then` whenever a letter has been left waiting: nothing tells that there is room in somebody's mailbox, so
  /// whoever sleeps must wake up and see.
  void when_full(std::function<void()> then) { when_full_ = std::move(then); }
  /// Reads what has come; letters are kept until they are taken.
  bool collect() {
    if (mail_.has_waiting()) {
      const std::size_t before = mail_.waiting();
      mail_.flush();
      if (mail_.waiting() < before) departures_.fetch_add(1, std::memory_order_relaxed);
    }
    bool any = false;
    while (std::optional<received_letter> got = mail_.receive()) {
      any = true;
      arrivals_.fetch_add(1, std::memory_order_relaxed);
      if (got->text.kind == letter_kind::bell || !valid(got->text.from)) continue;
      if (got->text.kind != letter_kind::buffer_gone || !drop_buffer(got->text)) held_.push_back(std::move(*got));
    }
    return any;
  }
  /// The first letter that `wanted(letter)` says yes to.
  template <class Wanted>
  [[nodiscard]] std::optional<received_letter> take(Wanted wanted) {
    for (auto at = held_.begin(); at != held_.end(); ++at) {
      if (!wanted(at->text)) continue;
      std::optional<received_letter> got(std::move(*at));
      held_.erase(at);
      return got;
    }
    return std::nullopt;
  }
  /// Whether a letter waits for room, to anybody or to rank r, and how many do.
  [[nodiscard]] bool has_waiting() const noexcept { return mail_.has_waiting(); }
  [[nodiscard]] bool has_waiting(int r) const noexcept {
    return mail_.has_waiting(others_[static_cast<std::size_t>(r)].address.mail);
  }
  [[nodiscard]] std::size_t waiting() const noexcept { return mail_.waiting(); }
  /// Changes when one that has waited leaves.
  [[nodiscard]] const std::atomic<std::uint32_t>& departures() const noexcept { return departures_; }
  /// Counts the letters that came.
  [[nodiscard]] const std::atomic<std::uint32_t>& arrivals() const noexcept { return arrivals_; }
  /// Letters for a communicator that is gone.
  void forget(std::uint64_t context) {
    held_.remove_if([context](const received_letter& l) {
      return l.text.context == context && (l.text.kind == letter_kind::window || l.text.kind == letter_kind::refusal);
    });
  }

  // --- sleep
  /// About to wait in the kernel: from here on writers ring. What they wrote before is seen by looking once more.
  void fall_asleep(std::uint32_t waits_for = host_desk::for_anything) noexcept {
    desk_->asleep.store(waits_for, std::memory_order_relaxed);
    look_anew();
  }
  /// Orders what this rank has written before what it looks at next, against ranks that do it the other way round.
  void look_anew() const noexcept {
    if (fenced_by_kernel_) ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  /// Nobody polls here: whoever makes room, or writes, rings.
  [[nodiscard]] bool sleeps() const noexcept {
    return desk_->asleep.load(std::memory_order_relaxed) != host_desk::awake;
  }
  void wake_up() noexcept { desk_->asleep.store(host_desk::awake, std::memory_order_relaxed); }

  /// After flags were written for others: orders the write before the look at who sleeps.
  void written() const noexcept {
    if (fenced_by_kernel_) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_seq_cst);
    }
  }
  [[nodiscard]] const std::atomic<std::uint32_t>& asleep(int r) const noexcept {
    return others_[static_cast<std::size_t>(r)].desk->asleep;
  }
  [[gnu::noinline]] void ring(int r) noexcept {  // not in the way of those who need not
    mail_.ring(others_[static_cast<std::size_t>(r)].address.mail, letter_to(r, letter_kind::bell));
  }

 private:
  struct other {
    host_address address{};
    shared_segment memory{};
    host_desk* desk = nullptr;
    bool here = false;
  };

  /// A buffer is gone that nobody has asked for here: its letter holds all of its memory. False: there is none.
  bool drop_buffer(const letter& gone) noexcept {
    return held_.remove_if([&gone](const received_letter& l) {
      return l.text.kind == letter_kind::buffer && l.text.from == gone.from && l.text.number == gone.number;
    }) > 0;
  }
  [[nodiscard]] bool valid(int r) const noexcept {
    return r >= 0 && r < static_cast<int>(others_.size()) && r != rank_ && others_[static_cast<std::size_t>(r)].here;
  }
  void send(const letter& text, int to, int enclosed) {
    mail_.send(others_[static_cast<std::size_t>(to)].address.mail, text, enclosed);
    if (mail_.has_waiting() && when_full_) when_full_();
  }
  [[nodiscard]] letter letter_to(int to, letter_kind kind) const noexcept {
    letter text;
    text.kind = kind;
    text.from = rank_;
    text.word = others_[static_cast<std::size_t>(to)].address.word;
    return text;
  }

  int rank_;
  host_address mine_;
  host_mail mail_;
  std::function<void()> when_full_{};
  shared_segment memory_{};
  host_desk* desk_ = nullptr;
  std::vector<other> others_{};
  std::vector<std::vector<int>> sees_{};
  std::list<received_letter> held_{};
  std::atomic<std::uint32_t> arrivals_{0};
  std::atomic<std::uint32_t> departures_{0};
  bool fenced_by_kernel_ = false;
};

}  // namespace cohort::transport
