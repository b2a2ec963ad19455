// SPDX-License-Identifier: BSL-1.0
// What an all_reduce in registered buffers of more ranks than processors takes at least: one process a processor does the work
// of all, and nobody has to be let in between. Used by bare.cpp.
#pragma once

#include "../measure.hpp"
#include "bare_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <string>

#include <unistd.h>

namespace bare {

/// The first ranks, one a processor, read everybody's input and write everybody's output; the others wait for these. That all
/// inputs are there is known from the barrier that measure.hpp has before each call of such a length, and is not asked again.
class over_memory_played : protected over_memory {
 public:
  /// `areas`: those of over_memory, and behind them one for each rank
  over_memory_played(const std::string& name, rank_area* areas, int rank, int ranks)
      : over_memory(name, areas, rank, ranks),
        players_(std::min(ranks, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)))),
        among_players_(areas + ranks + 2, rank, players_) {}
  using over_memory::barrier;
  using over_memory::keep;
  using over_memory::rank;
  using over_memory::size;

  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    const auto from = reachable(in), to = reachable(out);
    if (from == nullptr || to == nullptr || players_ == size() || n * sizeof(T) < (std::size_t{256} << 10)) none();
    const share cut(n, players_);
    among_players_.begin();
    if (rank() < players_) {
      among_players_.raise();
      among_players_.wait_for_all();
      fold_to_all<T>([&](int k) { return as<T>(to->of(k)); }, [&](int k) { return as<T>(from->of(k)); }, rank(), size(),
                     cut.begin(rank()), cut.size(rank()), goes_past_caches(n * sizeof(T)), op);
      among_players_.raise_second();
    }
    for (int k = 0; k < players_; ++k) among_players_.wait_for_second(k);
    among_players_.end();
  }

  template <class... T>
  void broadcast(const T&...) {
    none();
  }
  template <class... T>
  void reduce(const T&...) {
    none();
  }
  template <class... T>
  void all_gather(const T&...) {
    none();
  }
  template <class... T>
  void reduce_scatter(const T&...) {
    none();
  }
  template <class... T>
  void all_to_all(const T&...) {
    none();
  }
  template <class... T>
  void gather(const T&...) {
    none();
  }
  template <class... T>
  void scatter(const T&...) {
    none();
  }
  template <class... T>
  void scan(const T&...) {
    none();
  }
  template <class... T>
  void send(const T&...) {
    none();
  }
  template <class... T>
  void receive(const T&...) {
    none();
  }

 private:
  [[noreturn]] static void none() {
    throw measure::unsupported(
        "played are all_reduces of 256 KiB and more in registered buffers, by more ranks than processors");
  }

  int players_;
  steps among_players_;
};

}  // namespace bare
