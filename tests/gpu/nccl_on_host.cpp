// SPDX-License-Identifier: BSL-1.0
// communicator<nccl> among several ranks, every call against an oracle, where NCCL refuses to have them: on machines of one
// GPU or none. NCCL's functions are those of host_nccl.cpp, CUDA's those of host_runtime.cpp, each rank a thread with a
// device of its own: what is shown is which bytes go where in which order, and nothing of NCCL or a GPU.
#include <cohort/backend/nccl.hpp>
#include <cohort/mesh.hpp>
#include <cohort/nccl/quantised_all_reduce.hpp>
#include <cohort/sync_wait.hpp>

#include "float8_oracle.hpp"
#include "fold_by_host.hpp"
#include "nccl_ranks.hpp"
#include "support.hpp"
#include "values.hpp"

#include <vector>

namespace {

using namespace cohort;
using gpu_test::affine;
using gpu_test::compose;
using gpu_test::largest_magnitude;
using gpu_test::place;

template <class T>
std::vector<std::vector<T>> of_all(std::size_t ranks, std::size_t count) {
  std::vector<std::vector<T>> all;
  for (std::size_t r = 0; r < ranks; ++r) all.push_back(gpu_test::values<T>(static_cast<int>(r), count));
  return all;
}
template <class T>
std::vector<T> part_of(const std::vector<T>& all, std::size_t at, std::size_t count) {
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(at);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}
/// Block r of a list has a size of its own.
std::vector<std::size_t> uneven(std::size_t ranks, std::size_t count) {
  std::vector<std::size_t> counts;
  for (std::size_t r = 0; r < ranks; ++r) counts.push_back(count * (r % 3) + (r == 1 ? 5 : 0));
  return counts;
}
std::size_t sum_of(const std::vector<std::size_t>& counts, std::size_t first) {
  std::size_t total = 0;
  for (std::size_t r = 0; r < first; ++r) total += counts[r];
  return total;
}

template <class T, class Op>
task<> reductions(place p, std::size_t count, Op op, const char* name) {
  const auto same_count = of_all<T>(p.n, count);
  const std::vector<T> whole = gpu_test::folded_in_order<T>(same_count, op);
  auto a = p.filled(same_count[p.me]);
  auto b = p.filled(same_count[0]);
  co_await p.world.all_reduce(a, b, op, p.here);
  p.check(b, whole, name);
  p.check(a, same_count[p.me], name);
  co_await p.world.all_reduce(a, op, p.here);
  p.check(a, whole, name);
  for (int r = 0; r < p.world.size(); ++r) {
    copy_to_device<T>(same_count[p.me], a.device_view(), p.here.stream);
    co_await p.world.reduce(a, b, op, root{r}, p.here);
    if (r == p.world.rank()) p.check(b, whole, name);
  }
  co_await p.world.scan(a, b, op, p.here);
  const auto first_few = [&](std::size_t few) {
    return std::vector<std::vector<T>>(same_count.begin(), same_count.begin() + static_cast<std::ptrdiff_t>(few));
  };
  constexpr bool whole_only = has_prepare<Op, T> || has_finish<Op, T>;
  if constexpr (!whole_only) {
    p.check(b, gpu_test::folded_in_order<T>(first_few(p.me + 1), op), name);
    const T start = gpu_test::value_of<T>(77, 3);
    auto before = first_few(p.me);
    before.insert(before.begin(), std::vector<T>(count, start));
    co_await p.world.exclusive_scan(a, b, op, initial{start}, p.here);
    p.check(b, gpu_test::folded_in_order<T>(before, op), name);
  }

  const auto blocks = of_all<T>(p.n, count * p.n);
  const std::vector<T> mine = part_of(gpu_test::folded_in_order<T>(blocks, op), p.me * count, count);
  auto in = p.filled(blocks[p.me]);
  co_await p.world.reduce_scatter(in, b, op, p.here);
  p.check(b, mine, name);
  std::vector<device_span<T>> list;
  for (std::size_t r = 0; r < p.n; ++r) list.push_back(in.device_view().subspan(r * count, count));
  copy_to_device<T>(same_count[0], b.device_view(), p.here.stream);
  co_await p.world.reduce_scatter(list, b, op, p.here);
  p.check(b, mine, name);

  const std::vector<std::size_t> counts = uneven(p.n, count);
  const auto sized = of_all<T>(p.n, sum_of(counts, p.n));
  auto uneven_in = p.filled(sized[p.me]);
  device_buffer<T> own(counts[p.me]);
  co_await p.world.reduce_scatter_v(uneven_in, own, counts, op, p.here);
  p.check(own, part_of(gpu_test::folded_in_order<T>(sized, op), sum_of(counts, p.me), counts[p.me]), name);
}

template <class T>
std::vector<T> joined(const std::vector<std::vector<T>>& all) {
  std::vector<T> one;
  for (const auto& each : all) one.insert(one.end(), each.begin(), each.end());
  return one;
}

template <class T>
task<> moves(place p, std::size_t count) {
  const auto mine = of_all<T>(p.n, count);
  const auto blocks = of_all<T>(p.n, count * p.n);
  const std::vector<T> all = joined(mine);
  std::vector<T> dealt;
  for (std::size_t r = 0; r < p.n; ++r) {
    const std::vector<T> block = part_of(blocks[r], p.me * count, count);
    dealt.insert(dealt.end(), block.begin(), block.end());
  }
  auto a = p.filled(mine[p.me]);
  auto in = p.filled(blocks[p.me]);
  auto out = p.filled(blocks[0]);
  const auto cut = [&](device_buffer<T>& whole) {
    std::vector<device_span<T>> list;
    for (std::size_t r = 0; r < p.n; ++r) list.push_back(whole.device_view().subspan(r * count, count));
    return list;
  };
  const auto ins = cut(in);
  const auto outs = cut(out);
  const auto reset = [&] { copy_to_device<T>(blocks[0], out.device_view(), p.here.stream); };
  co_await p.world.all_gather(a, out, p.here);
  p.check(out, all, "all_gather");
  reset();
  co_await p.world.all_gather(a, outs, p.here);
  p.check(out, all, "all_gather into a list");
  reset();
  co_await p.world.all_to_all(in, out, p.here);
  p.check(out, dealt, "all_to_all");
  reset();
  co_await p.world.all_to_all(ins, outs, p.here);
  p.check(out, dealt, "all_to_all of lists");
  for (int r = 0; r < p.world.size(); ++r) {
    const bool at_root = r == p.world.rank();
    reset();
    co_await p.world.gather(a, out, root{r}, p.here);
    p.check(out, at_root ? all : blocks[0], "gather");
    reset();
    co_await p.world.gather(a, outs, root{r}, p.here);
    p.check(out, at_root ? all : blocks[0], "gather into a list");
    const std::vector<T> share = part_of(blocks[static_cast<std::size_t>(r)], p.me * count, count);
    co_await p.world.scatter(in, a, root{r}, p.here);
    p.check(a, share, "scatter");
    copy_to_device<T>(mine[p.me], a.device_view(), p.here.stream);
    co_await p.world.scatter(ins, a, root{r}, p.here);
    p.check(a, share, "scatter of a list");
    copy_to_device<T>(mine[p.me], a.device_view(), p.here.stream);
    co_await p.world.broadcast(a, root{r}, p.here);
    p.check(a, mine[static_cast<std::size_t>(r)], "broadcast");
    copy_to_device<T>(mine[p.me], a.device_view(), p.here.stream);
  }
}

task<> uneven_moves(place p, std::size_t count) {
  using T = int;
  const std::vector<std::size_t> counts = uneven(p.n, count);
  const std::size_t all = sum_of(counts, p.n);
  std::vector<std::vector<T>> own;
  for (std::size_t r = 0; r < p.n; ++r) own.push_back(gpu_test::values<T>(static_cast<int>(r), counts[r]));
  const std::vector<T> expected = joined(own);
  const std::vector<T> nothing(all, -1);
  auto a = p.filled(own[p.me]);
  auto out = p.filled(nothing);
  co_await p.world.all_gather_v(a, out, counts, p.here);
  p.check(out, expected, "all_gather_v");
  for (int r = 0; r < p.world.size(); ++r) {
    copy_to_device<T>(nothing, out.device_view(), p.here.stream);
    co_await p.world.gather_v(a, out, counts, root{r}, p.here);
    p.check(out, r == p.world.rank() ? expected : nothing, "gather_v");
    auto whole = p.filled(gpu_test::values<T>(p.world.rank(), all));
    co_await p.world.scatter_v(whole, counts, a, root{r}, p.here);
    p.check(a, part_of(gpu_test::values<T>(r, all), sum_of(counts, p.me), counts[p.me]), "scatter_v");
    copy_to_device<T>(own[p.me], a.device_view(), p.here.stream);
  }
  // Rank r sends j * count + r elements to rank j.
  std::vector<std::size_t> sends;
  std::vector<std::size_t> gets;
  for (std::size_t r = 0; r < p.n; ++r) {
    sends.push_back(r * count + p.me);
    gets.push_back(p.me * count + r);
  }
  auto from = p.filled(gpu_test::values<T>(p.world.rank(), sum_of(sends, p.n)));
  device_buffer<T> to(sum_of(gets, p.n));
  co_await p.world.all_to_all_v(from, sends, to, gets, p.here);
  std::vector<T> dealt;
  for (std::size_t r = 0; r < p.n; ++r) {
    std::size_t at = 0;
    for (std::size_t j = 0; j < p.me; ++j) at += j * count + r;
    const auto theirs = gpu_test::values<T>(static_cast<int>(r), at + gets[r]);
    dealt.insert(dealt.end(), theirs.begin() + static_cast<std::ptrdiff_t>(at), theirs.end());
  }
  p.check(to, dealt, "all_to_all_v");
}

// A ring by every way there is; tags decide in a batch, whatever the order in which its messages are named.
task<> messages(place p, std::size_t count) {
  const int n = p.world.size();
  const to next{(p.world.rank() + 1) % n};
  const from before{(p.world.rank() + n - 1) % n};
  const auto mine = gpu_test::values<float>(p.world.rank(), 3 * count);
  const auto theirs = gpu_test::values<float>(before.rank, 3 * count);
  auto a = p.filled(mine);
  const std::vector<float> nothing(3 * count, -1.0f);
  auto b = p.filled(nothing);
  co_await p.world.exchange(a, next, b, before, p.here);
  p.check(b, theirs, "exchange");
  copy_to_device<float>(nothing, b.device_view(), p.here.stream);
  const auto both = [&](const auto& g) {
    (void)g.recv(b, before, p.here);
    (void)g.send(a, next, p.here);
  };
  co_await p.world.group(both, p.here);
  p.check(b, theirs, "messages of a group");
  const auto of = [&](device_buffer<float>& whole, std::size_t i) {
    return whole.device_view().subspan(i * count, count);
  };
  copy_to_device<float>(nothing, b.device_view(), p.here.stream);
  auto some = p.world.batch(sending(of(a, 0), next, tag{9}), sending(of(a, 1), next, tag{4}),
                            sending(of(a, 2), next, tag{9}), receiving(of(b, 1), before, tag{4}),
                            receiving(of(b, 0), before, tag{9}), receiving(of(b, 2), before, tag{9}), p.here);
  co_await some.all();
  p.check(b, theirs, "a batch");
  copy_to_device<float>(nothing, b.device_view(), p.here.stream);
  std::vector<device_message> list;
  for (std::size_t i = 0; i < 3; ++i) {
    // Ranks name them in orders of their own.
    const std::size_t k = (i + p.me) % 3;
    list.push_back(receiving(of(b, k), before, tag{static_cast<int>(k)}));
    list.push_back(sending(of(a, 2 - k), next, tag{static_cast<int>(2 - k)}));
  }
  co_await p.world.batch(list, p.here);
  p.check(b, theirs, "a batch in another order on every rank");
  if (n > 1) {
    if (p.world.rank() == 0) co_await p.world.send(a, to{1}, p.here);
    if (p.world.rank() == 1) {
      co_await p.world.recv(b, from{0}, p.here);
      p.check(b, gpu_test::values<float>(0, 3 * count), "send and recv");
    }
  }
}

task<> several(place p, std::size_t count) {
  const auto one = of_all<float>(p.n, count);
  const auto two = of_all<int>(p.n, count + 3);
  auto a = p.filled(one[p.me]);
  auto b = p.filled(one[p.me]);
  std::vector<device_span<float>> both{a.device_view(), b.device_view()};
  co_await p.world.all_reduce_coalesced(both, sum{}, p.here);
  p.check(a, gpu_test::folded_in_order<float>(one, sum{}), "all_reduce_coalesced");
  p.check(b, gpu_test::folded_in_order<float>(one, sum{}), "all_reduce_coalesced");
  copy_to_device<float>(one[p.me], a.device_view(), p.here.stream);
  both.pop_back();
  co_await p.world.all_reduce_coalesced(both, largest_magnitude{}, p.here);
  p.check(a, gpu_test::folded_in_order<float>(one, largest_magnitude{}), "all_reduce_coalesced by a fold");
  auto c = p.filled(two[p.me]);
  device_buffer<int> gathered((count + 3) * p.n);
  const std::vector<device_span<int>> from(1, c.device_view());
  const std::vector<device_span<int>> into(1, gathered.device_view());
  co_await p.world.all_gather_coalesced(from, into, p.here);
  p.check(gathered, joined(two), "all_gather_coalesced");
  auto blocks = p.filled(std::vector<int>(p.n * count, 1));
  device_buffer<int> block(count);
  const std::vector<device_span<int>> whole(1, blocks.device_view());
  const std::vector<device_span<int>> own(1, block.device_view());
  co_await p.world.reduce_scatter_coalesced(whole, own, sum{}, p.here);
  p.check(block, std::vector<int>(count, p.world.size()), "reduce_scatter_coalesced");
  auto window = p.world.make_window<float>(count + 1);
  CHECK(window.registered() == (p.n > 1) && window.size() == count + 1);
  const auto longer = of_all<float>(p.n, count + 1);
  copy_to_device<float>(longer[p.me], window.device_view(), p.here.stream);
  co_await p.world.all_reduce(window, cohort::min{}, p.here);
  p.check_view<float>(window.device_view(), gpu_test::folded_in_order<float>(longer, cohort::min{}), "in a window");
  co_await p.world.barrier(p.here);
}

/// 8-bit floats on the wire, cut into chunks or not.
template <class Blocks, class T, class Op>
task<> quantised(place p, Op op, bool divides) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{129}, std::size_t{30001}}) {
    std::vector<std::vector<float>> in;
    std::vector<T> mine;
    for (int r = 0; r < p.world.size(); ++r) {
      in.emplace_back();
      for (const float x : gpu_test::float8_values(r, count)) {
        if (r == p.world.rank()) mine.push_back(T(x));
        in.back().push_back(static_cast<float>(T(x)));
      }
    }
    std::vector<T> expected;
    for (const float x : gpu_test::float8_summed<Blocks>(in, divides ? static_cast<float>(p.n) : 1.0f)) {
      expected.push_back(T(x));
    }
    auto a = p.filled(mine);
    co_await quantised_all_reduce(p.world, a.device_view(), op, Blocks{}, p.here);
    p.check(a, expected, "quantised_all_reduce");
  }
}

