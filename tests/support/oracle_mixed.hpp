// SPDX-License-Identifier: BSL-1.0
// Operations of all kinds in flight together: awaited in an order of each rank's own, and at random.
#pragma once

#include "oracle_exchange.hpp"
#include "oracle_messages.hpp"
#include "oracle_scan.hpp"

#include <cohort/when_all.hpp>

namespace oracle {

/// The same numbers on every rank.
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : state_(mix(seed)) {}
  [[nodiscard]] std::size_t below(std::size_t n) noexcept {
    return static_cast<std::size_t>((state_ = mix(state_)) >> 11) % n;
  }
  [[nodiscard]] int rank(int ranks) noexcept { return static_cast<int>(below(static_cast<std::size_t>(ranks))); }
  [[nodiscard]] bool coin() noexcept { return below(2) == 0; }
  template <class Value>
  [[nodiscard]] Value one_of(std::initializer_list<Value> values) noexcept {
    return values.begin()[below(values.size())];
  }
  [[nodiscard]] std::size_t count(int ranks) noexcept {
    const auto p = static_cast<std::size_t>(ranks);
    return one_of<std::size_t>({0, 1, p - 1, p, p + 1, 1 + below(100), 1 + below(100), longest});
  }
  [[nodiscard]] std::vector<std::size_t> counts(int ranks) noexcept {
    std::vector<std::size_t> all(static_cast<std::size_t>(ranks));
    for (std::size_t& each : all) each = one_of<std::size_t>({0, below(20), below(3000)});
    return all;
  }

 private:
  // Every rank works out what all of them should have: most of the time under a sanitizer.
  static constexpr std::size_t longest = harness::sanitized ? 1009 : 10007;
  std::uint64_t state_;
};

/// The operation is carried out by any of its algorithms, or as the table says.
template <class Backend>
void choose_algorithm(checker<Backend>& c, operation_kind kind, dice& d) {
  cohort::collective::selection_table& table = c.world().algorithms();
  const std::vector<algorithm> all = algorithms_of(kind);
  const std::size_t chosen = d.below(all.size() + 1);
  table = cohort::collective::selection_table(table.rows(), table.has_natives());
  if (chosen < all.size()) table.override_with(kind, all[chosen]);
}

template <class T, class Op, class Backend>
task<> random_reduction(checker<Backend>& c, operation_kind kind, dice d) {
  const bool in_place = d.coin();
  data roughness = d.coin() ? data::exact : data::rough;
  const int root = d.rank(c.size());
  choose_algorithm(c, kind, d);
  // How a library of its own groups a scan cannot be foretold: nothing may be rounded.
  const bool scans = kind == operation_kind::scan || kind == operation_kind::exclusive_scan;
  const auto& table = c.world().algorithms();
  if (scans && table.has_natives() && table.override_of(kind).value_or(algorithm::native) == algorithm::native) {
    roughness = data::exact;
  }
  if (kind == operation_kind::reduce_scatter || kind == operation_kind::reduce_scatter_v) {
    const std::vector<std::size_t> counts = kind == operation_kind::reduce_scatter
                                                ? std::vector<std::size_t>(c.ranks(), d.count(c.size()))
                                                : d.counts(c.size());
    const operands<T, Op> x(c.size(), sum_of(counts), roughness, d.below(1000));
    const auto form = kind == operation_kind::reduce_scatter ? scatter_shape::flat
                                                             : d.one_of({scatter_shape::counts, scatter_shape::list});
    auto check = check_reduce_scatter(c, x, counts, form);
    co_await check;
    co_return;
  }
  const bool value = d.below(4) == 0;
  const operands<T, Op> x(c.size(), value ? 1 : d.count(c.size()), roughness, d.below(1000));
  if (kind == operation_kind::all_reduce && value) {
    auto check = check_all_reduce_value(c, x);
    static_cast<void>(co_await check);
  } else if (kind == operation_kind::all_reduce) {
    auto check = check_all_reduce(c, x, in_place);
    static_cast<void>(co_await check);
  } else if (kind == operation_kind::reduce) {
    auto check = value ? check_reduce_value(c, x, root) : check_reduce(c, x, root, in_place);
    co_await check;
  } else if (kind == operation_kind::scan) {
    auto check = value ? check_scan_value(c, x) : check_scan(c, x, in_place);
    co_await check;
  } else {
    const T start = operand<T, Op>(d.below(1000), 0, 0, roughness);
    auto check =
        value ? check_exclusive_scan_value_from(c, x, start) : check_exclusive_scan_from(c, x, start, in_place);
    co_await check;
  }
}

