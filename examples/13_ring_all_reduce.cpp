// SPDX-License-Identifier: BSL-1.0
// adds: a collective of your own, out of messages: the ring all-reduce that the PyTorch tutorial writes by hand, and
// its exercise, the one in blocks, that sends 2 (P-1)/P of the data instead of P-1 times all of it.
#include <cohort/cohort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <span>
#include <utility>
#include <vector>

using world_type = cohort::communicator<cohort::cpu>;

// The tutorial's: everybody's data goes all the way round.
cohort::task<> ring_all_reduce(world_type& world, std::span<const float> in, std::span<float> out) {
  const int size = world.size();
  std::vector<float> outgoing(in.begin(), in.end());
  std::vector<float> incoming(in.size());
  std::vector<float> sum(in.begin(), in.end());
  for (int step = 0; step + 1 < size; ++step) {
    auto sending = world.send(outgoing, cohort::to{(world.rank() + 1) % size});
    co_await world.recv(incoming, cohort::from{(world.rank() + size - 1) % size});
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += incoming[i];
    co_await sending;
    std::swap(outgoing, incoming);
  }
  std::copy(sum.begin(), sum.end(), out.begin());
}

// In blocks: first each block's sum travels round and ends at one rank, then the finished blocks travel round.
cohort::task<> ring_all_reduce_in_blocks(world_type& world, std::span<float> data) {
  const int size = world.size();
  const auto block = [&](int b) {
    const auto edge = [&](int k) { return data.size() * static_cast<std::size_t>(k) / static_cast<std::size_t>(size); };
    const int k = ((b % size) + size) % size;
    return data.subspan(edge(k), edge(k + 1) - edge(k));
  };
  std::vector<float> room(data.size());
  for (int step = 0; step < 2 * (size - 1); ++step) {
    const bool adding = step < size - 1;
    const std::span<float> arrives = block(world.rank() - step - 1);
    const std::span<float> incoming = adding ? std::span(room).first(arrives.size()) : arrives;
    auto sending = world.send(block(world.rank() - step), cohort::to{(world.rank() + 1) % size});
    co_await world.recv(incoming, cohort::from{(world.rank() + size - 1) % size});
    for (std::size_t i = 0; adding && i < arrives.size(); ++i) arrives[i] += incoming[i];
    co_await sending;
  }
}

cohort::task<int> compare(world_type world) {
  std::vector<float> mine(1000);  // whole numbers, so that the order of the additions does not show
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<float>(i) * static_cast<float>(world.rank() + 1);

  std::vector<float> whole(mine.size());
  co_await ring_all_reduce(world, mine, whole);
  std::vector<float> blocks = mine;
  co_await ring_all_reduce_in_blocks(world, blocks);
  co_await world.all_reduce(mine, cohort::sum{});

  const bool equal = whole == mine && blocks == mine;
  std::printf("rank %d: element 999 is %g by hand, %g in blocks, %g by all_reduce\n", world.rank(), whole[999],
              blocks[999], mine[999]);
  co_return equal ? 0 : 1;
}

int main() { return cohort::run(compare); }
