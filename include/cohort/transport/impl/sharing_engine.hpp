// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/sharing_engine.hpp: where a rank is to be found by the others of its host, how many of them there are
// on its cores, and who gets a window.
#pragma once

#include <cohort/transport/core_share.hpp>
#include <cohort/transport/sharing_engine.hpp>
#include <cohort/transport/shm/host_address.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/regions.hpp>
#include <cohort/transport/shm/window.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

/// Where this process is to be found; the first word of its host is the kernel's.
[[nodiscard]] inline host_address own_host_address(const std::string& host_id) {
  // Two processes can share memory when the kernel is the same boot of the same machine and they find each other's
  // sockets and process numbers: in one network and one process namespace, under one user.
  const auto link = [](const char* path) {
    char text[64] = {};
    return std::string(text, static_cast<std::size_t>(std::max<ssize_t>(0, ::readlink(path, text, sizeof text - 1))));
  };
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  host_address a;
  a.host = boot + " " + link("/proc/self/ns/net") + " " + link("/proc/self/ns/pid") + " " +
           std::to_string(::geteuid()) + " " + host_id;
  std::random_device entropy;
  const auto word = [&entropy] { return (std::uint64_t{entropy()} << 32) | entropy(); };
  a.mail = "cohort-" + std::to_string(word()) + std::to_string(word());
  a.word = word();
  a.cores = detail::core_set::usable();
  return a;
}

COHORT_DECL sharing_engine::sharing_engine(int rank, int size) noexcept : engine(rank, size) {}
COHORT_DECL sharing_engine::~sharing_engine() = default;

COHORT_DECL host_address sharing_engine::open_memory(const std::string& host_id, bool wanted) {
  host_address mine = own_host_address(host_id);
  if (!wanted) {
    // A host of its own, where nobody can write to it.
    mine.host = std::string(machine_of(mine)) + " " + mine.mail;
    mine.mail.clear();
    return mine;
  }
  neighbours_ = std::make_unique<neighbours>(rank(), size(), std::move(mine));
  regions_ = std::make_unique<regions>(*neighbours_);
  return neighbours_->address();
}

COHORT_DECL std::vector<host_address> sharing_engine::read_addresses(const std::vector<std::string>& said) {
  std::vector<host_address> all;
  for (const std::string& text : said) {
    detail::byte_reader from(text);
    host_address a = host_address::decode(from);
    all.push_back(from.complete() ? std::move(a) : host_address{});
  }
  return all;
}

COHORT_DECL void sharing_engine::look_at_cores(const std::vector<host_address>& all) {
  const core_share share = core_share::of(all[static_cast<std::size_t>(rank())], all);
  // All must come to the same answer: they do where all may use the same cores.
  crowded_ = share.crowded() && share.home >= 0 && share.ranks == size();
}

COHORT_DECL void sharing_engine::wait_beside(const std::vector<host_address>& all) {
  core_share share = core_share::of(all[static_cast<std::size_t>(rank())], all);
  // Each look at a socket is a call of the kernel's, so that thousands of them are no way to wait.
  if (neighbours_ || share.crowded()) how_to_wait().among(share.ranks, share.cores);
  if (!share.crowded() || share.cores == 1) return;
  how_to_wait().live_on(share.home);
  on_core_ = std::move(share.at_home);
  cores_ = share.cores;
}

COHORT_DECL void sharing_engine::watch_fellows() {
  if (!how_to_wait().crowded()) return;
  fellows& beside = how_to_wait().beside();
  beside.show(neighbours_->own_use());
  for (const int r : neighbours_->sharing()) beside.watch(neighbours_->use_of(r));
}

COHORT_DECL void sharing_engine::place(group& g) const {
  g.crowded = crowded_;
  if (!neighbours_ || g.size() < 2 || !neighbours_->all_share(g.members())) return;
  std::vector<bool> on_core;
  for (int r = 0; r < g.size() && !on_core_.empty(); ++r) {
    on_core.push_back(on_core_[static_cast<std::size_t>(g.world_rank(r))]);
  }
  g.window = std::make_shared<shm_window>(g.rank(), g.size(), on_core, cores_);
}

COHORT_DECL void sharing_engine::fall_asleep() noexcept {
  // Of what is written into windows, only what the one wait is for is worth waking up for.
  const flag_wait* const only = waits_.only();
  neighbours_->fall_asleep(only == nullptr || only->writer < 0
                               ? host_desk::for_anything
                               : host_desk::for_window_of(only->set.owner->home().world_rank(only->writer)));
}

}  // namespace cohort::transport
