// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: messages between ranks that share memory, which go through it as on the cpu backend. What one
// rank tells another about communicators goes the same way once there is one, so that it stays behind the messages in front
// of it.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <string>

namespace cohort::transport {

/// The connection to another rank, made when there is none yet; null to one that does not share memory.
COHORT_DECL peer_connection* mpi_endpoint::link_to(int peer) {
  if (const shm_links::link& l = links_.to(peer); l.memory != nullptr) return l.connection.get();
  if (!shares_memory_with(peer)) return nullptr;
  return links_
      .open(*neighbours_, static_cast<peer_connection_owner&>(*this), peer, pids_[static_cast<std::size_t>(peer)])
      .connection.get();
}

/// Reads what has come to this rank's socket: rings, which are connections, and what windows wait for.
COHORT_DECL bool mpi_endpoint::take_letters() {
  const bool any = neighbours_->collect();
  shm_links::take_rings(
      *neighbours_,
      [this](int r) -> shm_stream* {
        peer_connection* const c = link_to(r);
        return c != nullptr && c->open() ? links_.to(r).memory : nullptr;
      },
      [this](int r, const error& e) {
        mpi_failed("it cannot use the memory that rank " + std::to_string(r) + " shares: " + e.what());
      });
  return any;
}

COHORT_DECL bool mpi_endpoint::read_memory_of(int peer, const piece& from, const piece& into) {
  const long pid = pids_[static_cast<std::size_t>(peer)];
  return pid != 0 && links_.kernel_may_copy() && process_memory(pid).read({&from, 1}, {&into, 1});
}

COHORT_DECL void mpi_endpoint::on_message(peer_connection& c, const envelope& header) {
  take_message(*this, matcher_, c, header);
}

COHORT_DECL void mpi_endpoint::on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) {
  take_announced(*this, matcher_, c, header, ticket);
}

COHORT_DECL bool mpi_endpoint::on_notice(peer_connection& c, std::span<const std::byte> packet) {
  handle(c.peer(), packet.data(), packet.size());
  return true;
}

COHORT_DECL void mpi_endpoint::on_lost(peer_connection& c, const boost::system::error_code& why, const char* what) {
  links_.remove(c.peer());
  c.close();
  if (left_[static_cast<std::size_t>(c.peer())]) return;
  fault f;
  f.code = errc::protocol_error;
  f.culprit = c.peer();
  f.reporter = rank();
  f.text = "the connection in memory between rank " + std::to_string(rank()) + " and rank " + std::to_string(c.peer()) +
           " was lost while " + what + ": " + why.message();
  spread(f);
}

// Memory has no stripes.
COHORT_DECL void mpi_endpoint::on_stripe_lost(peer_connection& c, const boost::system::error_code& why,
                                              const char* what) {
  on_lost(c, why, what);
}

/// A message that nobody has asked for, of a communicator that is gone or has failed.
COHORT_DECL void mpi_endpoint::drop(const early_message& m) {
  if (m.origin == this) return leave_unasked(m);
  if (m.origin == &announced_) return;
  if (m.origin != nullptr) return drop_early(m);
  try {
    return_credit(m.header.source, m.arrived);
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

}  // namespace cohort::transport
