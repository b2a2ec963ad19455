// SPDX-License-Identifier: BSL-1.0
// Schedules are constants: the compiler itself runs them here, for every rank, and checks what they say. That every
// send has its receive is proved at run time, by the simulator; this shows that nothing in them needs a run time.
#include <doctest/doctest.h>

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/schedule/all_gather.hpp>
#include <cohort/collective/schedule/all_reduce.hpp>
#include <cohort/collective/schedule/all_to_all.hpp>
#include <cohort/collective/schedule/barrier.hpp>
#include <cohort/collective/schedule/broadcast.hpp>
#include <cohort/collective/schedule/gather.hpp>
#include <cohort/collective/schedule/pipeline.hpp>
#include <cohort/collective/schedule/reduce.hpp>
#include <cohort/collective/schedule/reduce_scatter.hpp>
#include <cohort/collective/schedule/scan.hpp>
#include <cohort/collective/schedule/scatter.hpp>

namespace {

using namespace cohort::collective;
using cohort::operation_kind;

/// What the rounds of one rank add up to.
struct tally {
  int messages_sent = 0;
  int messages_received = 0;
  int blocks_sent = 0;
  int blocks_received = 0;
  int blocks_combined = 0;
  int blocks_copied = 0;

  constexpr void send(int, region r) noexcept {
    ++messages_sent;
    blocks_sent += r.count;
  }
  constexpr void receive(int, region r) noexcept {
    ++messages_received;
    blocks_received += r.count;
  }
  constexpr void receive_reduce(int peer, region r, side) noexcept {
    receive(peer, r);
    blocks_combined += r.count;
  }
  constexpr void copy(region, region r) noexcept { blocks_copied += r.count; }
  constexpr void reduce(region, region r, side) noexcept { blocks_combined += r.count; }
};

template <schedule Schedule>
constexpr tally count(const Schedule& steps) {
  tally sum;
  for (int k = 0; k < steps.rounds(); ++k) steps.round(k, sum);
  return sum;
}

template <class Make>
constexpr tally count_all(int size, Make make) {
  tally sum;
  for (int r = 0; r < size; ++r) {
    const auto steps = make(r);
    for (int k = 0; k < steps.rounds(); ++k) steps.round(k, sum);
  }
  return sum;
}

constexpr bool balanced(tally t) {
  return t.messages_sent == t.messages_received && t.blocks_sent == t.blocks_received;
}

static_assert(ceil_log2(1) == 0 && ceil_log2(2) == 1 && ceil_log2(5) == 3 && ceil_log2(8) == 3);
static_assert(floor_log2(1) == 0 && floor_log2(2) == 1 && floor_log2(7) == 2 && floor_log2(8) == 3);
static_assert(wrap(-1, 5) == 4 && wrap(7, 5) == 2 && wrap(-5, 5) == 0);
static_assert(circulant_skip(22, 0) == 1 && circulant_skip(22, 1) == 2 && circulant_skip(22, 2) == 3);
static_assert(circulant_skip(22, 3) == 6 && circulant_skip(22, 4) == 11 && circulant_skip(22, 5) == 22);
static_assert(binomial_subtree(7, 0) == 7 && binomial_subtree(7, 4) == 3 && binomial_subtree(7, 6) == 1);

// Optimal in rounds and blocks at once, on 22 ranks: 5 rounds, 21 blocks.
static_assert(circulant_all_gather{22, 3}.rounds() == 5 && count(circulant_all_gather{22, 3}).blocks_sent == 21);
static_assert(circulant_reduce_scatter{22, 3}.rounds() == 5);
static_assert(count(circulant_reduce_scatter{22, 3}).blocks_sent == 21);
static_assert(count(circulant_all_reduce(22, 3)).blocks_sent == 42);
static_assert(circulant_broadcast(22, 3, 1, 9).rounds() == 13);
static_assert(count(circulant_broadcast(22, 3, 1, 9)).blocks_received == 9);

static_assert(balanced(count_all(13, [](int r) { return dissemination_barrier{13, r}; })));
static_assert(balanced(count_all(13, [](int r) { return scatter_all_gather_broadcast(13, r, 4); })));
static_assert(balanced(count_all(13, [](int r) { return circulant_broadcast(13, r, 4, 6); })));
static_assert(balanced(count_all(13, [](int r) { return chain_broadcast{13, r, 4, 6}; })));
static_assert(balanced(count_all(13, [](int r) { return circulant_reduce(13, r, 4, 6); })));
static_assert(balanced(count_all(13, [](int r) { return halving_gather_reduce(13, r, 5); })));
static_assert(balanced(count_all(13, [](int r) { return halving_doubling_all_reduce(13, r); })));
static_assert(balanced(count_all(13, [](int r) { return halving_reduce_scatter{13, r}; })));
static_assert(balanced(count_all(13, [](int r) { return pairwise_reduce_scatter{13, r}; })));
static_assert(balanced(count_all(13, [](int r) { return bruck_all_to_all{13, r}; })));
static_assert(balanced(count_all(13, [](int r) { return binomial_gather{13, r, 4}; })));
static_assert(balanced(count_all(13, [](int r) { return binomial_scatter{13, r, 4}; })));
static_assert(balanced(count_all(13, [](int r) { return recursive_doubling_exclusive_scan{13, r}; })));
static_assert(balanced(count_all(13, [](int r) { return chain_scan{13, r, 6}; })));
static_assert(balanced(count_all(13, [](int r) { return chain_exclusive_scan{13, r, 6}; })));
static_assert(count_all(13, [](int r) { return binomial_reduce{13, r, 4}; }).blocks_combined == 12);

/// Whether, of two ranks, each sends one message if it gives, none if it does not, in the first round, and of one block.
template <class Make>
constexpr bool one_message(Make make, bool first_gives, bool second_gives, int blocks = 1) {
  for (int r = 0; r < 2; ++r) {
    const auto steps = make(r);
    const int expected = (r == 0 ? first_gives : second_gives) ? 1 : 0;
    const int comes = (r == 0 ? second_gives : first_gives) ? 1 : 0;
    tally at_first;
    steps.round(0, at_first);
    const tally all = count(steps);
    if (at_first.messages_sent != expected || all.messages_sent != expected) return false;
    if (all.messages_received != comes || all.blocks_sent != expected * blocks) return false;
  }
  return true;
}

/// The same of the schedule for an operation by one of the algorithms of which `is_one_message` says so.
constexpr bool one_message(const implementation& i, int root) {
  const bool zero = root == 0;
  switch (i.operation) {
    case operation_kind::barrier: return one_message([](int r) { return dissemination_barrier{2, r}; }, true, true, 0);
    case operation_kind::broadcast:
      return one_message([&](int r) { return binomial_broadcast{2, r, root}; }, zero, !zero);
    case operation_kind::reduce: return one_message([&](int r) { return binomial_reduce{2, r, root}; }, !zero, zero);
    case operation_kind::gather:
      return i.algorithm == algorithm::binomial ? one_message(
                                                      [&](int r) {
                                                        return binomial_gather{2, r, root};
                                                      },
                                                      !zero, zero)
                                                : one_message(
                                                      [&](int r) {
                                                        return linear_gather{2, r, root};
                                                      },
                                                      !zero, zero);
    case operation_kind::scatter:
      return i.algorithm == algorithm::binomial ? one_message(
                                                      [&](int r) {
                                                        return binomial_scatter{2, r, root};
                                                      },
                                                      zero, !zero)
                                                : one_message(
                                                      [&](int r) {
                                                        return linear_scatter{2, r, root};
                                                      },
                                                      zero, !zero);
    case operation_kind::all_reduce:
      return one_message([](int r) { return recursive_doubling_all_reduce{2, r}; }, true, true);
    case operation_kind::scan: return one_message([](int r) { return recursive_doubling_scan{2, r}; }, true, false);
    case operation_kind::all_gather:
      if (i.algorithm == algorithm::ring) return one_message([](int r) { return ring_all_gather{2, r}; }, true, true);
      return i.algorithm == algorithm::linear ? one_message(
                                                    [](int r) {
                                                      return linear_all_gather{2, r};
                                                    },
                                                    true, true)
                                              : one_message(
                                                    [](int r) {
                                                      return circulant_all_gather{2, r};
                                                    },
                                                    true, true);
    case operation_kind::all_to_all:
      return i.algorithm == algorithm::bruck ? one_message(
                                                   [](int r) {
                                                     return bruck_all_to_all{2, r};
                                                   },
                                                   true, true)
                                             : one_message(
                                                   [](int r) {
                                                     return pairwise_all_to_all{2, r};
                                                   },
                                                   true, true);
    case operation_kind::reduce_scatter:
      if (i.algorithm == algorithm::ring)
        return one_message([](int r) { return ring_reduce_scatter{2, r}; }, true, true);
      if (i.algorithm == algorithm::pairwise) {
        return one_message([](int r) { return pairwise_reduce_scatter{2, r}; }, true, true);
      }
      return i.algorithm == algorithm::halving ? one_message(
                                                     [](int r) {
                                                       return halving_reduce_scatter{2, r};
                                                     },
                                                     true, true)
                                               : one_message(
                                                     [](int r) {
                                                       return circulant_reduce_scatter{2, r};
                                                     },
                                                     true, true);
    default: return false;
  }
}

static_assert([] {
  int found = 0;
  for (const implementation& i : implementations) {
    if (!is_one_message(i.operation, i.algorithm)) continue;
    if (!one_message(i, 0) || !one_message(i, 1)) return false;
    ++found;
  }
  return found == 18;
}());
// Halves of a vector are two messages, segments may be more.
static_assert(!is_one_message(operation_kind::all_reduce, algorithm::circulant));
static_assert(!is_one_message(operation_kind::broadcast, algorithm::chain));

}  // namespace

