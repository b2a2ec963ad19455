// SPDX-License-Identifier: BSL-1.0
#include "mesh.hpp"

#include <cohort/communicator.hpp>
#include <cohort/transport/shm/neighbours.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>

namespace cohort::tool {
namespace {

using clock_type = std::chrono::steady_clock;

// Who plays with whom in a round of a tournament of m players, m even: everybody meets everybody in m - 1 rounds.
int partner_in_round(int round, int player, int m) {
  if (player == m - 1) {
    for (int other = 0; other < m - 1; ++other) {
      if (2 * other % (m - 1) == round) return other;
    }
  }
  const int other = (round - player + (m - 1)) % (m - 1);
  return other == player ? m - 1 : other;
}

round_trip measure(communicator<cpu>& world, int partner, bool shared_memory) {
  constexpr int warm_up = 5;
  constexpr int samples = 25;
  std::array<std::uint64_t, 1> ball{};
  const std::span<std::uint64_t> buffer(ball);
  std::vector<double> times;
  for (int i = 0; i < warm_up + samples; ++i) {
    const auto start = clock_type::now();
    if (world.rank() < partner) {
      world.send(buffer, to{partner}).wait();
      world.recv(buffer, from{partner}).wait();
      if (i >= warm_up) times.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - start).count());
    } else {
      world.recv(buffer, from{partner}).wait();
      world.send(buffer, to{partner}).wait();
    }
  }
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  return {world.rank(), partner, times.front(), times[times.size() / 2], times.back(), shared_memory};
}

std::vector<int> sharing(communicator<cpu>& world) {
  const auto engine = world.calls().state()->shared_engine();
  const transport::neighbours* const here = static_cast<transport::cpu_transport&>(*engine).host_ranks();
  return here == nullptr ? std::vector<int>{} : here->sharing();
}

}  // namespace

std::vector<finding> read_next_memory(const std::vector<rank_record>& records, meeting& m) {
  // At a place and with a value that another process cannot have by chance.
  const std::uint64_t token = 0xC0407D0C7042ULL ^ (static_cast<std::uint64_t>(m.rank() + 1) << 48);
  m.tell("token", std::to_string(reinterpret_cast<std::uintptr_t>(&token)) + " " + std::to_string(token));
  const rank_record& mine = records[static_cast<std::size_t>(m.rank())];
  std::vector<finding> findings;
  const rank_record* next = nullptr;
  for (int step = 1; step < m.size() && next == nullptr; ++step) {
    const rank_record& other = records[static_cast<std::size_t>((m.rank() + step) % m.size())];
    if (other.network == mine.network) next = &other;
  }
  const auto said = m.hear("token", deadline_after(std::chrono::seconds{30}));
  const auto next_said = next == nullptr ? std::nullopt : said[static_cast<std::size_t>(next->rank)];
  if (next_said && mine.shared_memory) {
    const std::size_t space = next_said->find(' ');
    std::uint64_t seen = 0;
    iovec into{&seen, sizeof seen};
    iovec out_of{reinterpret_cast<void*>(static_cast<std::uintptr_t>(std::stoull(*next_said))), sizeof seen};
    const ssize_t n = ::process_vm_readv(static_cast<pid_t>(next->pid), &into, 1, &out_of, 1, 0);
    const std::string why = n < 0 ? std::strerror(errno) : "another process has its number";
    if (n != static_cast<ssize_t>(sizeof seen) || seen != std::stoull(next_said->substr(space + 1))) {
      std::string scope;
      std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
      findings.push_back(
          {severity::warning,
           "memory of others",
           "a rank may not read the memory of another of " + mine.host + ": " + why +
               (scope.empty() ? "" : ", kernel.yama.ptrace_scope is " + scope) +
               "; long messages between them are copied once more",
           "sysctl kernel.yama.ptrace_scope=0, or give the container the capability SYS_PTRACE; or leave "
           "it so, it costs time only",
           {},
           {m.rank()}});
    } else {
      findings.push_back({severity::ok,
                          "memory of others",
                          "the ranks of " + mine.host + " may read each other's, as long messages do",
                          {},
                          {},
                          {m.rank()}});
    }
  }
  m.tell("token read", "1");
  // The token lies on this function's stack until everybody has looked.
  (void)m.missing("token read", deadline_after(std::chrono::seconds{30}));
  return findings;
}

mesh_record play_ping_pong(const connect_options& o, meeting& m) {
  mesh_record result;
  try {
    communicator<cpu> world = detail::connect_cpu(o, nullptr, &m.table());
    const std::vector<int> near = sharing(world);
    const int players = world.size() + world.size() % 2;
    for (int round = 0; round < players - 1; ++round) {
      const int partner = partner_in_round(round, world.rank(), players);
      if (partner >= world.size()) continue;
      const bool shared_memory = std::find(near.begin(), near.end(), partner) != near.end();
      const round_trip found = measure(world, partner, shared_memory);
      if (world.rank() < partner) result.round_trips.push_back(found);
    }
    world.barrier().wait();
  } catch (const std::exception& e) {
    result.findings.push_back({severity::problem,
                               "mesh",
                               e.what(),
                               "a program would fail the same way; what the other ranks say may tell more",
                               {},
                               {m.rank()}});
  }
  return result;
}

}  // namespace cohort::tool
