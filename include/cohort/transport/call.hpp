// SPDX-License-Identifier: BSL-1.0
// The record of one operation in flight and of the communicator that it belongs to. An operation's frame
// holds its call; the engine finds deadlines, stop requests and pending transfers through it. The bodies
// need the engine and come with engine.hpp.
#pragma once

#include <cohort/collective/link_costs.hpp>
#include <cohort/collective/passage.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/transport/fault.hpp>
#include <cohort/transport/request.hpp>
#include <cohort/transport/signature.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort {

namespace transport {
class engine;
class shm_window;
}  // namespace transport

namespace collective {
class host_table;
}

class call;

/// One communicator on one rank: who is in it, what was called on it, and why it failed, if it has.
class group {
 public:
  using clock = std::chrono::steady_clock;

  group(std::shared_ptr<transport::engine> engine, std::uint64_t context, std::string name, std::vector<int> members,
        int rank);
  group(const group&) = delete;
  group& operator=(const group&) = delete;
  COHORT_DECL virtual ~group();

  [[nodiscard]] transport::engine& engine() const noexcept { return *engine_; }
  [[nodiscard]] const std::shared_ptr<transport::engine>& shared_engine() const noexcept { return engine_; }
  [[nodiscard]] std::uint64_t context() const noexcept { return context_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return static_cast<int>(members_.size()); }
  [[nodiscard]] const std::vector<int>& members() const noexcept { return members_; }
  [[nodiscard]] int world_rank(int r) const noexcept { return members_[static_cast<std::size_t>(r)]; }
  [[nodiscard]] int rank_of(int world_rank) const noexcept;
  [[nodiscard]] bool is_member() const noexcept { return rank_ >= 0; }

  [[nodiscard]] const std::shared_ptr<const transport::fault>& failure() const noexcept { return failure_; }

  /// How many groups of these members, whatever their order, this rank has made of this communicator before.
  [[nodiscard]] std::uint64_t next_formation(std::uint64_t members);

  /// The number of the next collective: the order of calls is the order of numbers.
  [[nodiscard]] std::int64_t next_sequence() noexcept { return next_sequence_++; }
  /// Whether an operation on it is in flight.
  [[nodiscard]] bool busy() const noexcept { return first_active_ != nullptr; }

  std::chrono::nanoseconds default_timeout = std::chrono::minutes{5};
  collective::selection_table selection{};
  /// What `selection` was made from, if it was: the table of a group depends on its size.
  std::optional<collective::link_costs> costs{};
  /// Whether operands are combined as if no functor commuted.
  bool ordered = false;
  /// Where members are, if they are on several hosts and on some of these there are several; null otherwise.
  std::shared_ptr<const collective::host_table> hosts{};
  /// Whether all ranks of the world are on one host, and share fewer cores, or one thread.
  bool crowded = false;
  /// Whether the backend's own collectives may carry calls out.
  bool natives = true;
  /// Where all members share memory: what they carry out their collectives in. Opened by the first that uses it.
  std::shared_ptr<transport::shm_window> window{};
  /// What this rank has found of calls that the window carries out, or messages.
  collective::passage_trials passages{};

  // --- the wavefront: what heartbeats tell of this communicator; any thread may read
  void note_entered(std::int64_t sequence, const transport::signature& s) noexcept;
  void note_completed(std::int64_t sequence) noexcept;
  [[nodiscard]] transport::arrival arrival() const;

  /// The signature of a recent collective, while it is remembered.
  [[nodiscard]] std::optional<transport::signature> recent(std::int64_t sequence) const noexcept;
  [[nodiscard]] std::int64_t last_entered() const noexcept { return entered_.load(std::memory_order_relaxed); }

 private:
  friend class transport::engine;
  friend class call;

  std::shared_ptr<transport::engine> engine_;
  std::uint64_t context_;
  std::string name_;
  std::vector<int> members_;
  int rank_;
  std::shared_ptr<const transport::fault> failure_{};
  call* first_active_ = nullptr;
  std::int64_t next_sequence_ = 0;
  std::unordered_map<std::uint64_t, std::uint64_t> formed_{};

  static constexpr std::size_t remembered = 64;
  struct past_call {
    std::atomic<std::uint64_t> bits{0};
    std::atomic<std::uint64_t> count{0};
  };
  // A seqlock: `version_` is odd while the words below it change.
  std::atomic<std::uint32_t> version_{0};
  std::atomic<std::int64_t> entered_{-1};
  std::atomic<std::int64_t> completed_{-1};
  std::array<past_call, remembered> recent_{};  // number n is at n modulo remembered
};

/// One operation in flight.
class call {
 public:
  using clock = std::chrono::steady_clock;

  struct options {
    std::optional<std::chrono::nanoseconds> timeout{};
    std::stop_token stop{};
    options() = default;
  };

  /// How far it got where it was called, before there was a record of it.
  struct beginning {
    bool tried = false;            ///< as a short one, which it could not all be where it was called
    bool sent = false;             ///< its first message has left
    std::exception_ptr failure{};  ///< what its functor threw
  };

  call(std::shared_ptr<group> home, std::int64_t sequence, const transport::signature& signature, options chosen);
  call(const call&) = delete;
  call& operator=(const call&) = delete;
  ~call();

  [[nodiscard]] group& home() const noexcept { return *home_; }
  [[nodiscard]] transport::engine& engine() const noexcept { return home_->engine(); }
  [[nodiscard]] std::int64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] const transport::signature& signature() const noexcept { return signature_; }
  [[nodiscard]] clock::time_point started() const noexcept { return started_; }
  [[nodiscard]] bool finished() const noexcept { return finished_; }
  [[nodiscard]] bool is_collective() const noexcept { return sequence_ >= 0; }

  /// Any thread: the operation is to be cancelled, which fails its communicator.
  void request_stop() noexcept;

  /// From here on what the body throws is this rank's own affair: it has had its part of every message.
  void set_alone() noexcept { alone_ = true; }
  [[nodiscard]] bool alone() const noexcept { return alone_; }

  beginning begun{};

  /// What the body waits for at this moment.
  transport::transfer_set* waiting = nullptr;

  /// The error that this operation reports when its communicator has failed.
  [[nodiscard]] error failure() const;
  /// An error of this operation alone: says where it happened, and what.
  [[nodiscard]] error explained(errc code, const std::string& what) const { return explained(code, -1, what); }

  /// Called once by the body's end, whatever the end.
  void finish() noexcept;

 private:
  friend class transport::engine;

  [[nodiscard]] error explained(errc code, int culprit, const std::string& what) const;

  struct stopper {
    call* self;
    void operator()() const noexcept;
  };

  std::shared_ptr<group> home_;
  std::int64_t sequence_;
  transport::signature signature_;
  clock::time_point started_;
  clock::time_point deadline_ = clock::time_point::max();
  clock::time_point verdict_by_ = clock::time_point::max();
  bool finished_ = false;
  bool alone_ = false;
  std::atomic<bool> stop_requested_{false};
  call* previous_ = nullptr;
  call* next_ = nullptr;
  std::optional<std::stop_callback<stopper>> on_stop_{};
};

}  // namespace cohort