// Groups of every making: their ranks, whom they talk to, and who they are in the world.
task<> groups(place p) {
  const int n = p.world.size();
  const int mine = p.world.rank();
  const auto total_of = [](const communicator<nccl>& g, on here) {
    const place in{g, here};
    auto one = in.filled(std::vector<int>{1000 + g.rank()});
    (void)g.all_reduce(one, sum{}, here);
    return in.read(one.device_view())[0];
  };
  communicator<nccl> half = co_await p.world.split(color{mine % 2}, key{-mine});
  const int size = (n + 1 - mine % 2) / 2;
  CHECK(half.size() == size && half.rank() == size - 1 - mine / 2);
  CHECK(total_of(half, p.here) == 1000 * size + size * (size - 1) / 2);
  if (n > 1) {
    CHECK(gpu_test::throws(
        errc::invalid_argument, [&] { (void)half.world_rank_of(0); }, "world_rank_of on 'world/", "made by split"));
  }
  communicator<nccl> backwards = [&] {
    std::vector<int> list;
    for (int r = n; r-- > 0;) list.push_back(r);
    return communicator<nccl>(p.world.subgroup(list, named{"backwards"}));
  }();
  CHECK(backwards.rank() == n - 1 - mine && backwards.name() == "backwards");
  CHECK(backwards.world_rank_of(0) == n - 1 && backwards.rank_of(0) == n - 1);
  CHECK(total_of(backwards, p.here) == 1000 * n + n * (n - 1) / 2);
  // A group of a group: its members by their ranks in the world.
  const communicator<nccl> first = backwards.subgroup(ranks{0});
  CHECK(first.is_member() == (mine == n - 1) && (!first.is_member() || first.world_rank_of(0) == n - 1));
  // The members alone call, each as often as it is one.
  for (int r = 0; r < n; ++r) {
    const int next = (r + 1) % n;
    if (n < 2 || (mine != r && mine != next)) continue;
    const communicator<nccl> pair = co_await p.world.subgroup(ranks{next, r});
    CHECK(pair.size() == 2 && pair.rank() == (mine == r ? 1 : 0) && pair.world_rank_of(1) == r);
    CHECK(pair.timeout_after() == p.world.timeout_after() && pair.name() == "world/subgroup");
    CHECK(total_of(pair, p.here) == 2001);
  }
  if (mine != 0) {
    const communicator<nccl> rest = co_await p.world.subgroup([&] {
      std::vector<int> list;
      for (int r = 1; r < n; ++r) list.push_back(r);
      return list;
    }());
    CHECK(rest.size() == n - 1 && rest.rank() == mine - 1 && rest.rank_of(0) == -1);
  } else if (n > 1) {
    const communicator<nccl> none = co_await p.world.subgroup(ranks{1});
    CHECK(!none.is_member() && none.rank() == -1);
  }
  const communicator<nccl> copy = co_await p.world.duplicate();
  CHECK(copy.rank() == mine && copy.size() == n && copy.name() == "world/copy" && copy.rank_of(n - 1) == n - 1);
  if (n % 2 == 0) {
    auto grid = co_await make_mesh(p.world, axis{"data", 2}, axis{"tensor", n / 2});
    const communicator<nccl>& row = grid.along("tensor");
    const communicator<nccl>& column = grid.along("data");
    CHECK(row.size() == n / 2 && row.rank() == mine % (n / 2) && column.size() == 2);
    CHECK(row.world_rank_of(0) == mine / (n / 2) * (n / 2));
    CHECK(column.world_rank_of(1) == mine % (n / 2) + n / 2);
    CHECK(total_of(row, p.here) == 1000 * (n / 2) + n / 2 * (n / 2 - 1) / 2);
    CHECK(total_of(column, p.here) == 2001);
  }
  if (n > 2 && mine != 1) {
    const communicator<nccl> left = p.world.shrink(ranks{1});
    CHECK(left.size() == n - 1 && left.rank() == (mine == 0 ? 0 : mine - 1));
    CHECK(left.rank_of(1) == -1 && left.world_rank_of(1) == 2);
  }
}

