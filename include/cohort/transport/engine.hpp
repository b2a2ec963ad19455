// SPDX-License-Identifier: BSL-1.0
// What moves a world on one rank: a single-threaded engine that is driven by whoever waits. It resumes
// coroutines, watches deadlines and stop requests, and spreads failures. Transports derive from it.
#pragma once

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/fork_count.hpp>
#include <cohort/detail/visitor.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/fault.hpp>
#include <cohort/transport/patience.hpp>
#include <cohort/transport/request.hpp>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace boost::asio {
class io_context;  // a name only: what needs no Asio includes none
}

namespace cohort::detail {
class inbox;
}

namespace cohort::transport {

/// Where a caller takes turns. A name for the pointer too: clang-format 14 takes one in operation.hpp for a product.
using callers_io = boost::asio::io_context*;

class engine : public std::enable_shared_from_this<engine> {
 public:
  using clock = std::chrono::steady_clock;

  engine(int rank, int size) noexcept;
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  COHORT_DECL virtual ~engine();

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] virtual std::string host() const { return {}; }
  /// The caller's io_context, in whose handlers this engine takes its turns; nullptr: whoever waits takes them.
  [[nodiscard]] callers_io callers_context() const noexcept { return callers_context_; }

  // --- who may use it: the process that made it, one thread at a time
  /// This process is a child of the one that joined the world: what it has are copies.
  [[nodiscard]] bool forked() const noexcept { return home_.left(); }
  /// The thread that is inside, whose business ends before it runs code of the user's.
  [[nodiscard]] detail::visitor& visitor() noexcept { return visitor_; }
  /// Throws `forked` or `concurrent_use` with `what` in front of the text, unless this thread may use the engine now.
  void require_use(const char* what) const;
  /// Why it may not, in words.
  [[nodiscard]] std::string misuse_text() const;

  // --- driving: by one thread at a time, the one that waits
  /// One turn: moves what can be moved without waiting, then resumes what became ready. Nothing at all in a forked
  /// process, or while another thread is inside.
  bool poll();
  /// Spins, then yields, then sleeps until `done()`.
  template <class Done>
  void drive_until(Done done);
  /// A turn of everything that must move for this rank to move; more than `poll` where ranks share a thread.
  virtual bool turn() { return poll(); }
  /// Sleeps until something happens, or until `until`.
  void sleep(clock::time_point until);
  /// How this rank waits, in blocking calls and for a moment in others.
  [[nodiscard]] patience& how_to_wait() noexcept { return patience_; }
  [[nodiscard]] clock::time_point next_deadline() const noexcept { return next_deadline_; }

  // --- resumption: nothing is resumed from inside a transport, only from the top of a turn
  void resume_later(std::coroutine_handle<> h);
  void resume_later(void (*resume)(void*), void* argument);
  /// Where other threads leave what this engine's thread is to resume.
  [[nodiscard]] const std::shared_ptr<detail::inbox>& inbox();
  /// The engine that is resuming coroutines on this thread now; null when none is.
  [[nodiscard]] static engine* resuming() noexcept { return innermost(); }
  /// Takes back every resumption with this argument: what it would resume is being destroyed.
  void forget(const void* argument) noexcept;

  // --- transfers
  /// Withdraws a request that is not complete: afterwards the transport touches neither it nor its pieces.
  virtual void withdraw(request& r) = 0;
  void complete(request& r);

  // --- failure
  /// Tells the world that something went wrong here; every rank will be told the same first cause. Gives what is
  /// known of it now, which may be an earlier one than `f`; null while a judgement is awaited.
  virtual std::shared_ptr<const fault> report(fault f, const group& where) = 0;
  /// Fails what the fault concerns, at once.
  void deliver(const std::shared_ptr<const fault>& f);
  /// The operation was dropped in flight: the others must not wait for it.
  void abandon(call& c);
  /// A message and what this rank does do not fit together.
  void report_mismatch(const group& g, std::int64_t sequence, int culprit, errc code, std::string text);

