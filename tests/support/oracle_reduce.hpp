// SPDX-License-Identifier: BSL-1.0
// The oracle of reduce, all_reduce, reduce_scatter and reduce_scatter_v.
#pragma once

#include "oracle_reduction.hpp"

namespace oracle {

template <class T, class Op, class Backend>
[[nodiscard]] std::span<const T> own_input(const checker<Backend>& c, const operands<T, Op>& x) {
  return x.input(c.rank());
}

/// Result: a digest of the bits that this rank got
template <class Backend, class T, class Op>
task<std::uint64_t> check_all_reduce(checker<Backend>& c, const operands<T, Op>& x, bool in_place) {
  std::string what = x.title("all_reduce", x.count(), in_place ? " in place" : "");
  const guarded<T> in(own_input(c, x));
  guarded<T> out(x.count());
  if (in_place) out.assign(own_input(c, x));
  auto op =
      in_place ? c.world().all_reduce(out, x.functor(c.rank())) : c.world().all_reduce(in, out, x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  co_await op;
  const std::span<const T> found(out.data(), out.size());
  x.compare(c, what, found, 0, grouping_of(operation_kind::all_reduce, how));
  c.expect(out.margins_intact(), what, "nothing to be written outside the buffer");
  c.unchanged(what, in, own_input(c, x));
  co_return digest(found);
}

/// Needs: one element at least
template <class Backend, class T, class Op>
task<std::uint64_t> check_all_reduce_value(checker<Backend>& c, const operands<T, Op>& x) {
  std::string what = x.title("all_reduce", 1, " of a value");
  auto op = c.world().all_reduce(own_input(c, x)[0], x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const T found = co_await op;
  x.compare(c, what, std::span<const T>(&found, 1), 0, grouping_of(operation_kind::all_reduce, how));
  co_return digest(std::span<const T>(&found, 1));
}

/// Ranks that are not the root pass an output that has nothing to do with it, which must stay as it was.
template <class Backend, class T, class Op>
task<> check_reduce(checker<Backend>& c, const operands<T, Op>& x, int root, bool in_place) {
  std::string what = x.title("reduce", x.count(), in_place ? " in place" : "") + " to rank " + std::to_string(root);
  const bool here = c.rank() == root;
  const guarded<T> in(own_input(c, x));
  guarded<T> out(here || in_place ? x.count() : 3);
  if (in_place) out.assign(own_input(c, x));
  auto op = in_place ? c.world().reduce(out, x.functor(c.rank()), cohort::root{root})
                     : c.world().reduce(in, out, x.functor(c.rank()), cohort::root{root});
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  co_await op;
  if (here) {
    x.compare(c, what, std::span<const T>(out.data(), out.size()), 0, grouping_of(operation_kind::reduce, how));
    c.expect(out.margins_intact(), what, "nothing to be written outside the buffer");
  } else if (in_place) {
    c.unchanged(what, out, own_input(c, x));
  } else {
    c.untouched(what, out);
  }
  c.unchanged(what, in, own_input(c, x));
}

template <class Backend, class T, class Op>
task<> check_reduce_value(checker<Backend>& c, const operands<T, Op>& x, int root) {
  std::string what = x.title("reduce", 1, " of a value") + " to rank " + std::to_string(root);
  auto op = c.world().reduce(own_input(c, x)[0], x.functor(c.rank()), cohort::root{root});
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  const std::optional<T> found = co_await op;
  c.expect(found.has_value() == (c.rank() == root), what, "a value on the root and none elsewhere");
  if (found) x.compare(c, what, std::span<const T>(&*found, 1), 0, grouping_of(operation_kind::reduce, how));
}

enum class scatter_shape { flat, list, counts };

/// Needs: the operands are as many elements as the sum of counts; these are equal where the shape is flat
template <class Backend, class T, class Op>
task<> check_reduce_scatter(checker<Backend>& c, const operands<T, Op>& x, std::vector<std::size_t> counts,
                            scatter_shape form) {
  const char* const text = form == scatter_shape::flat   ? ""
                           : form == scatter_shape::list ? " with a list"
                                                         : " with counts";
  std::string what = x.title("reduce_scatter", x.count(), text);
  const auto first_of = [&](std::size_t r) {
    return std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(r), std::size_t{0});
  };
  const std::span<const T> mine = own_input(c, x);
  const guarded<T> in(mine);
  std::vector<std::vector<T>> list;
  for (std::size_t r = 0; r < counts.size(); ++r) {
    const auto block = mine.subspan(first_of(r), counts[r]);
    list.emplace_back(block.begin(), block.end());
  }
  guarded<T> out(counts[c.own()]);
  auto op = form == scatter_shape::flat   ? c.world().reduce_scatter(in, out, x.functor(c.rank()))
            : form == scatter_shape::list ? c.world().reduce_scatter(list, out, x.functor(c.rank()))
                                          : c.world().reduce_scatter_v(in, out, counts, x.functor(c.rank()));
  const algorithm how = c.called(op, what, cohort::is_commutative<Op, T>);
  co_await op;
  x.compare(c, what, std::span<const T>(out.data(), out.size()), first_of(c.own()),
            grouping_of(operation_kind::reduce_scatter, how));
  c.expect(out.margins_intact(), what, "nothing to be written outside the buffer");
  c.unchanged(what, in, mine);
  for (std::size_t r = 0; r < list.size(); ++r) {
    c.same(what + ", the input after it", std::span<const T>(list[r]), mine.subspan(first_of(r), counts[r]));
  }
}

// --- every algorithm, count, root and form of one element type and functor

/// Operands that are rounded come in both kinds; others in one.
template <class T>
[[nodiscard]] std::vector<data> kinds_of_data() {
  if constexpr (is_rounded<T>) return {data::exact, data::rough};
  else return {data::exact};
}

template <class T, class Op, class Backend>
task<> all_reduce_matrix(checker<Backend>& c, std::vector<std::size_t> counts) {
  for (const data kind : kinds_of_data<T>()) {
    for (const std::size_t count : counts) {
      const operands<T, Op> x(c.size(), count, kind, 11 + count);
      for (const algorithm how : algorithms_of(operation_kind::all_reduce)) {
        c.world().algorithms().override_with(operation_kind::all_reduce, how);
        const std::string what = x.title("all_reduce", count, " everywhere") + " by " + std::string(to_string(how));
        for (const bool in_place : {false, true}) {
          auto check = check_all_reduce(c, x, in_place);
          const std::uint64_t bits = co_await check;
          auto compared = expect_same_everywhere(c, bits, what);
          co_await compared;
        }
        if (count != 1) continue;
        auto check = check_all_reduce_value(c, x);
        const std::uint64_t bits = co_await check;
        auto compared = expect_same_everywhere(c, bits, what);
        co_await compared;
      }
    }
  }
}

template <class T, class Op, class Backend>
task<> reduce_matrix(checker<Backend>& c, std::vector<std::size_t> counts, std::vector<int> roots) {
  for (const data kind : kinds_of_data<T>()) {
    for (const std::size_t count : counts) {
      const operands<T, Op> x(c.size(), count, kind, 12 + count);
      for (const algorithm how : algorithms_of(operation_kind::reduce)) {
        c.world().algorithms().override_with(operation_kind::reduce, how);
        for (const int root : roots) {
          for (const bool in_place : {false, true}) {
            auto check = check_reduce(c, x, root, in_place);
            co_await check;
          }
          if (count != 1) continue;
          auto check = check_reduce_value(c, x, root);
          co_await check;
        }
      }
    }
  }
}

template <class T, class Op, class Backend>
task<> reduce_scatter_matrix(checker<Backend>& c, std::vector<std::size_t> counts,
                             std::vector<std::vector<std::size_t>> uneven) {
  for (const data kind : kinds_of_data<T>()) {
    for (const std::size_t count : counts) {
      const operands<T, Op> x(c.size(), count * c.ranks(), kind, 13 + count);
      const std::vector<std::size_t> even(c.ranks(), count);
      for (const algorithm how : algorithms_of(operation_kind::reduce_scatter)) {
        c.world().algorithms().override_with(operation_kind::reduce_scatter, how);
        for (const scatter_shape form : {scatter_shape::flat, scatter_shape::list}) {
          auto check = check_reduce_scatter(c, x, even, form);
          co_await check;
        }
      }
    }
    for (const std::vector<std::size_t>& each : uneven) {
      const operands<T, Op> x(c.size(), std::accumulate(each.begin(), each.end(), std::size_t{0}), kind, 14 + each[0]);
      for (const algorithm how : algorithms_of(operation_kind::reduce_scatter_v)) {
        c.world().algorithms().override_with(operation_kind::reduce_scatter_v, how);
        for (const scatter_shape form : {scatter_shape::counts, scatter_shape::list}) {
          auto check = check_reduce_scatter(c, x, each, form);
          co_await check;
        }
      }
    }
  }
}

}  // namespace oracle
