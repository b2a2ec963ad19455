// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <sched.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>

namespace cohort::tool {
namespace {

constexpr std::uint64_t mebi = std::uint64_t{1} << 20;

std::string shown(std::uint64_t bytes) {
  const bool large = bytes >= 10240 * mebi;
  return std::to_string(bytes / (large ? 1024 * mebi : mebi)) + (large ? " GiB" : " MiB");
}

std::string shown_limit(rlim_t limit) { return limit == RLIM_INFINITY ? "unlimited" : std::to_string(limit); }

void examine_descriptors(const launch_info& info, rank_record& mine) {
  // A connection to every other rank, on rank 0 also one for the meeting and one for the watch over who is alive; what
  // a process and a program have besides.
  const auto others = static_cast<rlim_t>(info.world_size - 1);
  const rlim_t needed = 40 + others * (info.rank == 0 ? 3 : 1);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const std::string mesh = "a mesh of " + std::to_string(info.world_size) + (others == 0 ? " rank" : " ranks");
  const std::string text =
      "limit " + shown_limit(limit.rlim_cur) + ", " + mesh + " needs up to " + std::to_string(needed);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= needed) {
    mine.add(
        {severity::ok, "descriptors", "limit " + shown_limit(limit.rlim_cur) + ", enough for " + mesh, {}, {}, {}});
  } else if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= needed) {
    mine.add({severity::problem,
              "descriptors",
              text,
              "raise it before the ranks start",
              "ulimit -n " + shown_limit(limit.rlim_max == RLIM_INFINITY ? needed : limit.rlim_max),
              {}});
  } else {
    mine.add({severity::problem,
              "descriptors",
              text + ", and it cannot be raised beyond " + shown_limit(limit.rlim_max),
              "ask who runs this host for more: nofile in /etc/security/limits.conf, LimitNOFILE of the service, or "
              "--ulimit nofile of the container",
              {},
              {}});
  }
}

// What the kernel would give, and what the container may have.
std::uint64_t available_memory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream meminfo("/proc/meminfo");
  for (std::string name, rest; meminfo >> name; std::getline(meminfo, rest)) {
    std::uint64_t kibi = 0;
    if (name == "MemAvailable:" && meminfo >> kibi) available = kibi * 1024;
  }
  std::uint64_t most = 0;
  std::uint64_t used = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> most && std::ifstream("/sys/fs/cgroup/memory.current") >> used) {
    available = std::min(available, most > used ? most - used : 0);
  }
  return available;
}

void examine_memory(const connect_options& o, rank_record& mine) {
  // What the ranks of one host share: some MiB for each, and for each pair that sends messages.
  const auto local = static_cast<std::uint64_t>(o.launch.local_world_size);
  const std::uint64_t needed = (64 + 16 * local) * mebi;
  const std::uint64_t available = available_memory();
  if (o.launch.world_size > 1 && o.shared_memory && available < needed) {
    mine.add({severity::problem,
              "memory",
              shown(available) + " left on " + mine.host + ", " + std::to_string(local) +
                  " ranks that share memory need " + shown(needed),
              "free some, or do without shared memory",
              "export COHORT_SHM=0",
              {}});
  } else {
    // In large steps: ranks of one host look one after the other, and shall say the same.
    const std::uint64_t step = available >= 4096 * mebi ? 1024 * mebi : 256 * mebi;
    mine.add(
        {severity::ok, "memory", "more than " + shown(available / step * step) + " left on " + mine.host, {}, {}, {}});
  }
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) != 0) {
    mine.add({severity::ok, "/dev/shm", "not there; cohort does not use it, MPI and NCCL may need it", {}, {}, {}});
    return;
  }
  const std::uint64_t size = std::uint64_t{shm.f_blocks} * shm.f_frsize;
  const std::uint64_t left = std::uint64_t{shm.f_bavail} * shm.f_frsize;
  if (left < 64 * mebi) {
    mine.add({severity::warning,
              "/dev/shm",
              shown(left) + " left of " + shown(size) + " on " + mine.host,
              "cohort does not use it, but MPI and NCCL do: remove what is left over there, or give the container more "
              "(--shm-size)",
              {},
              {}});
  } else {
    mine.add({severity::ok, "/dev/shm", shown(size) + " on " + mine.host, {}, {}, {}});
  }
}

void examine_locked_memory(rank_record& mine) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  std::error_code ignored;
  const std::filesystem::path adapters = "/sys/class/infiniband";
  const bool fabric = std::filesystem::exists(adapters, ignored) && !std::filesystem::is_empty(adapters, ignored);
  const std::string text =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
  if (fabric && limit.rlim_cur != RLIM_INFINITY) {
    mine.add({severity::warning,
              "locked memory",
              text + ", and this host has InfiniBand or RoCE",
              "MPI and NCCL lock memory to use it: raise memlock in /etc/security/limits.conf, or give the container "
              "--ulimit memlock=-1",
              "ulimit -l unlimited",
              {}});
  } else {
    mine.add({severity::ok, "locked memory", text + (fabric ? "" : ", and nothing here needs it"), {}, {}, {}});
  }
}

std::vector<int> usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<std::size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

void examine_limits(const connect_options& o, rank_record& mine) {
  examine_descriptors(o.launch, mine);
  examine_memory(o, mine);
  examine_locked_memory(mine);
  mine.cores = usable_cores();
}

}  // namespace cohort::tool
