// SPDX-License-Identifier: BSL-1.0
// What tells processes apart across containers, where numbers of processes repeat: what CUDA exports from a process cannot
// be opened in the same one, and need not be. Used by ipc_memory.hpp and ipc_event.hpp.
#pragma once

#include <cstdint>
#include <random>

#include <unistd.h>

namespace cohort::detail {

struct process_mark {
  std::uint64_t drawn = 0;
  std::int64_t number = 0;

  friend bool operator==(const process_mark&, const process_mark&) = default;

  /// This process's. Drawn once; the number tells a child from its parent.
  [[nodiscard]] static process_mark own() {
    static const std::uint64_t drawn = [] {
      std::random_device random;
      return static_cast<std::uint64_t>(random()) << 32 | random();
    }();
    return {drawn, static_cast<std::int64_t>(::getpid())};
  }
};

}  // namespace cohort::detail
