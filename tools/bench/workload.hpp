// SPDX-License-Identifier: BSL-1.0
// One cell of a measurement on one rank: the buffers of one size, the call that is timed, and the check of what came
// out. Made for every element type in type_*.cpp, run by measure.cpp, which knows no types.
#pragma once

#include "options.hpp"
#include "values.hpp"

#include <cohort/backend/cpu.hpp>
#include <cohort/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace cohort::tool {

using world_type = communicator<cpu>;

/// What is timed and how its result is checked, without its types.
struct workload {
  std::string label;             ///< what stands in the column of the functor
  std::size_t bytes = 0;         ///< the larger of one rank's input and output
  std::size_t count = 0;         ///< the same in elements
  std::size_t choice_bytes = 0;  ///< what the choice of an algorithm looks at
  bool commutative = true;
  int calls_in_one = 1;  ///< messages that one `call` sends one after the other
  std::function<void(int call)> call;
  std::function<void()> spoil;  ///< fills the output with what no result is
  std::function<long()> wrong;  ///< elements that are wrong on this rank after the last call
};

/// Memory for elements, page by page its own, touched before anything is timed. The one place where the buffers of a
/// measurement come from.
template <class T>
class bench_memory {
 public:
  explicit bench_memory(std::size_t count)
      : count_(count), data_(static_cast<T*>(::operator new (count * sizeof(T) + page, std::align_val_t{page}))) {
    spoil();
  }
  bench_memory(const bench_memory&) = delete;
  bench_memory& operator=(const bench_memory&) = delete;
  ~bench_memory() { ::operator delete (data_, std::align_val_t{page}); }
  [[nodiscard]] std::span<T> all() const noexcept { return {data_, count_}; }
  void spoil() const noexcept { std::memset(static_cast<void*>(data_), 0x55, count_ * sizeof(T)); }

 private:
  static constexpr std::size_t page = 4096;
  std::size_t count_;
  T* data_;
};

template <class T>
struct cell {
  world_type* world;
  int rank, ranks;
  std::optional<int> fixed_root;
  functor_kind functor;
  std::size_t whole, block;
  bench_memory<T> in, out;
  std::vector<std::size_t> counts;
  int last_root = 0;
  registration in_kept, out_kept;

  cell(world_type& w, const bench_options& o, std::size_t whole_count, std::size_t block_count, std::size_t in_count,
       std::size_t out_count)
      : world(&w),
        rank(w.rank()),
        ranks(w.size()),
        fixed_root(o.root),
        functor(o.functor),
        whole(whole_count),
        block(block_count),
        in(in_count),
        out(out_count),
        counts(static_cast<std::size_t>(w.size()), block_count) {
    for (std::size_t i = 0; i < in_count; ++i) in.all()[i] = held(rank, i);
    if (o.registered && in_count > 0) in_kept = world->register_memory(in.all());
    if (o.registered && out_count > 0) out_kept = world->register_memory(out.all());
  }
  [[nodiscard]] T held(int by, std::size_t index) const {
    return element_of<T>(static_cast<double>(input_value(functor, by, index)));
  }
  [[nodiscard]] T combined(int first, int last, std::size_t index) const {
    return element_of<T>(combined_value(functor, first, last, index));
  }
  [[nodiscard]] root next_root(int call) { return root{last_root = fixed_root.value_or(call % ranks)}; }
  template <class Expected>
  [[nodiscard]] long wrong(const Expected& expected) const {
    long found = 0;
    for (std::size_t i = 0; i < out.all().size(); ++i) found += !(out.all()[i] == expected(i));
    return found;
  }
};

template <class T>
using shared_cell = std::shared_ptr<cell<T>>;

/// The operations that combine, all_reduce apart, with one functor.
template <class T, class Op>
void set_reduction(workload& w, operation_kind kind, const shared_cell<T>& c, const Op& op) {
  w.commutative = is_commutative<Op, T>;
  const auto total = [c](std::size_t i) { return c->combined(0, c->ranks - 1, i); };
  const auto own_block = [c](std::size_t i) {
    return c->combined(0, c->ranks - 1, static_cast<std::size_t>(c->rank) * c->block + i);
  };
  switch (kind) {
    case operation_kind::reduce:
      w.call = [c, op](int call) { c->world->reduce(c->in.all(), c->out.all(), op, c->next_root(call)).wait(); };
      w.wrong = [c, total] { return c->rank == c->last_root ? c->wrong(total) : 0; };
      break;
    case operation_kind::reduce_scatter:
      w.call = [c, op](int) { c->world->reduce_scatter(c->in.all(), c->out.all(), op).wait(); };
      w.wrong = [c, own_block] { return c->wrong(own_block); };
      break;
    case operation_kind::reduce_scatter_v:
      w.call = [c, op](int) { c->world->reduce_scatter_v(c->in.all(), c->out.all(), c->counts, op).wait(); };
      w.wrong = [c, own_block] { return c->wrong(own_block); };
      break;
    case operation_kind::scan:
      w.call = [c, op](int) { c->world->scan(c->in.all(), c->out.all(), op).wait(); };
      w.wrong = [c] { return c->wrong([&](std::size_t i) { return c->combined(0, c->rank, i); }); };
      break;
    default:  // exclusive_scan; what rank 0 gets is the value that stands before its own
      w.call = [c, op](int) { c->world->exclusive_scan(c->in.all(), c->out.all(), op, initial{c->held(0, 0)}).wait(); };
      w.wrong = [c, op] {
        return c->wrong([&](std::size_t i) {
          const T start = c->held(0, 0);
          return c->rank == 0 ? start : static_cast<T>(op(start, c->combined(0, c->rank - 1, i)));
        });
      };
      break;
  }
}

