// SPDX-License-Identifier: BSL-1.0
// What is dropped on one communicator harms no other: messages and collectives of random lengths on a duplicate, given up at random
// moments by each rank, their buffers freed at once; then the first communicator carries a message and a sum.
#pragma once

#include <cohort/cohort.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace harness {

struct drop_plan {
  unsigned seed = 1;
  int turns = 40;
  bool collectives = true;
};

template <class World>
class random_drops {
 public:
  random_drops(World& world, const drop_plan& plan, int turn)
      : world_(&world),
        common_(plan.seed * 7919 + static_cast<unsigned>(turn)),
        own_(plan.seed * 104729 + static_cast<unsigned>(turn * 31 + world.rank())),
        kinds_(plan.collectives ? messages + collectives : messages),
        turn_(turn) {}

  cohort::task<> run() {
    auto making = world_->duplicate();
    std::optional<World> copy(co_await making);
    begin(*copy);
    const auto polls = own_() % 3 == 0 ? own_() % 200 : own_() % 8;
    for (unsigned i = 0; i < polls; ++i) world_->poll();
    // Where all ranks have begun the same, what one waits for comes, or fails.
    if (agree_ && own_() % 2 == 0 && !sends_.empty()) {
      auto outcome = cohort::as_result(std::move(sends_.front()));
      (void)co_await outcome;
      sends_.erase(sends_.begin());
    }
    while (!sends_.empty() || !receives_.empty()) {
      if (receives_.empty() || (!sends_.empty() && own_() % 2 == 0)) drop_one(sends_);
      else drop_one(receives_);
      if (own_() % 4 == 0) world_->poll();
    }
    for (auto& each : buffers_) std::vector<int>(each.size(), -7).swap(each);
    copy.reset();
    auto checking = go_on();
    co_await checking;
  }

 private:
  using generator = std::mt19937;
  // Half of the calls are messages, or all of them.
  static constexpr unsigned messages = 5;
  static constexpr unsigned collectives = 5;

  std::size_t length() {
    // About where messages begin to be sent otherwise.
    static constexpr std::size_t lengths[] = {0,    1,     10,    900,   1020,  4000,  5100,
                                              9000, 16384, 20000, 33000, 70000, 300000};
    return lengths[common_() % std::size(lengths)];
  }
  std::vector<int>& buffer(std::size_t n) { return buffers_.emplace_back(n, turn_); }

  void begin(World& copy) {
    const auto ranks = static_cast<unsigned>(copy.size());
    const int calls = static_cast<int>(common_() % 12) + 1;
    agree_ = common_() % 3 != 0;
    for (int i = 0; i < calls; ++i) {
      const auto kind = common_() % kinds_;
      const std::size_t n = length();
      const auto first = static_cast<int>(common_() % ranks);
      const auto second = static_cast<int>(common_() % ranks);
      const auto label = static_cast<int>(common_() % 2);
      const auto in_a_row = 1 + common_() % 4;
      if (!agree_ && own_() % 4 == 0) continue;
      if (kind >= messages) {
        begin_collective(copy, kind - messages, n, first);
      } else if (first != second) {
        for (auto k = in_a_row; k > 0; --k) begin_message(copy, n, first, second, cohort::tag{label});
      }
      if (own_() % 3 == 0) world_->poll();
    }
  }
  void begin_message(World& copy, std::size_t n, int sender, int receiver, cohort::tag label) {
    if (copy.rank() == sender) sends_.push_back(copy.send(buffer(n), cohort::to{receiver}, label));
    if (copy.rank() == receiver) receives_.push_back(copy.recv(buffer(n), cohort::from{sender}, label));
  }
  void begin_collective(World& copy, std::uint_fast32_t kind, std::size_t n, int root) {
    const std::size_t whole = n * static_cast<std::size_t>(copy.size());
    if (kind == 0) return sends_.push_back(copy.barrier());
    if (kind == 1) return sends_.push_back(copy.all_reduce(buffer(n), cohort::sum{}));
    if (kind == 2) return sends_.push_back(copy.broadcast(buffer(n), cohort::root{root}));
    if (kind == 3) return sends_.push_back(copy.all_gather(buffer(n), buffer(whole)));
    sends_.push_back(copy.all_to_all(buffer(whole), buffer(whole)));
  }
  template <class Operations>
  void drop_one(Operations& all) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(own_() % all.size()));
  }

  cohort::task<> go_on() {
    const int ranks = world_->size();
    const int next = (world_->rank() + 1) % ranks;
    const int before = (world_->rank() + ranks - 1) % ranks;
    const std::size_t n = length();
    if (ranks > 1) {
      std::vector<int> mine(n, world_->rank());
      std::vector<int> theirs(n, -1);
      auto op = world_->exchange(mine, cohort::to{next}, theirs, cohort::from{before});
      co_await op;
      if (theirs != std::vector<int>(n, before))
        throw std::runtime_error("wrong message after turn " + std::to_string(turn_));
    }
    std::vector<int> ones(length(), 1);
    auto op = world_->all_reduce(ones, cohort::sum{});
    co_await op;
    if (ones != std::vector<int>(ones.size(), ranks))
      throw std::runtime_error("wrong sum after turn " + std::to_string(turn_));
  }

  World* world_;
  generator common_;  ///< draws the same on every rank
  generator own_;
  std::uint_fast32_t kinds_;
  int turn_;
  bool agree_ = true;
  std::deque<std::vector<int>> buffers_{};
  std::vector<cohort::operation<>> sends_{};  ///< and collectives
  std::vector<cohort::operation<cohort::received>> receives_{};
};

template <class World>
cohort::task<> drop_at_random(World world, drop_plan plan) {
  for (int turn = 0; turn < plan.turns; ++turn) {
    random_drops<World> drops(world, plan, turn);
    auto all = drops.run();
    co_await all;
  }
}

}  // namespace harness