task<> everything(const communicator<nccl>& world, on here) {
  const place p{world, here};
  for (const bool in_chunks : {false, true}) {
    if (in_chunks) world.set_fold_sizes(64, 4096);
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{5003}}) {
      co_await reductions<float>(p, count, sum{}, "sum");
      co_await reductions<int>(p, count, cohort::max{}, "max");
      co_await reductions<float>(p, count, average{}, "average");
      co_await reductions<float>(p, count, premultiplied_sum{0.5f}, "premultiplied sum");
      co_await reductions<float>(p, count, folded{sum{}}, "folded sum");
      co_await reductions<float>(p, count, largest_magnitude{}, "largest magnitude");
      co_await reductions<affine>(p, count, compose{}, "affine");
      co_await moves<float>(p, count);
      co_await moves<affine>(p, count);
      co_await uneven_moves(p, count);
      co_await messages(p, count);
      co_await several(p, count);
    }
    co_await quantised<float8_blocks<>, float>(p, sum{}, false);
    co_await quantised<float8_blocks<float8_e5m2, 32>, bfloat16>(p, average{}, true);
  }
  co_await groups(p);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int n : {1, 2, 3, 4, 5}) {
    for (const bool blocking : {false, true}) {
      gpu_test::on_ranks(
          n, [](communicator<nccl>& world, on here) { sync_wait(everything(world, here)); }, blocking);
    }
  }
  return gpu_test::conclude("nccl_on_host");
}
