// SPDX-License-Identifier: BSL-1.0
// connect<nccl>: a communicator of devices for the ranks of another communicator, or for ranks that share a store. The
// ranks tell each other what they have first, so that what cannot work is an error on all of them.
#pragma once

#include <cohort/backend/nccl.hpp>
#include <cohort/launch_info.hpp>
#include <cohort/nccl/introduction.hpp>
#include <cohort/store.hpp>
#include <cohort/task.hpp>

#include <chrono>
#include <concepts>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

struct nccl_options {
  std::optional<device> on_device{};  ///< default: the rank's number on its host, round the devices there
  std::optional<int> local_rank{};    ///< default: LOCAL_RANK and the like, as the launcher says
  std::chrono::nanoseconds timeout = std::chrono::minutes{5};  ///< for the meeting, and for on_host()
  std::string name = "world";                                  ///< that errors use
  /// NCCL's calls on this thread rather than on one that NCCL starts for each: a call that is not in a graph takes a
  /// fifth of the host's time. For a second communicator below, which ends those that take longer than the timeout.
  /// The same on every rank.
  bool blocking = false;

  // A constructor, because g++ 12 destroys a temporary aggregate twice in a co_await expression.
  nccl_options() = default;
};

namespace detail {

/// The rank's number on its host, from the variables of the launchers that say it.
[[nodiscard]] inline int local_rank_of_environment(int rank, const environment& env = environment{}) {
  for (const char* name : {"COHORT_LOCAL_RANK", "LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK",
                           "MPI_LOCALRANKID", "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID"}) {
    const std::optional<std::string> text = env.get(name);
    if (!text) continue;
    char* end = nullptr;
    const long value = std::strtol(text->c_str(), &end, 10);
    if (text->empty() || *end != '\0' || value < 0 || value > 1 << 20) {
      throw error(errc::bad_environment, std::string(name) + "=" + *text +
                                             ": expected the rank's number on its host, 0 "
                                             "or more; or choose by device{}");
    }
    return static_cast<int>(value);
  }
  return rank;
}

[[nodiscard]] inline nccl_introduction introduce(int rank, const nccl_options& o) {
  try {
    const int local = o.local_rank ? *o.local_rank : local_rank_of_environment(rank);
    nccl_introduction mine = introduce_to_nccl(rank, o.on_device ? &*o.on_device : nullptr, local);
    mine.blocking = o.blocking ? 1 : 0;
    return mine;
  } catch (const error& e) {
    nccl_introduction mine;
    mine.cannot(e.what());
    return mine;
  }
}

/// Everybody has introduced themselves: the communicator, when all ranks have come to NCCL too.
[[nodiscard]] inline communicator<nccl> join_nccl(const std::vector<nccl_introduction>& all, int rank,
                                                  const nccl_options& o) {
  check_introductions(all, rank);
  const int mine = all[static_cast<std::size_t>(rank)].device;
  const device_scope here(device{mine});
  nccl_handle made =
      nccl_handle::create(static_cast<int>(all.size()), all[0].id, rank, o.blocking, deadline_after(o.timeout));
  std::vector<int> members(all.size());
  std::iota(members.begin(), members.end(), 0);
  auto party = std::make_shared<nccl_party>(std::move(made), rank, static_cast<int>(all.size()), mine, o.name,
                                            std::move(members));
  party->timeout = o.timeout;
  if (o.blocking) party->watch().oversee(party);
  return communicator<nccl>(std::move(party));
}

}  // namespace detail

/// A communicator of devices, one for each rank of another communicator, in the same order.
///
/// Result:    the communicator; `over` may be used on, and may go
/// Needs:     the same call on every rank of `over`
/// Completes: when all ranks have met in NCCL; the thread is blocked while they do
/// Errors:    on every rank alike: bad_environment naming a rank that has no device, version_mismatch naming two ranks and
///            their NCCL versions, invalid_argument naming two ranks on one device; timed_out, and those of all_gather
/// Cost:      one all_gather of half a kilobyte, then NCCL's own start, a second or more
/// Example:   auto gpus = co_await cohort::connect<cohort::nccl>(world);
template <std::same_as<nccl> Backend, class Other>
[[nodiscard]] task<communicator<Backend>> connect(const communicator<Other>& over, nccl_options options = {}) {
  const detail::nccl_introduction mine = detail::introduce(over.rank(), options);
  std::vector<detail::nccl_introduction> all(static_cast<std::size_t>(over.size()));
  std::vector<detail::nccl_introduction> one(1, mine);
  co_await over.all_gather(one, all, cohort::timeout{options.timeout});
  co_return detail::join_nccl(all, over.rank(), options);
}

/// The same for ranks that know their numbers and share a store: a file_store, a tcp_store.
///
/// Needs:     `rank` and `size` as on no other rank and as on all; a name that no earlier world of this store has had
/// Completes: when all ranks have met; blocks until then
/// Errors:    as above; timed_out naming the keys of the ranks that have not come
template <std::same_as<nccl> Backend, store Store>
[[nodiscard]] communicator<Backend> connect(Store& meeting, int rank, int size, const nccl_options& options = {}) {
  if (size < 1 || rank < 0 || rank >= size) {
    throw error(errc::invalid_argument, "connect<nccl>: rank " + std::to_string(rank) + " of " + std::to_string(size) +
                                            ": expected a rank of 0.." + std::to_string(size < 1 ? 0 : size - 1));
  }
  const detail::nccl_introduction mine = detail::introduce(rank, options);
  const deadline until = deadline_after(options.timeout);
  const auto key = [&](int r) { return "cohort/nccl/" + options.name + "/" + std::to_string(r); };
  meeting.set(key(rank), std::string_view(reinterpret_cast<const char*>(&mine), sizeof mine), until);
  std::vector<std::string> keys;
  for (int r = 0; r < size; ++r) keys.push_back(key(r));
  const std::vector<std::string> values = meeting.multi_get(keys, until);
  std::vector<detail::nccl_introduction> all(static_cast<std::size_t>(size));
  for (std::size_t r = 0; r < values.size(); ++r) {
    if (values[r].size() != sizeof mine) {
      throw error(errc::protocol_error, "connect<nccl>: " + keys[r] + " in the store has " +
                                            std::to_string(values[r].size()) + " bytes, expected " +
                                            std::to_string(sizeof mine) +
                                            ": another version of this library, or somebody else's key");
    }
    std::memcpy(&all[r], values[r].data(), sizeof mine);
  }
  return detail::join_nccl(all, rank, options);
}

}  // namespace cohort
