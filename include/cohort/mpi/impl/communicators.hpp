// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: the making of MPI's communicator for a group. MPI_Comm_create_group blocks until every member has
// called it, so two groups with ranks in common must be made in one order everywhere. A rank takes part in the making of one
// at a time. The leader of a group, its first member, asks them all for that, in the order of their ranks in the world: of two
// groups that want the same ranks one gets all of them. Once all have agreed it lets them make it. Nobody else is needed.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <utility>

namespace cohort::transport {

COHORT_DECL void mpi_endpoint::want_comm(std::uint64_t context, native_line& line) {
  if (!line.asked.empty() || line.members.front() != rank()) return;
  line.asked = line.members;
  std::sort(line.asked.begin(), line.asked.end());
  ask_next_member(context, line);
}

COHORT_DECL void mpi_endpoint::tell_of_comm(int member, mpi_packet::kind what, std::uint64_t context) {
  mpi_packet p = mpi_packet::of(what);
  p.context = context;
  if (member == rank()) return on_comm(rank(), p);
  if (!left_[static_cast<std::size_t>(member)]) post(member, p);
}

COHORT_DECL void mpi_endpoint::ask_next_member(std::uint64_t context, native_line& line) {
  tell_of_comm(line.asked[line.agreed], mpi_packet::kind::comm_wanted, context);
}

/// Of those that were asked here, one at a time.
COHORT_DECL void mpi_endpoint::agree_to_next_comm() {
  if (comm_in_making_ || comms_wanted_.empty()) return;
  comm_in_making_ = comms_wanted_.front();
  comms_wanted_.pop_front();
  tell_of_comm(comm_in_making_->leader, mpi_packet::kind::comm_granted, comm_in_making_->context);
}

COHORT_DECL void mpi_endpoint::end_making() {
  comm_in_making_.reset();
  agree_to_next_comm();
}

/// On the leader: a member takes part in the making of no other meanwhile.
COHORT_DECL void mpi_endpoint::on_agreed(int member, std::uint64_t context) {
  using kind = mpi_packet::kind;
  const auto at = natives_.find(context);
  const group* const g = find(context);
  if (at == natives_.end() || g == nullptr || at->second.abandoned)
    return tell_of_comm(member, kind::comm_made, context);
  native_line& line = at->second;
  ++line.agreed;
  // A group that has failed meanwhile needs none, and its members are not sent into it.
  if (g->failure()) return abandon_comm(context);
  if (line.agreed < line.asked.size()) return ask_next_member(context, line);
  for (const int each : line.asked) {
    if (each != rank()) tell_of_comm(each, kind::comm_go, context);
  }
  tell_of_comm(rank(), kind::comm_go, context);
}

/// On the leader: the group has failed, or is gone, before its communicator was made.
COHORT_DECL void mpi_endpoint::abandon_comm(std::uint64_t context) noexcept {
  const auto at = natives_.find(context);
  if (at == natives_.end() || at->second.comm != MPI_COMM_NULL || at->second.asked.empty()) return;
  native_line& line = at->second;
  if (std::exchange(line.abandoned, true) || broken_) return;
  try {
    for (std::size_t i = 0; i < line.agreed; ++i) {
      tell_of_comm(line.asked[i], mpi_packet::kind::comm_made, context);
    }
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

/// Whoever has asked and left needs none.
COHORT_DECL void mpi_endpoint::forget_comms_of(int leader) {
  comms_wanted_.erase(std::remove_if(comms_wanted_.begin(), comms_wanted_.end(),
                                     [&](const comm_request& r) { return r.leader == leader; }),
                      comms_wanted_.end());
  if (comm_in_making_ && comm_in_making_->leader == leader) end_making();
}

COHORT_DECL void mpi_endpoint::make_comm(std::uint64_t context) {
  native_line& line = natives_[context];
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group some = MPI_GROUP_NULL;
  detail::check_mpi(MPI_Comm_group(control_, &world), "MPI_Comm_group");
  detail::check_mpi(MPI_Group_incl(world, static_cast<int>(line.members.size()), line.members.data(), &some),
                    "MPI_Group_incl");
  // No collectives are on this communicator, and no messages under this tag: to Open MPI, making one is messages that a receive
  // of anybody's under the same tag would take.
  detail::check_mpi(MPI_Comm_create_group(control_, some, greatest_tag_ + 1, &line.comm), "MPI_Comm_create_group");
  detail::check_mpi(MPI_Comm_set_errhandler(line.comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  MPI_Group_free(&some);
  MPI_Group_free(&world);
}

COHORT_DECL void mpi_endpoint::on_comm(int source, const mpi_packet& p) {
  using kind = mpi_packet::kind;
  switch (static_cast<kind>(p.what)) {
    case kind::comm_wanted: comms_wanted_.push_back({source, p.context}); return agree_to_next_comm();
    case kind::comm_granted: return on_agreed(source, p.context);
    case kind::comm_go: {
      // Every member has said that it is in the first of MPI's collectives there; that it has given up since changes nothing.
      if (natives_.find(p.context) != natives_.end()) make_comm(p.context);
      end_making();
      return pump(p.context);
    }
    default:
      if (comm_in_making_ && comm_in_making_->leader == source && comm_in_making_->context == p.context) end_making();
  }
}

}  // namespace cohort::transport
