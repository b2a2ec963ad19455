// SPDX-License-Identifier: BSL-1.0
// The oracle of scan and exclusive_scan.
#pragma once

#include "oracle_reduce.hpp"

namespace oracle {

template <class Backend, class T, class Op>
task<> check_scan(checker<Backend>& c, const operands<T, Op>& x, bool in_place) {
  std::string what = x.title("scan", x.count(), in_place ? " in place" : "");
  const guarded<T> in(own_input(c, x));
  guarded<T> out(x.count());
  if (in_place) out.assign(own_input(c, x));
  auto op = in_place ? c.world().scan(out, x.functor(c.rank())) : c.world().scan(in, out, x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const std::vector<T> expected = x.prefix(c.rank(), how);
  co_await op;
  c.holds(what, out, std::span<const T>(expected));
  c.unchanged(what, in, own_input(c, x));
}

template <class Backend, class T, class Op>
task<> check_scan_value(checker<Backend>& c, const operands<T, Op>& x) {
  std::string what = x.title("scan", 1, " of a value");
  auto op = c.world().scan(own_input(c, x)[0], x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const T expected = x.prefix(c.rank(), how)[0];
  const T found = co_await op;
  c.same(what, std::span<const T>(&found, 1), std::span<const T>(&expected, 1));
}

/// What rank r gets, with a value before that of rank 0 or with none, where the identity is known.
template <class T, class Op, class Backend>
[[nodiscard]] std::vector<T> below(const checker<Backend>& c, const operands<T, Op>& x, algorithm how,
                                   const T* start) {
  if constexpr (cohort::has_identity<Op, T>) {
    if (c.rank() == 0 && start == nullptr) return std::vector<T>(x.count(), cohort::identity<Op, T>::value);
  }
  if (c.rank() == 0) return std::vector<T>(x.count(), *start);
  std::vector<T> expected = x.prefix_before(c.rank(), how);
  for (T& each : expected) {
    if (start != nullptr) each = static_cast<T>(x.functor(0)(*start, each));
  }
  return expected;
}

template <class Backend, class T, class Op>
task<> check_exclusive_scan(checker<Backend>& c, const operands<T, Op>& x, bool in_place) {
  std::string what = x.title("exclusive_scan", x.count(), in_place ? " in place" : "");
  const guarded<T> in(own_input(c, x));
  guarded<T> out(x.count());
  if (in_place) out.assign(own_input(c, x));
  auto op = in_place ? c.world().exclusive_scan(out, out, x.functor(c.rank()))
                     : c.world().exclusive_scan(in, out, x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const std::vector<T> expected = below(c, x, how, static_cast<const T*>(nullptr));
  co_await op;
  c.holds(what, out, std::span<const T>(expected));
  c.unchanged(what, in, own_input(c, x));
}

template <class Backend, class T, class Op>
task<> check_exclusive_scan_from(checker<Backend>& c, const operands<T, Op>& x, T start, bool in_place) {
  std::string what = x.title("exclusive_scan", x.count(), in_place ? " from a value in place" : " from a value");
  const guarded<T> in(own_input(c, x));
  guarded<T> out(x.count());
  if (in_place) out.assign(own_input(c, x));
  auto op = in_place ? c.world().exclusive_scan(out, out, x.functor(c.rank()), cohort::initial{start})
                     : c.world().exclusive_scan(in, out, x.functor(c.rank()), cohort::initial{start});
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const std::vector<T> expected = below(c, x, how, &start);
  co_await op;
  c.holds(what, out, std::span<const T>(expected));
  c.unchanged(what, in, own_input(c, x));
}

template <class Backend, class T, class Op>
task<> check_exclusive_scan_value(checker<Backend>& c, const operands<T, Op>& x) {
  std::string what = x.title("exclusive_scan", 1, " of a value");
  auto op = c.world().exclusive_scan(own_input(c, x)[0], x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const T expected = below(c, x, how, static_cast<const T*>(nullptr))[0];
  const T found = co_await op;
  c.same(what, std::span<const T>(&found, 1), std::span<const T>(&expected, 1));
}

template <class Backend, class T, class Op>
task<> check_exclusive_scan_value_from(checker<Backend>& c, const operands<T, Op>& x, T start) {
  std::string what = x.title("exclusive_scan", 1, " of a value from a value");
  auto op = c.world().exclusive_scan(own_input(c, x)[0], x.functor(c.rank()), cohort::initial{start});
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const T expected = below(c, x, how, &start)[0];
  const T found = co_await op;
  c.same(what, std::span<const T>(&found, 1), std::span<const T>(&expected, 1));
}

template <class T, class Op, class Backend>
task<> check_scans(checker<Backend>& c, const operands<T, Op>& x, T start) {
  for (const bool in_place : {false, true}) {
    auto inclusive = check_scan(c, x, in_place);
    co_await inclusive;
    auto exclusive = check_exclusive_scan_from(c, x, start, in_place);
    co_await exclusive;
    if constexpr (cohort::has_identity<Op, T>) {
      auto neutral = check_exclusive_scan(c, x, in_place);
      co_await neutral;
    }
  }
  if (x.count() != 1) co_return;
  auto inclusive = check_scan_value(c, x);
  co_await inclusive;
  auto exclusive = check_exclusive_scan_value_from(c, x, start);
  co_await exclusive;
  if constexpr (cohort::has_identity<Op, T>) {
    auto neutral = check_exclusive_scan_value(c, x);
    co_await neutral;
  }
}

template <class T, class Op, class Backend>
task<> scan_matrix(checker<Backend>& c, std::vector<std::size_t> counts) {
  for (const data kind : kinds_of_data<T>()) {
    for (const std::size_t count : counts) {
      const operands<T, Op> x(c.size(), count, kind, 15 + count);
      const T start = operand<T, Op>(99, 0, count, kind);
      for (const algorithm how : algorithms_of(operation_kind::scan)) {
        // The grouping of a library of its own is its own: only what shows no rounding can be foretold.
        if (how == algorithm::native && kind == data::rough) continue;
        c.world().algorithms().override_with(operation_kind::scan, how);
        c.world().algorithms().override_with(operation_kind::exclusive_scan, how);
        auto all = check_scans(c, x, start);
        co_await all;
      }
    }
  }
}

}  // namespace oracle
