// SPDX-License-Identifier: BSL-1.0
// What the ranks tell each other before NCCL is called: which library each has, which device, and whether it has one at
// all. So that what cannot work is one error on all ranks, which names the rank, and not a rank that waits.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/excuse.hpp>
#include <cohort/nccl/check.hpp>
#include <cohort/nccl/header.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace cohort::detail {

struct nccl_introduction : excuse {
  int version = 0;                       ///< of the library that this process has loaded
  int device = -1;                       ///< as this process numbers them
  int blocking = 0;                      ///< whether NCCL's calls are to block
  std::array<unsigned char, 16> uuid{};  ///< of the device
  ncclUniqueId id{};                     ///< rank 0's
};
static_assert(std::is_trivially_copyable_v<nccl_introduction>);

/// What this rank says of itself. Never throws what another rank has to know: that is said in it.
[[nodiscard]] inline nccl_introduction introduce_to_nccl(int rank, const device* chosen, int local_rank) {
  nccl_introduction mine;
  try {
    mine.version = nccl_version();
    mine.device = chosen != nullptr ? chosen->index : device_of_local_rank(local_rank).index;
    const int there = device_count();
    if (mine.device < 0 || mine.device >= there) {
      throw error(errc::invalid_argument, "device " + std::to_string(mine.device) + ": expected 0.." +
                                              std::to_string(there - 1) + ", the devices that this process sees");
    }
    cudaDeviceProp properties{};
    check_cuda(cudaGetDeviceProperties(&properties, mine.device), "cudaGetDeviceProperties");
    static_assert(sizeof properties.uuid == sizeof mine.uuid);
    std::memcpy(mine.uuid.data(), &properties.uuid, mine.uuid.size());
    if (rank == 0) check_nccl(ncclGetUniqueId(&mine.id), "ncclGetUniqueId");
  } catch (const error& e) {
    mine.cannot(e.what());
  }
  return mine;
}

/// Refuses what cannot work, on every rank alike.
///
/// Errors: bad_environment naming the rank that cannot take part and why; version_mismatch naming two ranks and both
///         versions; invalid_argument naming two ranks on one device, or of which one asks for calls that block
inline void check_introductions(std::span<const nccl_introduction> all, int rank) {
  const auto refuse = [&](errc code, int culprit, const std::string& text) {
    error_details d;
    d.rank = rank;
    d.peer = culprit;
    d.operation = "connect<nccl>";
    throw error(code,
                "connect<nccl> on rank " + std::to_string(rank) + " of " + std::to_string(all.size()) + ": " + text,
                std::move(d));
  };
  const auto number = [](std::size_t r) { return std::to_string(r); };
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (!all[r].reason().empty()) {
      refuse(errc::bad_environment, static_cast<int>(r),
             "rank " + number(r) + " cannot: " + std::string(all[r].reason()));
    }
  }
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].version != all[0].version) {
      refuse(errc::version_mismatch, static_cast<int>(r),
             "rank 0 has NCCL " + nccl_version_text(all[0].version) + " and rank " + number(r) + " has NCCL " +
                 nccl_version_text(all[r].version) + ": install one version for all ranks (LD_LIBRARY_PATH decides)");
    }
    if (all[r].blocking != all[0].blocking) {
      const std::string who[2] = {"rank 0", "rank " + number(r)};
      const bool later = all[r].blocking != 0;
      refuse(errc::invalid_argument, static_cast<int>(r),
             who[later ? 1 : 0] + " has nccl_options::blocking and " + who[later ? 0 : 1] +
                 " has not: set it alike on all ranks");
    }
    for (std::size_t before = 0; before < r; ++before) {
      if (all[before].uuid == all[r].uuid) {
        refuse(
            errc::invalid_argument, static_cast<int>(r),
            "ranks " + number(before) + " and " + number(r) +
                " are on one GPU, which NCCL refuses: start no more ranks than there are GPUs, choose one for each by "
                "device{}, or use ipc_ranks where ranks share a GPU");
      }
    }
  }
}

}  // namespace cohort::detail