template <class T>
void set_functor(workload& w, operation_kind kind, const shared_cell<T>& c) {
  switch (c->functor) {
    case functor_kind::max: return set_reduction(w, kind, c, max{});
    case functor_kind::user: return set_reduction(w, kind, c, user_functor{});
    default: return set_reduction(w, kind, c, sum{});
  }
}

/// All functors, for one operation: for every operation they would take minutes more to compile.
template <class T>
void set_all_reduce(workload& w, const shared_cell<T>& c) {
  const auto with = [&](const auto& op) {
    using Op = std::remove_cvref_t<decltype(op)>;
    w.commutative = is_commutative<Op, T>;
    w.call = [c, op](int) { c->world->all_reduce(c->in.all(), c->out.all(), op).wait(); };
    w.wrong = [c] { return c->wrong([&](std::size_t i) { return c->combined(0, c->ranks - 1, i); }); };
  };
  switch (c->functor) {
    case functor_kind::sum: return with(sum{});
    case functor_kind::product: return with(product{});
    case functor_kind::min: return with(min{});
    case functor_kind::max: return with(max{});
    case functor_kind::logical_and: return with(logical_and{});
    case functor_kind::logical_or: return with(logical_or{});
    case functor_kind::premultiplied_sum: return with(premultiplied_sum{premultiplier});
    case functor_kind::user: return with(user_functor{});
    default: break;
  }
  if constexpr (std::integral<T>) {
    if (c->functor == functor_kind::bit_and) return with(bit_and{});
    if (c->functor == functor_kind::bit_or) return with(bit_or{});
    return with(bit_xor{});
  } else {
    return with(average{});
  }
}

/// The operations that only move elements.
template <class T>
void set_movement(workload& w, operation_kind kind, const shared_cell<T>& c) {
  const auto gathered = [c](std::size_t i) { return c->held(static_cast<int>(i / c->block), i % c->block); };
  const auto mine = [c](std::size_t i) { return static_cast<std::size_t>(c->rank) * c->block + i; };
  const auto exchanged = [c, mine](std::size_t i) {
    return c->held(static_cast<int>(i / c->block), mine(i % c->block));
  };
  const auto check_gathered = [c, gathered] { return c->wrong(gathered); };
  const auto check_at_root = [c, gathered] { return c->rank == c->last_root ? c->wrong(gathered) : 0; };
  const auto check_scattered = [c, mine] {
    return c->wrong([&](std::size_t i) { return c->held(c->last_root, mine(i)); });
  };
  switch (kind) {
    case operation_kind::broadcast:
      w.call = [c](int call) {
        const root r = c->next_root(call);
        c->world->broadcast(c->rank == r.rank ? c->in.all() : c->out.all(), r).wait();
      };
      w.wrong = [c] {
        return c->rank == c->last_root ? 0 : c->wrong([&](std::size_t i) { return c->held(c->last_root, i); });
      };
      break;
    case operation_kind::scatter:
      w.call = [c](int call) { c->world->scatter(c->in.all(), c->out.all(), c->next_root(call)).wait(); };
      w.wrong = check_scattered;
      break;
    case operation_kind::scatter_v:
      w.call = [c](int call) { c->world->scatter_v(c->in.all(), c->counts, c->out.all(), c->next_root(call)).wait(); };
      w.wrong = check_scattered;
      break;
    case operation_kind::gather:
      w.call = [c](int call) { c->world->gather(c->in.all(), c->out.all(), c->next_root(call)).wait(); };
      w.wrong = check_at_root;
      break;
    case operation_kind::gather_v:
      w.call = [c](int call) { c->world->gather_v(c->in.all(), c->out.all(), c->counts, c->next_root(call)).wait(); };
      w.wrong = check_at_root;
      break;
    case operation_kind::all_gather:
      w.call = [c](int) { c->world->all_gather(c->in.all(), c->out.all()).wait(); };
      w.wrong = check_gathered;
      break;
    case operation_kind::all_gather_v:
      w.call = [c](int) { c->world->all_gather_v(c->in.all(), c->out.all(), c->counts).wait(); };
      w.wrong = check_gathered;
      break;
    case operation_kind::all_to_all:
      w.call = [c](int) { c->world->all_to_all(c->in.all(), c->out.all()).wait(); };
      w.wrong = [c, exchanged] { return c->wrong(exchanged); };
      break;
    case operation_kind::all_to_all_v:
      w.call = [c](int) { c->world->all_to_all_v(c->in.all(), c->counts, c->out.all(), c->counts).wait(); };
      w.wrong = [c, exchanged] { return c->wrong(exchanged); };
      break;
    case operation_kind::exchange: {  // round the ring
      const int next = (c->rank + 1) % c->ranks, before = (c->rank + c->ranks - 1) % c->ranks;
      w.call = [c, next, before](int) { c->world->exchange(c->in.all(), to{next}, c->out.all(), from{before}).wait(); };
      w.wrong = [c, before] { return c->wrong([&](std::size_t i) { return c->held(before, i); }); };
      break;
    }
    default:
      w.call = [c](int) { c->world->barrier().wait(); };
      w.wrong = [] { return 0L; };
      break;
  }
}

