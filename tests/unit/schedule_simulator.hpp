// SPDX-License-Identifier: BSL-1.0
// Runs a schedule on P ranks in memory, with symbols for data: every block holds a term that says which operands of
// which ranks it was combined from, and how. Strict where an executor may be lenient, so that what passes here is
// right on every transport: a send waits for its receive, and no rank begins a round before its last one is complete.
#pragma once

#include "../support/sanitizer.hpp"

#include <cohort/collective/schedule.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace simulation {

using cohort::collective::buffer;
using cohort::collective::region;
using cohort::collective::schedule;
using cohort::collective::side;

inline constexpr int undefined = -1;

/// Terms are numbers: two terms are equal if and only if they are the same operands in the same grouping.
class terms {
 public:
  terms(int ranks, int blocks) : blocks_(blocks), leaves_(ranks * blocks) {}

  [[nodiscard]] int leaf(int rank, int block) const { return rank * blocks_ + block; }
  [[nodiscard]] int combine(int left, int right) {
    const auto key = static_cast<std::uint64_t>(left) << 32 | static_cast<std::uint64_t>(right);
    const auto [place, added] = known_.try_emplace(key, leaves_ + static_cast<int>(nodes_.size()));
    if (added) nodes_.emplace_back(left, right);
    return place->second;
  }
  /// "" if the term is the given block of ranks first .. last, each once; in that order if `ordered`.
  [[nodiscard]] std::string why_not_all(int term, int block, int first, int last, bool ordered) const {
    if (term == undefined) return "undefined";
    std::vector<int> ranks;
    std::vector<int> open{term};
    while (!open.empty()) {
      const int top = open.back();
      open.pop_back();
      if (top >= leaves_) {
        const auto [left, right] = nodes_[static_cast<std::size_t>(top - leaves_)];
        open.push_back(right);
        open.push_back(left);
      } else {
        if (top % blocks_ != block) return "operand of block " + std::to_string(top % blocks_);
        ranks.push_back(top / blocks_);
      }
    }
    if (!ordered) std::sort(ranks.begin(), ranks.end());
    if (static_cast<int>(ranks.size()) != last - first + 1) return std::to_string(ranks.size()) + " operands";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] != first + static_cast<int>(i)) return "operand of rank " + std::to_string(ranks[i]);
    }
    return "";
  }
  /// The ranks of the operands in their grouping: "((0 1) 2)".
  [[nodiscard]] std::string text(int term) const {
    if (term == undefined) return "undefined";
    if (term < leaves_) return std::to_string(term / blocks_);
    const auto [left, right] = nodes_[static_cast<std::size_t>(term - leaves_)];
    return "(" + text(left) + " " + text(right) + ")";
  }

 private:
  int blocks_;
  int leaves_;
  std::vector<std::pair<int, int>> nodes_;
  std::unordered_map<std::uint64_t, int> known_;
};

/// What the schedules of a run said, added up for each rank.
struct traffic {
  int messages_sent = 0;
  int blocks_sent = 0;
  int blocks_received = 0;
  int blocks_combined = 0;
  int blocks_copied = 0;
  int most_messages_in_a_round = 0;
};

/// The sink: writes down what a rank does in a round.
struct recorder {
  enum class verb { send, receive, receive_reduce, copy, reduce };
  struct action {
    verb what;
    int peer;
    region from;
    region to;
    side where = side::left;
    std::vector<int> payload{};
  };
  std::vector<action> actions{};

  void send(int peer, region r) { actions.push_back({verb::send, peer, r, {}}); }
  void receive(int peer, region r) { actions.push_back({verb::receive, peer, {}, r}); }
  void receive_reduce(int peer, region r, side s) { actions.push_back({verb::receive_reduce, peer, {}, r, s}); }
  void copy(region from, region to) { actions.push_back({verb::copy, -1, from, to}); }
  void reduce(region from, region into, side s) { actions.push_back({verb::reduce, -1, from, into, s}); }
};

/// A number for the size of a block, so that blocks of different sizes cannot be mixed up.
using size_of_block = std::function<int(int rank, buffer where, int block)>;

