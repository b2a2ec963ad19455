// SPDX-License-Identifier: BSL-1.0
// What cohort costs over MPI: the same operation by raw calls of MPI and through communicator<mpi>, interleaved in one
// run, medians of blocks, and the median and quartiles of what the turns say one by one of cohort against each.
// mpirun -n P mpi_overhead [all_reduce|broadcast|barrier|ping-pong] [REPETITIONS [BYTES...]]
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

void blocking_broadcast(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  const int n = static_cast<int>(b.in.size());
  for (int i = 0; i < calls; ++i) MPI_Bcast(b.in.data(), n, MPI_FLOAT, i % world.size(), MPI_COMM_WORLD);
}
void nonblocking_broadcast(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  const int n = static_cast<int>(b.in.size());
  for (int i = 0; i < calls; ++i) {
    MPI_Request r;
    MPI_Ibcast(b.in.data(), n, MPI_FLOAT, i % world.size(), MPI_COMM_WORLD, &r);
    wait_for(r);
  }
}
// From one rank after the other: a root that need not wait for anybody would run ahead.
void cohort_broadcast(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  for (int i = 0; i < calls; ++i) world.broadcast(b.in, cohort::root{i % world.size()}).wait();
}

void blocking_barrier(cohort::communicator<cohort::mpi>&, buffers&, int calls) {
  for (int i = 0; i < calls; ++i) MPI_Barrier(MPI_COMM_WORLD);
}
void nonblocking_barrier(cohort::communicator<cohort::mpi>&, buffers&, int calls) {
  for (int i = 0; i < calls; ++i) {
    MPI_Request r;
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    wait_for(r);
  }
}
void cohort_barrier(cohort::communicator<cohort::mpi>& world, buffers&, int calls) {
  for (int i = 0; i < calls; ++i) world.barrier().wait();
}

/// There and back between ranks 0 and 1.
template <class Send, class Receive>
void ping_pong(const cohort::communicator<cohort::mpi>& world, int calls, Send send, Receive receive) {
  if (world.rank() > 1) return;
  const int peer = 1 - world.rank();
  for (int i = 0; i < calls; ++i) {
    if (world.rank() == 0) send(peer);
    receive(peer);
    if (world.rank() == 1) send(peer);
  }
}
void blocking_messages(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  const int n = static_cast<int>(b.in.size());
  const auto send = [&](int peer) { MPI_Send(b.in.data(), n, MPI_FLOAT, peer, 0, MPI_COMM_WORLD); };
  const auto receive = [&](int peer) {
    MPI_Recv(b.out.data(), n, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  ping_pong(world, calls, send, receive);
}
void nonblocking_messages(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  const int n = static_cast<int>(b.in.size());
  MPI_Request r;
  const auto send = [&](int peer) {
    MPI_Isend(b.in.data(), n, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &r);
    wait_for(r);
  };
  const auto receive = [&](int peer) {
    MPI_Irecv(b.out.data(), n, MPI_FLOAT, peer, 0, MPI_COMM_WORLD, &r);
    wait_for(r);
  };
  ping_pong(world, calls, send, receive);
}
void cohort_messages(cohort::communicator<cohort::mpi>& world, buffers& b, int calls) {
  const auto send = [&](int peer) { world.send(b.in, cohort::to{peer}).wait(); };
  const auto receive = [&](int peer) { world.recv(b.out, cohort::from{peer}).wait(); };
  ping_pong(world, calls, send, receive);
}

/// One thing to do in three ways: MPI's blocking call, its non-blocking one with MPI_Test, and cohort's.
struct subject {
  const char* name;
  contender all[3];
  std::vector<const char*> settings;  ///< of cohort
  bool any_size = true;
};

void compare(cohort::communicator<cohort::mpi>& world, const subject& s, std::size_t bytes, int repetitions,
             const char* setting) {
  buffers b(bytes);
  std::vector<double> times[3];
  int calls = 1;
  if (setting[0] != '\0') world.algorithms().override_with(setting);
  for (;;) {  // blocks of some milliseconds
    const double t = timed(calls, [&](int n) { s.all[0].run(world, b, n); });
    if (t * calls > 0.004 || calls >= 20000) break;
    calls *= 2;
  }
  for (int r = 0; r < repetitions; ++r) {
    for (std::size_t i = 0; i < 3; ++i) {
      times[i].push_back(timed(calls, [&](int n) { s.all[i].run(world, b, n); }));
    }
  }
  if (world.rank() != 0) return;
  std::printf("| %zu |", bytes);
  for (const auto& t : times) std::printf(" %.2f |", median(t) * 1e6);
  for (std::size_t i = 0; i < 2; ++i) print_against(times[2], times[i]);
  std::printf("\n");
  std::fflush(stdout);
}

const subject subjects[] = {
    {"all_reduce",
     {{"MPI_Allreduce", blocking}, {"MPI_Iallreduce", nonblocking}, {"cohort", through_cohort}},
     {"", "all_reduce=native", "all_reduce=recursive_doubling", "all_reduce=circulant"}},
    {"broadcast",
     {{"MPI_Bcast", blocking_broadcast}, {"MPI_Ibcast", nonblocking_broadcast}, {"cohort", cohort_broadcast}},
     {"", "broadcast=native", "broadcast=binomial"}},
    {"barrier",
     {{"MPI_Barrier", blocking_barrier}, {"MPI_Ibarrier", nonblocking_barrier}, {"cohort", cohort_barrier}},
     {"", "barrier=native", "barrier=dissemination"},
     false},
    {"ping-pong",  // there and back
     {{"MPI_Send, MPI_Recv", blocking_messages},
      {"MPI_Isend, MPI_Irecv", nonblocking_messages},
      {"cohort", cohort_messages}},
     {""}},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 && (argv[1][0] < '0' || argv[1][0] > '9') ? argv[1] : "";
  const int first = only.empty() ? 1 : 2;
  const int repetitions = argc > first ? std::atoi(argv[first]) : 15;
  std::vector<std::size_t> sizes{8, 1024, 16384, 65536, 262144, 1048576, 4194304};
  if (argc > first + 1) sizes.clear();
  for (int i = first + 1; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  try {
    for (const auto check : {cohort::transport::native_check::never, cohort::transport::native_check::always}) {
      const char* const checked = check == cohort::transport::native_check::always ? "checked" : "not checked";
      for (const subject& s : subjects) {
        if (!only.empty() && only != s.name) continue;
        for (const char* setting : s.settings) {
          cohort::mpi_options o;
          o.check = check;
          cohort::communicator<cohort::mpi> world = cohort::connect<cohort::mpi>(o);
          if (world.rank() == 0) {
            std::printf("\n%s, %d ranks, microseconds a call; cohort: %s, %s\n", s.name, world.size(),
                        setting[0] == '\0' ? "as selected" : setting, checked);
            std::printf(
                "| bytes | %s | %s | cohort | cohort / %s (quartiles), difference, of the quickest | cohort / %s |\n",
                s.all[0].name, s.all[1].name, s.all[0].name, s.all[1].name);
            std::printf("|---|---|---|---|---|---|\n");
          }
          for (const std::size_t bytes : s.any_size ? sizes : std::vector<std::size_t>{0}) {
            compare(world, s, bytes, repetitions, setting);
          }
        }
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