/// Between ranks 0 and 1; the others only meet them at the barriers.
template <class T>
void set_ping_pong(workload& w, const shared_cell<T>& c) {
  const int peer = 1 - c->rank;
  w.label = "ping-pong";
  w.calls_in_one = 2;
  w.wrong = [c, peer] { return c->rank > 1 ? 0 : c->wrong([&](std::size_t i) { return c->held(peer, i); }); };
  w.call = [c, peer](int) {
    if (c->rank > 1) return;
    if (c->rank == 0) c->world->send(c->in.all(), to{peer}).wait();
    c->world->recv(c->out.all(), from{peer}).wait();
    if (c->rank == 1) c->world->send(c->in.all(), to{peer}).wait();
  };
}

/// Rank 0 to rank 1, many in flight, and an answer at the end.
template <class T>
void set_one_way(workload& w, const shared_cell<T>& c) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  int window = 64;
  while (window > 2 && static_cast<std::size_t>(window) * w.bytes > most_bytes) window /= 2;
  w.label = "one-way";
  w.calls_in_one = window;
  w.wrong = [c] { return c->rank != 1 ? 0 : c->wrong([&](std::size_t i) { return c->held(0, i); }); };
  w.call = [c, window](int) {
    char answer = 0;
    if (c->rank == 0) {
      std::vector<operation<>> flying;
      for (int i = 0; i < window; ++i) flying.push_back(c->world->send(c->in.all(), to{1}));
      for (auto& each : flying) each.wait();
      c->world->recv(std::span(&answer, 1), from{1}).wait();
    } else if (c->rank == 1) {
      std::vector<operation<received>> flying;
      for (int i = 0; i < window; ++i) flying.push_back(c->world->recv(c->out.all(), from{0}));
      for (auto& each : flying) each.wait();
      c->world->send(std::span(&answer, 1), to{0}).wait();
    }
  };
}

/// The work of one size; of two kinds for p2p.
template <class T>
[[nodiscard]] std::vector<workload> workloads_of(world_type& world, const bench_options& options, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(world.size());
  const operation_kind kind = options.kind.value_or(operation_kind::send);
  const auto is = [kind](auto... any) { return ((kind == any) || ...); };
  const bool gathers =
      is(operation_kind::gather, operation_kind::gather_v, operation_kind::all_gather, operation_kind::all_gather_v);
  const bool scatters = is(operation_kind::scatter, operation_kind::scatter_v, operation_kind::reduce_scatter,
                           operation_kind::reduce_scatter_v);
  const bool in_blocks = gathers || scatters || is(operation_kind::all_to_all, operation_kind::all_to_all_v);
  std::size_t whole = bytes / sizeof(T);
  const std::size_t block = std::max<std::size_t>(1, whole / ranks);
  if (in_blocks) whole = block * ranks;
  const auto make = [&] {
    return std::make_shared<cell<T>>(world, options, whole, block, gathers ? block : whole, scatters ? block : whole);
  };
  workload w;
  w.bytes = whole * sizeof(T);
  w.count = whole;
  w.choice_bytes = w.bytes;
  if (is(operation_kind::gather, operation_kind::scatter, operation_kind::all_to_all))
    w.choice_bytes = block * sizeof(T);
  if (is(operation_kind::gather_v, operation_kind::scatter_v, operation_kind::all_to_all_v)) w.choice_bytes = 0;
  const shared_cell<T> c = make();
  w.spoil = [c] { c->out.spoil(); };
  std::vector<workload> all;
  if (!options.kind) {
    all.assign(2, w);
    set_ping_pong(all[0], c);
    set_one_way(all[1], c);
    return all;
  }
  if (reduces(options)) {
    w.label = std::string(name_of(options.functor));
    if (kind == operation_kind::all_reduce) set_all_reduce(w, c);
    else set_functor(w, kind, c);
  } else {
    set_movement(w, kind, c);
  }
  all.push_back(std::move(w));
  return all;
}

extern template std::vector<workload> workloads_of<float>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<double>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<half>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<bfloat16>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<std::int8_t>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<std::int16_t>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<std::int32_t>(world_type&, const bench_options&, std::size_t);
extern template std::vector<workload> workloads_of<std::int64_t>(world_type&, const bench_options&, std::size_t);

/// The same for the type that the options name.
[[nodiscard]] std::vector<workload> make_workloads(world_type& world, const bench_options& options, std::size_t bytes);

}  // namespace cohort::tool