TEST_CASE("schedules say the same at run time as at compile time") {
  constexpr tally at_compile_time = count_all(29, [](int r) { return bruck_all_to_all{29, r}; });
  volatile int size = 29;
  const int p = size;
  const tally now = count_all(p, [p](int r) { return bruck_all_to_all{p, r}; });
  CHECK(now.blocks_sent == at_compile_time.blocks_sent);
  CHECK(now.blocks_copied == at_compile_time.blocks_copied);
}

TEST_CASE("a rank alone sends nothing, and copies its own block where there is one to copy") {
  const auto alone = [](const auto& steps, int copied) {
    const tally t = count(steps);
    CHECK(t.messages_sent + t.messages_received + t.blocks_combined == 0);
    CHECK(t.blocks_copied == copied);
    CHECK(steps.work_blocks() == 0);
  };
  alone(dissemination_barrier{1, 0}, 0);
  alone(binomial_broadcast{1, 0, 0}, 0);
  alone(scatter_all_gather_broadcast(1, 0, 0), 0);
  alone(chain_broadcast{1, 0, 0, 3}, 0);
  alone(circulant_broadcast(1, 0, 0, 3), 0);
  alone(binomial_reduce{1, 0, 0}, 0);
  alone(reduce_scatter_gather_reduce(1, 0, 0), 0);
  alone(halving_gather_reduce(1, 0, 0), 0);
  alone(circulant_reduce(1, 0, 0, 3), 0);
  alone(recursive_doubling_all_reduce{1, 0}, 0);
  alone(halving_doubling_all_reduce(1, 0), 0);
  alone(central_all_reduce{1, 0}, 0);
  alone(circulant_all_reduce(1, 0), 0);
  alone(ring_all_reduce(1, 0), 0);
  alone(circulant_all_gather{1, 0}, 0);
  alone(ring_all_gather{1, 0}, 0);
  alone(linear_all_gather{1, 0}, 0);
  alone(central_all_gather{1, 0}, 0);
  alone(central_reduce_scatter{1, 0}, 1);
  alone(circulant_reduce_scatter{1, 0}, 1);
  alone(ring_reduce_scatter{1, 0}, 1);
  alone(pairwise_reduce_scatter{1, 0}, 1);
  alone(halving_reduce_scatter{1, 0}, 1);
  alone(binomial_gather{1, 0, 0}, 1);
  alone(linear_gather{1, 0, 0}, 1);
  alone(binomial_scatter{1, 0, 0}, 1);
  alone(linear_scatter{1, 0, 0}, 1);
  alone(bruck_all_to_all{1, 0}, 1);
  alone(central_all_to_all{1, 0}, 1);
  alone(pairwise_all_to_all{1, 0}, 1);
  alone(recursive_doubling_scan{1, 0}, 0);
  alone(recursive_doubling_exclusive_scan{1, 0}, 0);
  alone(chain_scan{1, 0, 3}, 0);
  alone(chain_exclusive_scan{1, 0, 3}, 0);
}
