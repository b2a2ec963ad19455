// SPDX-License-Identifier: BSL-1.0
// Whether a recorded history of concurrent operations on one object could have come from an object that does them one
// after another: the search of Wing and Gong with Lowe's memory of where it has been. It knows nothing of the library.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace harness {

/// The end of an operation whose caller died before it knew: it took effect at some time after its start, or never.
inline constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

/// One operation: when it was called, when it returned, what it was and what it gave.
template <class Operation>
struct recorded {
  std::int64_t called = 0;
  std::int64_t returned = never;
  Operation what{};
};

/// What an object does when nothing else happens. `step` carries out an operation and says whether it would have given
/// what it gave; of a pending one, which gave nothing, whether it is possible at all. States are compared and hashed.
template <class Model>
concept sequential_model = requires(const Model& m, typename Model::state& s, const typename Model::operation& op) {
  { m.initial() } -> std::same_as<typename Model::state>;
  { m.step(s, op) } -> std::same_as<bool>;
  { m.hash(s) } -> std::same_as<std::size_t>;
  requires std::equality_comparable<typename Model::state>;
};

struct linearization {
  bool exists = false;
  std::size_t deepest = 0;  ///< how many operations could be put in order, at best
  std::uint64_t steps = 0;  ///< what the search cost
  bool gave_up = false;     ///< it cost too much: nothing is known
};

namespace detail {

template <sequential_model Model>
class linearizer {
 public:
  using operation = typename Model::operation;
  using state = typename Model::state;

  linearizer(const Model& model, const std::vector<recorded<operation>>& history, std::uint64_t most_steps)
      : model_(model), history_(history), most_steps_(most_steps), done_((history.size() + 63) / 64, 0) {
    std::vector<event> events;
    for (std::size_t i = 0; i < history.size(); ++i) {
      events.push_back({history[i].called, false, i});
      if (history[i].returned == never) continue;
      events.push_back({history[i].returned, true, i});
      ++returns_left_;
    }
    // At one and the same time a call comes before a return: they may have overlapped.
    std::sort(events.begin(), events.end(), [](const event& a, const event& b) {
      return std::tie(a.time, a.is_return, a.id) < std::tie(b.time, b.is_return, b.id);
    });
    // A ring with a head at 0; `at_` knows where call and return of each operation stand in it.
    ring_.resize(events.size() + 1);
    at_.resize(history.size());
    for (std::size_t i = 0; i < ring_.size(); ++i) {
      ring_[i].next = (i + 1) % ring_.size();
      ring_[i].previous = (i + ring_.size() - 1) % ring_.size();
      if (i == 0) continue;
      ring_[i].what = events[i - 1];
      (events[i - 1].is_return ? at_[events[i - 1].id].second : at_[events[i - 1].id].first) = i;
    }
  }

  linearization run() {
    linearization result;
    state now = model_.initial();
    std::size_t here = ring_[0].next;
    while (returns_left_ > 0) {
      if (++result.steps > most_steps_) {
        result.gave_up = true;
        return result;
      }
      // Up to the first return, every call may have been the next to take effect.
      if (here != 0 && !ring_[here].what.is_return) {
        const std::size_t id = ring_[here].what.id;
        state then = now;
        if (model_.step(then, history_[id].what)) {
          mark(id, true);
          if (is_new(then)) {
            chosen_.emplace_back(id, std::move(now));
            now = std::move(then);
            take_out(id);
            result.deepest = std::max(result.deepest, chosen_.size());
            here = ring_[0].next;
            continue;
          }
          mark(id, false);
        }
        here = ring_[here].next;
        continue;
      }
      if (chosen_.empty()) return result;
      const std::size_t id = chosen_.back().first;
      now = std::move(chosen_.back().second);
      chosen_.pop_back();
      mark(id, false);
      put_back(id);
      here = ring_[at_[id].first].next;
    }
    result.exists = true;
    return result;
  }

 private:
  struct event {
    std::int64_t time = 0;
    bool is_return = false;
    std::size_t id = 0;
  };
  struct node {
    event what{};
    std::size_t next = 0;
    std::size_t previous = 0;
  };

  void unlink(std::size_t i) {
    ring_[ring_[i].previous].next = ring_[i].next;
    ring_[ring_[i].next].previous = ring_[i].previous;
  }
  void relink(std::size_t i) {
    ring_[ring_[i].previous].next = i;
    ring_[ring_[i].next].previous = i;
  }
  [[nodiscard]] bool returns(std::size_t id) const { return history_[id].returned != never; }
  void take_out(std::size_t id) {
    unlink(at_[id].first);
    if (!returns(id)) return;
    unlink(at_[id].second);
    --returns_left_;
  }
  void put_back(std::size_t id) {  // in the reverse order, as it must be
    if (returns(id)) {
      relink(at_[id].second);
      ++returns_left_;
    }
    relink(at_[id].first);
  }
  void mark(std::size_t id, bool on) {
    const std::uint64_t bit = std::uint64_t{1} << (id % 64);
    done_[id / 64] = on ? done_[id / 64] | bit : done_[id / 64] & ~bit;
  }

  /// The same operations with the same outcome lead nowhere else, in whatever order they were done.
  [[nodiscard]] bool is_new(const state& s) {
    std::size_t h = model_.hash(s);
    for (const std::uint64_t word : done_) h = (h ^ word) * 0x9e3779b97f4a7c15ULL + (h >> 29);
    auto& bucket = seen_[h];
    for (const auto& [done, then] : bucket) {
      if (done == done_ && then == s) return false;
    }
    bucket.emplace_back(done_, s);
    return true;
  }

  const Model& model_;
  const std::vector<recorded<operation>>& history_;
  std::uint64_t most_steps_;
  std::vector<std::uint64_t> done_;
  std::vector<node> ring_{};
  std::vector<std::pair<std::size_t, std::size_t>> at_{};
  std::vector<std::pair<std::size_t, state>> chosen_{};
  std::unordered_map<std::size_t, std::vector<std::pair<std::vector<std::uint64_t>, state>>> seen_{};
  std::size_t returns_left_ = 0;
};

}  // namespace detail

/// Looks for an order of the operations that is sequential, that keeps apart what was apart in time, and in which each
/// gave what it gave. The operations of different objects are to be asked about separately: that is equivalent (Herlihy
/// and Wing), and the search takes time exponential in how many overlap.
template <sequential_model Model>
[[nodiscard]] linearization find_linearization(const Model& model,
                                               const std::vector<recorded<typename Model::operation>>& history,
                                               std::uint64_t most_steps = 20000000) {
  return detail::linearizer<Model>(model, history, most_steps).run();
}

}  // namespace harness
