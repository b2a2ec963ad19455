// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: the memory that the ranks of one host share. MPI tells who is where; what is written there
// needs no message, so that the collectives of one host are as fast as on the cpu backend.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/mpi/check.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/transport/shm/neighbours.hpp>

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {
namespace detail_mpi {

/// What each rank says, in the order of the ranks.
[[nodiscard]] inline std::vector<std::string> said_by_all(MPI_Comm comm, const std::string& mine, int ranks) {
  const int bytes = static_cast<int>(mine.size());
  std::vector<int> lengths(static_cast<std::size_t>(ranks));
  detail::check_mpi(MPI_Allgather(&bytes, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm), "MPI_Allgather");
  std::vector<int> places;
  int total = 0;
  for (const int n : lengths) {
    places.push_back(total);
    total += n;
  }
  std::string all(static_cast<std::size_t>(total), '\0');
  detail::check_mpi(
      MPI_Allgatherv(mine.data(), bytes, MPI_CHAR, all.data(), lengths.data(), places.data(), MPI_CHAR, comm),
      "MPI_Allgatherv");
  std::vector<std::string> said;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    said.push_back(all.substr(static_cast<std::size_t>(places[r]), static_cast<std::size_t>(lengths[r])));
  }
  return said;
}

}  // namespace detail_mpi

COHORT_DECL void mpi_endpoint::share_memory(const settings& wanted) {
  links_.copy_by(wanted.copies);
  pids_.resize(static_cast<std::size_t>(size()), 0);
  if (size() == 1) return;
  host_address mine;
  try {
    mine = open_memory(wanted.host_id, wanted.shared_memory);
  } catch (const error&) {
    // The others are on their way into the calls below, and can do without this rank's memory.
    mine = open_memory(wanted.host_id, false);
  }
  std::vector<host_address> all = read_addresses(detail_mpi::said_by_all(control_, mine.encode(), size()));
  look_at_cores(all);
  wait_beside(all);
  std::string seen;
  if (neighbours_) {
    detail::byte_writer to(seen);
    to.number(static_cast<std::uint32_t>(::getpid()));
    // They all send at once: what takes seconds does not come.
    constexpr auto longest_meeting = std::chrono::seconds{10};
    for (const int r : neighbours_->meet(std::move(all), clock::now() + longest_meeting)) {
      to.number(static_cast<std::uint32_t>(r));
    }
  }
  std::vector<std::vector<int>> seen_by;
  std::vector<long> pids;
  for (const std::string& text : detail_mpi::said_by_all(control_, seen, size())) {
    detail::byte_reader from(text);
    std::vector<int>& ranks = seen_by.emplace_back();
    pids.push_back(from.left() > 0 ? static_cast<long>(from.number<std::uint32_t>()) : 0);
    while (from.left() > 0 && from.good()) ranks.push_back(static_cast<int>(from.number<std::uint32_t>()));
  }
  // Memory of a device goes to MPI as it is, where that takes it: then all messages do, in one order.
  int device = takes_device_memory_ ? 1 : 0;
  detail::check_mpi(MPI_Allreduce(MPI_IN_PLACE, &device, 1, MPI_INT, MPI_MAX, control_), "MPI_Allreduce");
  if (!neighbours_) return;
  neighbours_->agree(seen_by);
  watch_fellows();
  if (device != 0) return;
  for (const int r : neighbours_->sharing()) pids_[static_cast<std::size_t>(r)] = pids[static_cast<std::size_t>(r)];
  all_share_memory_ = static_cast<int>(neighbours_->sharing().size()) + 1 == size();
}

/// A letter ends the sleep at once; a message of MPI's is looked for after it.
COHORT_DECL void mpi_endpoint::sleep_beside_memory(clock::time_point until) {
  const auto now_asleep = [this](bool asleep) {
    const std::lock_guard lock(mutex_);
    beside_memory_ = asleep;
    return std::exchange(woken_, false);
  };
  if (links_.read_all_overdue()) return;
  fall_asleep();
  const bool woken = now_asleep(true);
  const auto left = std::chrono::nanoseconds(until - clock::now());
  if (!woken && !waits_.any_reached() && !links_.any_ready() && left.count() > 0) {
    pollfd mail{neighbours_->descriptor(), POLLIN, 0};
    constexpr std::int64_t second = 1000000000;
    const timespec limit{static_cast<time_t>(left.count() / second), static_cast<long>(left.count() % second)};
    (void)::ppoll(&mail, 1, &limit, nullptr);
  }
  (void)now_asleep(false);
  neighbours_->wake_up();
  (void)take_letters();
}

}  // namespace cohort::transport