template <class T, class Backend>
task<> random_movement(checker<Backend>& c, operation_kind kind, dice d) {
  const int root = d.rank(c.size());
  const std::uint64_t seed = d.below(1000);
  const std::vector<std::size_t> even(c.ranks(), d.count(c.size()));
  choose_algorithm(c, kind, d);
  const bool value = d.below(4) == 0;
  switch (kind) {
    case operation_kind::broadcast:
      return value ? check_broadcast_value<T>(c, root, seed) : check_broadcast<T>(c, even[0], root, seed);
    case operation_kind::scatter:
      return value ? check_scatter_value<T>(c, root, seed)
                   : check_scatter<T>(c, even, root, d.one_of({shape::flat, shape::list}), seed);
    case operation_kind::scatter_v:
      return check_scatter<T>(c, d.counts(c.size()), root, d.one_of({shape::counts, shape::negotiated}), seed);
    case operation_kind::gather:
      return value ? check_gather_value<T>(c, root, seed)
                   : check_gather<T>(c, even, root, d.one_of({shape::flat, shape::in_place, shape::list}), seed);
    case operation_kind::gather_v:
      return check_gather<T>(c, d.counts(c.size()), root, d.one_of({shape::counts, shape::negotiated}), seed);
    case operation_kind::all_gather:
      return value ? check_all_gather_value<T>(c, seed)
                   : check_all_gather<T>(c, even, d.one_of({shape::flat, shape::in_place, shape::list}), seed);
    case operation_kind::all_gather_v:
      return check_all_gather<T>(c, d.counts(c.size()), d.one_of({shape::counts, shape::in_place, shape::negotiated}),
                                 seed);
    case operation_kind::all_to_all: return check_all_to_all<T>(c, equal_counts(c.size(), even[0]), shape::flat, seed);
    case operation_kind::all_to_all_v: {
      count_matrix counts;
      for (std::size_t r = 0; r < c.ranks(); ++r) counts.push_back(d.counts(c.size()));
      return check_all_to_all<T>(c, counts, d.one_of({shape::counts, shape::list, shape::negotiated}), seed);
    }
    default: return check_exchange<T>(c, even[0], root);
  }
}

template <class Backend>
task<> random_call(checker<Backend>& c, dice d) {
  using enum operation_kind;
  const auto kind =
      d.one_of({barrier, broadcast, scatter, scatter_v, gather, gather_v, reduce, all_reduce, all_gather, all_gather_v,
                reduce_scatter, reduce_scatter_v, all_to_all, all_to_all_v, scan, exclusive_scan, exchange});
  const std::size_t type = d.below(3);
  switch (kind) {
    case barrier: {
      std::string what = "barrier";
      auto op = c.world().barrier();
      c.called(op, what);
      co_await op;
      break;
    }
    case reduce:
    case all_reduce:
    case reduce_scatter:
    case reduce_scatter_v:
    case scan:
    case exclusive_scan: {
      auto check = type == 0   ? random_reduction<float, cohort::sum>(c, kind, d)
                   : type == 1 ? random_reduction<matrix2, multiply>(c, kind, d)
                               : random_reduction<cohort::half, cohort::premultiplied_sum<float>>(c, kind, d);
      co_await check;
      break;
    }
    default: {
      auto check = type == 0 ? random_movement<rgb>(c, kind, d) : random_movement<std::int32_t>(c, kind, d);
      co_await check;
    }
  }
}

/// `calls` random calls, up to six of them in flight together.
template <class Backend>
task<> check_random_calls(checker<Backend>& c, std::uint64_t seed, int calls) {
  dice d(seed);
  for (int done = 0; done < calls;) {
    const int together = std::min(calls - done, 1 + d.rank(6));
    std::vector<task<>> in_flight;
    for (int i = 0; i < together; ++i) in_flight.push_back(random_call(c, dice(d.below(std::size_t{1} << 40))));
    auto all = cohort::when_all(std::move(in_flight));
    try {
      co_await all;
    } catch (const wrong& e) {
      throw wrong("seed " + std::to_string(seed) + ", one of calls " + std::to_string(done) + " to " +
                  std::to_string(done + together - 1) + ": " + e.what());
    }
    done += together;
  }
}

/// Many operations are called, then awaited in an order that is another one on every rank.
template <class Backend>
task<> check_in_flight(checker<Backend>& c, std::size_t operations) {
  std::string what = std::to_string(operations) + " operations in flight";
  const std::vector<algorithm> ways = algorithms_of(operation_kind::all_reduce);
  std::vector<operands<float, cohort::sum>> sums;
  std::vector<guarded<float>> floats;
  std::vector<guarded<std::int32_t>> ints;
  std::vector<cohort::operation<>> in_flight;
  const auto count_of = [](std::size_t i) { return i % 5 == 4 ? std::size_t{harness::sanitized ? 16411U : 20011U} : 3 * i + 1; };
  for (std::size_t i = 0; i < operations; ++i) {
    sums.emplace_back(c.size(), i % 2 == 0 ? count_of(i) : 0, data::exact, i);
    floats.emplace_back(sums[i].input(c.rank()));
    ints.emplace_back(tokens<std::int32_t>(i, c.rank(), i % 2 == 0 ? 0 : count_of(i)));
  }
  for (std::size_t i = 0; i < operations; ++i) {
    c.world().algorithms().override_with(operation_kind::all_reduce, ways[i % ways.size()]);
    in_flight.push_back(i % 2 == 0 ? c.world().all_reduce(floats[i], cohort::sum{})
                                   : c.world().broadcast(ints[i], cohort::root{static_cast<int>(i % c.ranks())}));
    std::string each = what;
    c.called(in_flight.back(), each);
  }
  for (std::size_t n = 0; n < operations; ++n) {
    const std::size_t i = (operations - 1 - n + 5 * c.own()) % operations;
    co_await in_flight[i];
    const std::vector<std::int32_t> sent = tokens<std::int32_t>(i, static_cast<int>(i % c.ranks()), ints[i].size());
    c.holds(what, floats[i], sums[i].totals(0, sums[i].count()));
    c.holds(what, ints[i], std::span<const std::int32_t>(sent));
  }
}

}  // namespace oracle
