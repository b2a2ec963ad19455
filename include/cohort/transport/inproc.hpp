// SPDX-License-Identifier: BSL-1.0
// Ranks inside one process: messages are copies between the ranks' buffers. The transport of run_local and of
// most tests; the ranks may share one thread, or have a thread each.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/transport/engine.hpp>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace cohort::transport {

class inproc_endpoint;
class matcher;

/// What the ranks of one in-process world share. Lock order: only `mutex_`, never held while user code runs.
class inproc_hub {
 public:
  enum class threading : bool {
    one_thread,       ///< every rank is a coroutine of one thread: whoever waits moves all of them
    thread_per_rank,  ///< every rank is moved by its own thread
  };

  inproc_hub(int size, threading t);
  inproc_hub(const inproc_hub&) = delete;
  inproc_hub& operator=(const inproc_hub&) = delete;
  ~inproc_hub();

  [[nodiscard]] int size() const noexcept { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] bool cooperative() const noexcept { return threading_ == threading::one_thread; }

 private:
  friend class inproc_endpoint;

  // Everything below: with mutex_ held.
  std::shared_ptr<const fault> judge(fault f, const std::vector<int>& members);
  void judge_departed();
  void judge_departed_on(std::uint64_t context);
  [[nodiscard]] std::optional<fault> judge_unformed(std::size_t rank, const group& g) const;
  void judge_departure_of(int rank, std::uint64_t context);
  void judge_receives(std::size_t waiting, const group& g, int gone);
  void spread(fault f);
  void note_retired(int rank, const group& g);
  void forget(std::uint64_t context);
  void refresh_standings(std::uint64_t context);
  [[nodiscard]] bool is_away(int rank, std::uint64_t context) const;
  [[nodiscard]] bool others_away(const group& g) const;
  [[nodiscard]] std::string away_text(int rank, const group& g) const;

  threading threading_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  std::vector<inproc_endpoint*> ranks_;
  // Here, not in the endpoints: a message may come before its rank does.
  std::vector<std::unique_ptr<matcher>> matchers_{};
  detail::buffer_cache payloads_{};
  std::vector<standing> standings_{};
  std::vector<std::unordered_map<std::uint64_t, group*>> groups_{};  // of each rank, by their contexts
  std::unordered_map<std::uint64_t, std::shared_ptr<const fault>> verdicts_{};
  // What the first rank to come called under each number of each communicator: the others are held against it.
  struct first_call {
    std::int64_t sequence = -1;
    signature call{};
    int rank = -1;
  };
  std::unordered_map<std::uint64_t, std::array<first_call, 64>> called_{};
  std::unordered_set<std::uint64_t> retiring_{};  // communicators that members have destroyed, but not all of them
  bool somebody_left_ = false;
};

class inproc_endpoint final : public engine {
 public:
  /// A copy of this many bytes is cheaper than making the sender wait for its receiver.
  static constexpr std::size_t eager_limit = std::size_t{64} << 10;

  inproc_endpoint(std::shared_ptr<inproc_hub> hub, int rank);
  COHORT_DECL ~inproc_endpoint() override;

  void start(request& r);

  COHORT_DECL void withdraw(request& r) override;
  COHORT_DECL std::shared_ptr<const fault> report(fault f, const group& where) override;
  COHORT_DECL void entered(const call& c) override;
  COHORT_DECL bool turn() override;

 protected:
  COHORT_DECL bool progress() override;
  COHORT_DECL void sleep_until(clock::time_point until) override;
  COHORT_DECL void wake() noexcept override;
  COHORT_DECL void collect_faults(std::vector<std::shared_ptr<const fault>>& into) override;
  COHORT_DECL void group_added(group& g) override;
  COHORT_DECL void group_removed(group& g) override;
  COHORT_DECL void leave() override;

 private:
  friend class inproc_hub;

  [[nodiscard]] std::size_t index() const noexcept { return static_cast<std::size_t>(rank()); }
  [[nodiscard]] matcher& mine() const noexcept { return *hub_->matchers_[index()]; }
  void start_send(request& send);
  void start_receive(request& receive);
  void start_probe(request& probe);
  void start_posted(request& receive, std::unique_lock<std::mutex>& lock);
  // With the hub's mutex held: completes a request of another rank, on that rank's next turn.
  void complete_remotely(request& r);
  struct refusal {
    int culprit;
    errc code;
    std::string text;
    const group* where;
    std::int64_t sequence;
  };
  void refuse(const refusal& r);

  std::shared_ptr<inproc_hub> hub_;
  // Below: with the hub's mutex held, unless atomic.
  request_list finished_{};
  std::vector<std::shared_ptr<const fault>> faults_{};
  std::atomic<bool> mail_{false};
  bool woken_ = false;
};

}  // namespace cohort::transport

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/inproc.hpp>
#endif