  // --- communicators
  void add(group& g);
  void remove(group& g);
  [[nodiscard]] group* find(std::uint64_t context) const noexcept;
  [[nodiscard]] std::size_t groups_alive() const noexcept { return groups_.size(); }
  /// A collective is entered: messages that came for its number must have its signature.
  virtual void entered(const call& c) = 0;
  void watch_deadline(clock::time_point t) {
    if (t < next_deadline_) {
      next_deadline_ = t;
      deadline_moved(t);
    }
  }
  /// Any thread: there is something to attend to besides messages.
  void request_attention() noexcept;
  /// Whether that is that the communicator has failed; attends to it. For calls that may end without a turn of the engine's:
  /// who never waits takes none that would.
  [[nodiscard]] bool hears_of_failure(const group& g) {
    if (!attention_.load(std::memory_order_relaxed)) return false;
    (void)attend_if_asked();
    return g.failure() != nullptr;
  }

  [[nodiscard]] detail::buffer_cache& scratch() noexcept { return scratch_; }

  /// A fault of one communicator is its own; that of a rank concerns every communicator that the rank is in.
  [[nodiscard]] static bool concerns(const fault& f, const group& g) noexcept;

 protected:
  /// As `request_attention`, where the caller wakes the engine itself.
  void attention_needed() noexcept { attention_.store(true, std::memory_order_release); }
  /// Moves messages without waiting; true if anything moved.
  virtual bool progress() = 0;
  /// Blocks until a message can move, `wake` is called, or the time has come.
  virtual void sleep_until(clock::time_point until) = 0;
  virtual void wake() noexcept = 0;
  /// Something became ready outside a turn: whoever runs this engine should soon take one.
  virtual void schedule_turn() {}
  virtual void deadline_moved(clock::time_point) {}
  /// Hands over faults that other threads judged.
  virtual void collect_faults(std::vector<std::shared_ptr<const fault>>& into) = 0;
  virtual void group_added(group&) {}
  virtual void group_removed(group&) {}
  /// No other thread rings this engine any more. First thing in the destructor of whoever implements `wake`.
  void silence() noexcept;
  /// The last communicator of this world on this rank is gone: say goodbye.
  virtual void leave() {}

  [[nodiscard]] const std::vector<group*>& groups() const noexcept { return groups_; }
  /// Whether a coroutine can go on: then a turn should end soon.
  [[nodiscard]] bool something_ready() const noexcept { return ready_head_ < ready_.size(); }
  bool run_ready();
  bool attend_if_asked();
  bool attend();
  void take_turns_in(callers_io callers) noexcept { callers_context_ = callers; }
  /// The next turn looks at the clock, also if it moves something.
  void look_at_clock() noexcept { turns_ = turns_a_clock - 1; }

 private:
  static constexpr unsigned turns_a_clock = 64;

  struct resumption {
    void (*resume)(void*);
    void* argument;
  };

  static engine*& innermost() noexcept {
    static thread_local engine* now = nullptr;
    return now;
  }
  void check_deadlines(clock::time_point now);
  [[nodiscard]] fault overdue(const call& c, clock::time_point now) const;
  void report_and_deliver(fault f, const group& where);
  void fail(group& g, const std::shared_ptr<const fault>& f);
  [[noreturn]] void refuse_use(const char* what) const;

  detail::home_process home_{};
  detail::visitor visitor_{};
  callers_io callers_context_ = nullptr;
  int rank_;
  int size_;
  std::vector<resumption> ready_{};
  std::size_t ready_head_ = 0;
  int turn_depth_ = 0;
  patience patience_{};
  bool spinning_ = false;  // the next turn follows at once
  unsigned turns_ = 0;
  std::atomic<bool> attention_{false};
  clock::time_point next_deadline_ = clock::time_point::max();
  std::vector<group*> groups_{};
  std::vector<std::shared_ptr<const fault>> unclaimed_{};  ///< of communicators that are not here
  std::unordered_map<std::uint64_t, group*> by_context_{};
  detail::buffer_cache scratch_{};
  std::shared_ptr<detail::inbox> inbox_{};
};

template <class Done>
void engine::drive_until(Done done) {
  if (!done()) require_use("wait");
  patience::wait waiting(patience_);
  while (!done()) {
    spinning_ = waiting.spins();
    const bool moved = turn();
    spinning_ = false;
    if (waiting.after(moved) != patience::next::sleep) continue;
    sleep(clock::time_point::max());
    waiting.woke();
  }
}

}  // namespace cohort::transport

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/call.hpp>
#include <cohort/transport/impl/engine.hpp>
#endif
