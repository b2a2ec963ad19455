// SPDX-License-Identifier: BSL-1.0
// What cohort costs over MPI: the same operation by raw calls of MPI and through communicator<mpi>, interleaved in one
// run, medians of blocks, and the median and quartiles of what the turns say one by one of cohort against each.
// mpirun -n P mpi_overhead [REPETITIONS [BYTES...]]
#include <cohort/backend/mpi.hpp>
#include <cohort/cohort.hpp>

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;
using cohort::task;

struct buffers {
  std::vector<float> in, out;
  explicit buffers(std::size_t bytes) : in(std::max<std::size_t>(1, bytes / 4), 1.0F), out(in.size()) {}
};

/// The value below which `part` of them lie.
double quantile(std::vector<double> all, double part) {
  std::sort(all.begin(), all.end());
  return all[static_cast<std::size_t>(part * static_cast<double>(all.size() - 1) + 0.5)];
}
double median(const std::vector<double>& all) { return quantile(all, 0.5); }

/// Turn by turn: what else the machine does meets both.
void print_against(const std::vector<double>& own, const std::vector<double>& other) {
  std::vector<double> ratios;
  std::vector<double> differences;
  for (std::size_t i = 0; i < own.size(); ++i) {
    ratios.push_back(own[i] / other[i]);
    differences.push_back((own[i] - other[i]) * 1e6);
  }
  // Of the quickest turns of either: what is left when nothing else runs.
  const double least = (quantile(own, 0) - quantile(other, 0)) * 1e6;
  std::printf(" %.3f (%.3f to %.3f), %+.2f, %+.2f |", median(ratios), quantile(ratios, 0.25), quantile(ratios, 0.75),
              median(differences), least);
}

/// As a program waits that has nothing else to do; the ranks may share a core.
void wait_for(MPI_Request& r) {
  int done = 0;
  for (int polls = 0; MPI_Test(&r, &done, MPI_STATUS_IGNORE), done == 0; ++polls) {
    if (polls > 50) ::sched_yield();
  }
}

/// Seconds a call, the slowest rank's; all ranks start together.
template <class Block>
double timed(int calls, Block block) {
  MPI_Barrier(MPI_COMM_WORLD);
  const auto start = clock_type::now();
  block(calls);
  double seconds = std::chrono::duration<double>(clock_type::now() - start).count() / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

struct contender {
  const char* name;
  void (*run)(cohort::communicator<cohort::mpi>& world, buffers& b, int calls);
};

void blocking(cohort::communicator<cohort::mpi>&, buffers& b, int calls) {
  for (int i = 0; i < calls; ++i) {
    MPI_Allreduce(b.in.data(), b.out.data(), static_cast<int>(b.in.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  }
}
void nonblocking(cohort::communicator<cohort::mpi>&, buffers& b, int calls) {
  for (int i = 0; i < calls; ++i) {
    MPI_Request r;
    MPI_Iallreduce(b.in.data(), b.out.data(), static_cast<int>(b.in.size()), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &r);
    wait_for(r);
  }
}
void through_cohort(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  for (int i = 0; i < calls; ++i) world.all_reduce(b.in, b.out, cohort::sum{}).wait();
}

void ping_pong(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  const int n = static_cast<int>(b.in.size());
  for (int i = 0; i < calls; ++i) {
    if (world.rank() == 0) {
      MPI_Send(b.in.data(), n, MPI_FLOAT, 1, 0, MPI_COMM_WORLD);
      MPI_Recv(b.out.data(), n, MPI_FLOAT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (world.rank() == 1) {
      MPI_Recv(b.out.data(), n, MPI_FLOAT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(b.in.data(), n, MPI_FLOAT, 0, 0, MPI_COMM_WORLD);
    }
  }
}
void cohort_ping_pong(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  for (int i = 0; i < calls; ++i) {
    if (world.rank() == 0) {
      world.send(b.in, cohort::to{1}).wait();
      world.recv(b.out, cohort::from{1}).wait();
    } else if (world.rank() == 1) {
      world.recv(b.out, cohort::from{0}).wait();
      world.send(b.in, cohort::to{0}).wait();
    }
  }
}

void compare(cohort::communicator<cohort::mpi>& world, const std::vector<contender>& all, std::size_t bytes,
             int repetitions, const char* setting) {
  buffers b(bytes);
  std::vector<std::vector<double>> times(all.size());
  int calls = 1;
  const auto set_up = [&](const contender& c) {
    if (c.run == through_cohort) world.algorithms().override_with(setting);
  };
  for (;;) {  // blocks of some milliseconds
    const double t = timed(calls, [&](int n) { all.front().run(world, b, n); });
    if (t * calls > 0.004 || calls >= 20000) break;
    calls *= 2;
  }
  for (int r = 0; r < repetitions; ++r) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      set_up(all[i]);
      times[i].push_back(timed(calls, [&](int n) { all[i].run(world, b, n); }));
    }
  }
  if (world.rank() != 0) return;
  std::printf("| %zu |", bytes);
  for (const auto& t : times) std::printf(" %.2f |", median(t) * 1e6);
  for (std::size_t i = 0; i + 1 < times.size(); ++i) print_against(times.back(), times[i]);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 15;
  std::vector<std::size_t> sizes{8, 1024, 16384, 65536, 262144, 1048576, 4194304};
  if (argc > 2) sizes.clear();
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  try {
    for (const auto check : {cohort::transport::native_check::never, cohort::transport::native_check::always}) {
      cohort::mpi_options o;
      o.check = check;
      cohort::communicator<cohort::mpi> world = cohort::connect<cohort::mpi>(o);
      const bool talks = world.rank() == 0;
      const char* const checked = check == cohort::transport::native_check::always ? "checked" : "not checked";
      for (const char* setting : {"", "all_reduce=native", "all_reduce=recursive_doubling", "all_reduce=circulant"}) {
        if (talks) {
          std::printf("\nall_reduce, %d ranks, microseconds a call; cohort: %s, %s\n", world.size(),
                      setting[0] == '\0' ? "as selected" : setting, checked);
          std::printf(
              "| bytes | MPI_Allreduce | MPI_Iallreduce | cohort | cohort / MPI_Allreduce (quartiles), difference, of "
              "the quickest | "
              "cohort / MPI_Iallreduce |\n|---|---|---|---|---|---|\n");
        }
        for (const std::size_t bytes : sizes) {
          compare(world, {{"blocking", blocking}, {"nonblocking", nonblocking}, {"cohort", through_cohort}}, bytes,
                  repetitions, setting);
        }
      }
      if (check == cohort::transport::native_check::never && world.size() > 1) {
        if (talks) {
          std::printf(
              "\nping-pong, microseconds there and back\n| bytes | MPI_Send, MPI_Recv | cohort | cohort / MPI "
              "(quartiles), "
              "difference, of the quickest |\n|---|---|---|---|\n");
        }
        for (const std::size_t bytes : sizes) {
          compare(world, {{"mpi", ping_pong}, {"cohort", cohort_ping_pong}}, bytes, repetitions, "");
        }
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