class world {
 public:
  /// `in_blocks` and `out_blocks` on every rank. By default all blocks are of one size.
  world(int size, int in_blocks, int out_blocks, size_of_block sizes = {})
      : terms_(size, std::max({in_blocks, out_blocks, 1})), sizes_(std::move(sizes)), ranks_(at_(size)) {
    for (auto& r : ranks_) {
      r.buffers[0].assign(at_(in_blocks), undefined);
      r.buffers[1].assign(at_(out_blocks), undefined);
      r.heard.resize(at_(size));
    }
    for (int r = 0; r < size; ++r) ranks_[at_(r)].heard[at_(r)] = true;
  }

  [[nodiscard]] int size() const { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int get(int rank, buffer where, int block) const {
    return ranks_[at_(rank)].buffers[static_cast<std::size_t>(where)][at_(block)];
  }
  [[nodiscard]] const std::vector<int>& all(int rank, buffer where) const {
    return ranks_[at_(rank)].buffers[static_cast<std::size_t>(where)];
  }
  void set(int rank, buffer where, int block, int term) { blocks_of_(rank, where)[at_(block)] = term; }
  /// Every block of the buffer becomes the rank's own operand.
  void fill(int rank, buffer where) {
    for (int b = 0; b < static_cast<int>(all(rank, where).size()); ++b) set(rank, where, b, leaf(rank, b));
  }
  void fill(buffer where) {
    for (int r = 0; r < size(); ++r) fill(r, where);
  }
  [[nodiscard]] int leaf(int rank, int block) const { return terms_.leaf(rank, block); }
  [[nodiscard]] const terms& all_terms() const { return terms_; }
  [[nodiscard]] const traffic& of(int rank) const { return ranks_[at_(rank)].done; }
  [[nodiscard]] bool has_heard(int rank, int of) const { return ranks_[at_(rank)].heard[at_(of)]; }
  [[nodiscard]] int rounds() const { return rounds_; }

  /// Carries out make(rank) on every rank. Returns the first mistake that it finds, or "".
  template <class Make>
  [[nodiscard]] std::string run(Make make) {
    using plan = decltype(make(0));
    static_assert(schedule<plan>);
    std::vector<plan> plans;
    for (int r = 0; r < size(); ++r) {
      plans.push_back(make(r));
      if (plans.back().rounds() != plans.front().rounds()) return name_(r) + "has another number of rounds";
      if (plans.back().blocks() != plans.front().blocks()) return name_(r) + "has another number of blocks";
      ranks_[at_(r)].buffers[2].assign(at_(plans.back().work_blocks()), undefined);
    }
    rounds_ = plans.front().rounds();
    std::deque<int> ready;
    for (int r = 0; r < size() && rounds_ > 0; ++r) ready.push_back(r);
    while (!ready.empty() && problem_.empty()) {
      const int r = ready.front();
      ready.pop_front();
      recorder now;
      plans[at_(r)].round(ranks_[at_(r)].round, now);
      begin_round_(r, std::move(now.actions), ready);
    }
    if (!problem_.empty()) return problem_;
    for (int r = 0; r < size(); ++r) {
      if (ranks_[at_(r)].round != rounds_) return name_(r) + "waits for ever in round " + number_(ranks_[at_(r)].round);
    }
    return "";
  }

 private:
  using verb = recorder::verb;
  struct transfer {
    int rank;
    std::size_t action;
  };
  struct channel {
    std::deque<transfer> sends;
    std::deque<transfer> receives;
  };
  struct rank_state {
    std::array<std::vector<int>, 3> buffers{};
    std::vector<recorder::action> actions{};
    std::vector<bool> heard{};
    std::vector<int> news{};
    int round = 0;
    int pending = 0;
    traffic done{};
  };

  static std::size_t at_(int i) { return static_cast<std::size_t>(i); }
  static std::string number_(int i) { return std::to_string(i); }
  static std::string name_(int r) { return "rank " + number_(r) + " of the schedule "; }
  [[nodiscard]] std::vector<int>& blocks_of_(int rank, buffer where) {
    return ranks_[at_(rank)].buffers[static_cast<std::size_t>(where)];
  }
  void fail_(int r, const std::string& what) {
    if (problem_.empty()) problem_ = name_(r) + what + " in round " + number_(ranks_[at_(r)].round);
  }
  /// Block `i` of a region as an index into its buffer.
  [[nodiscard]] std::size_t place_(int rank, region where, int i) {
    return (at_(where.first) + at_(i)) % blocks_of_(rank, where.where).size();
  }
  [[nodiscard]] bool exists_(int rank, region r) {
    const int blocks = static_cast<int>(blocks_of_(rank, r.where).size());
    return r.count == 0 ? r.first == 0 : r.first >= 0 && r.first < blocks && r.count > 0 && r.count <= blocks;
  }
  [[nodiscard]] int size_of_(int rank, region r, int i) {
    return sizes_ ? sizes_(rank, r.where, static_cast<int>(place_(rank, r, i))) : 0;
  }
  [[nodiscard]] std::vector<int> read_(int rank, region from) {
    std::vector<int> values;
    for (int i = 0; i < from.count; ++i) {
      values.push_back(blocks_of_(rank, from.where)[place_(rank, from, i)]);
      if (values.back() == undefined) fail_(rank, "reads a block that was never written");
    }
    return values;
  }
  void write_(int rank, const recorder::action& a) {
    for (int i = 0; i < a.to.count; ++i) {
      int& block = blocks_of_(rank, a.to.where)[place_(rank, a.to, i)];
      const int arrived = a.payload[at_(i)];
      if (a.what == verb::copy || a.what == verb::receive) {
        block = arrived;
      } else if (block == undefined) {
        return fail_(rank, "combines into a block that was never written");
      } else {
        block = a.where == side::left ? terms_.combine(arrived, block) : terms_.combine(block, arrived);
        ++ranks_[at_(rank)].done.blocks_combined;
      }
    }
  }
  void check_same_blocks_(int from_rank, region from, int to_rank, region to) {
    if (from.count != to.count) {
      return fail_(to_rank, "gets " + number_(from.count) + " blocks for " + number_(to.count));
    }
    for (int i = 0; i < from.count; ++i) {
      if (size_of_(from_rank, from, i) != size_of_(to_rank, to, i)) return fail_(to_rank, "mixes up block sizes");
    }
  }

  void begin_round_(int r, std::vector<recorder::action> actions, std::deque<int>& ready) {
    rank_state& me = ranks_[at_(r)];
    me.actions = std::move(actions);
    check_round_(r);
    if (!problem_.empty()) return;
    int transfers = 0;
    for (auto& a : me.actions) {
      if (a.what == verb::copy || a.what == verb::reduce) {
        if (transfers > 0) return fail_(r, "acts locally after a transfer");
        check_same_blocks_(r, a.from, r, a.to);
        a.payload = read_(r, a.from);
        if (!problem_.empty()) return;
        write_(r, a);
        if (a.what == verb::copy) me.done.blocks_copied += a.to.count;
      } else {
        ++transfers;
        if (a.what == verb::send) a.payload = read_(r, a.from);
      }
    }
    if (!problem_.empty()) return;
    me.pending = transfers;
    me.done.most_messages_in_a_round = std::max(me.done.most_messages_in_a_round, transfers);
    me.news.clear();
    if (transfers == 0) return end_round_(r, ready);
    for (std::size_t i = 0; i < me.actions.size() && problem_.empty(); ++i) {
      const auto& a = me.actions[i];
      if (a.what == verb::copy || a.what == verb::reduce) continue;
      const bool sends = a.what == verb::send;
      channel& c = channels_[static_cast<std::uint64_t>(sends ? r : a.peer) << 32 |
                             static_cast<std::uint64_t>(sends ? a.peer : r)];
      (sends ? c.sends : c.receives).push_back({r, i});
      if (!c.sends.empty() && !c.receives.empty()) match_(c, ready);
    }
  }

  void match_(channel& c, std::deque<int>& ready) {
    const transfer source = c.sends.front();
    const transfer target = c.receives.front();
    c.sends.pop_front();
    c.receives.pop_front();
    rank_state& sender = ranks_[at_(source.rank)];
    rank_state& receiver = ranks_[at_(target.rank)];
    recorder::action& sent = sender.actions[source.action];
    recorder::action& wanted = receiver.actions[target.action];
    check_same_blocks_(source.rank, sent.from, target.rank, wanted.to);
    if (!problem_.empty()) return;
    wanted.payload = std::move(sent.payload);
    // An empty message says who its sender had heard of when its round began; `heard` changes only when a round ends.
    for (int i = 0; i < size() && wanted.to.count == 0; ++i) {
      if (sender.heard[at_(i)]) receiver.news.push_back(i);
    }
    ++sender.done.messages_sent;
    sender.done.blocks_sent += sent.from.count;
    receiver.done.blocks_received += wanted.to.count;
    if (--sender.pending == 0) end_round_(source.rank, ready);
    if (--receiver.pending == 0) end_round_(target.rank, ready);
  }

  void end_round_(int r, std::deque<int>& ready) {
    rank_state& me = ranks_[at_(r)];
    for (const auto& a : me.actions) {
      if (a.what == verb::receive) write_(r, a);
    }
    for (const auto& a : me.actions) {
      if (a.what == verb::receive_reduce) write_(r, a);
    }
    for (const int other : me.news) me.heard[at_(other)] = true;
    if (++me.round < rounds_) ready.push_back(r);
  }

  /// What can be said of a round without running it.
  void check_round_(int r) {
    std::array<std::vector<char>, 3> sent{};
    std::array<std::vector<char>, 3> received{};
    const auto mark = [&](std::array<std::vector<char>, 3>& marks, region where) {
      auto& m = marks[static_cast<std::size_t>(where.where)];
      m.resize(blocks_of_(r, where.where).size());
      for (int i = 0; i < where.count; ++i) m[place_(r, where, i)] = 1;
    };
    const auto marked = [&](const std::array<std::vector<char>, 3>& marks, region where) {
      const auto& m = marks[static_cast<std::size_t>(where.where)];
      for (int i = 0; i < where.count && !m.empty(); ++i) {
        if (m[place_(r, where, i)] != 0) return true;
      }
      return false;
    };
    for (const auto& a : ranks_[at_(r)].actions) {
      const bool transfers = a.what != verb::copy && a.what != verb::reduce;
      if (transfers && (a.peer < 0 || a.peer >= size())) return fail_(r, "names rank " + number_(a.peer));
      if (transfers && a.peer == r) return fail_(r, "sends to itself");
      const bool reads = a.what == verb::send || !transfers;
      if (reads && !exists_(r, a.from)) return fail_(r, "reads blocks that do not exist");
      if (a.what != verb::send && !exists_(r, a.to)) return fail_(r, "writes blocks that do not exist");
      if (a.what != verb::send && a.to.where == buffer::in && a.to.count > 0) return fail_(r, "writes to its input");
      if (a.what == verb::send) mark(sent, a.from);
    }
    for (const auto& a : ranks_[at_(r)].actions) {
      if (a.what != verb::receive) continue;
      if (marked(sent, a.to)) return fail_(r, "receives over what it sends");
      if (marked(received, a.to)) return fail_(r, "receives twice into one block");
      mark(received, a.to);
    }
    for (const auto& a : ranks_[at_(r)].actions) {
      if (a.what == verb::receive_reduce && marked(received, a.to)) return fail_(r, "combines with a block in flight");
    }
  }

  terms terms_;
  size_of_block sizes_;
  std::vector<rank_state> ranks_;
  std::unordered_map<std::uint64_t, channel> channels_;
  std::string problem_;
  int rounds_ = 0;
};

/// "" if `run` found nothing and every block of `where` on rank `r` is `expected(block)`.
template <class Expected>
[[nodiscard]] std::string why_not(const world& w, int r, buffer where, Expected expected) {
  for (int b = 0; b < static_cast<int>(w.all(r, where).size()); ++b) {
    if (w.get(r, where, b) != expected(b)) return "rank " + std::to_string(r) + ", block " + std::to_string(b);
  }
  return "";
}

/// Every size up to 64, and some around powers of two and primes beyond. Under a sanitizer, which makes this twenty
/// times as long and looks for something else, every size up to 17 and one beyond.
[[nodiscard]] inline std::vector<int> sizes_to_try() {
  std::vector<int> sizes;
#if COHORT_TEST_SANITIZED
  for (int p = 1; p <= 17; ++p) sizes.push_back(p);
  sizes.push_back(33);
#else
  for (int p = 1; p <= 64; ++p) sizes.push_back(p);
  sizes.insert(sizes.end(), {100, 127, 128, 129, 255, 257, 509});
#endif
  return sizes;
}

/// Every root up to 64 ranks, and the ends, the middle and one more beyond.
[[nodiscard]] inline std::vector<int> roots_to_try(int size) {
  std::vector<int> roots;
  for (int r = 0; r < size && size <= 64; ++r) roots.push_back(r);
  if (size > 64) roots = {0, 1, size / 2, size - 1};
  return roots;
}

}  // namespace simulation
