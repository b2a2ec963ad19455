// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: what becomes of a send, of a receive, and of what arrives. A short message travels behind
// its header; of long ones impl/transfers.hpp.
#pragma once

#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/finished_by_mpi.hpp>
#include <cohort/transport/places.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cohort::transport {

COHORT_DECL void mpi_endpoint::start(request& r) {
  if (broken_) return;  // the communicator has failed, or is about to
  try {
    if (r.place != nullptr) {
      start_native(*static_cast<native_turn*>(r.place));
    } else if (r.sending) {
      start_send(r);
    } else if (r.probing) {
      start_probe(r);
    } else {
      start_receive(r);
    }
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

COHORT_DECL void mpi_endpoint::refuse(const request& r, int culprit, errc code, std::string text) {
  transport::refuse(*this, r, culprit, code, std::move(text));
}

COHORT_DECL bool mpi_endpoint::has_retired(std::uint64_t context, int world_rank) const {
  if (left_[static_cast<std::size_t>(world_rank)] && world_rank != rank()) return true;
  const auto at = retired_.find(context);
  return at != retired_.end() && std::any_of(at->second.of.begin(), at->second.of.end(),
                                             [world_rank](const retirement& r) { return r.rank == world_rank; });
}

COHORT_DECL bool mpi_endpoint::others_retired(const group& g) const {
  return g.size() > 1 && std::all_of(g.members().begin(), g.members().end(),
                                     [&](int member) { return member == rank() || has_retired(g.context(), member); });
}

COHORT_DECL void mpi_endpoint::refuse_departed(const request& r) {
  const group& g = r.owner->owner->home();
  refuse(r, r.peer, errc::peer_lost, describe_departure(g, r.peer, g.context() == 0));
}

// --- sending -----------------------------------------------------------------------------------------------

COHORT_DECL void mpi_endpoint::post(int peer, const mpi_packet& p, const piece* pieces, std::size_t n, request* owner) {
  // Behind what was sent in memory. A failure makes a connection if there is none: later ones must not overtake it.
  const bool first = p.what == static_cast<std::uint8_t>(mpi_packet::kind::fault);
  if (peer_connection* const c = first ? link_to(peer) : links_.to(peer).connection.get(); c != nullptr && c->open()) {
    std::vector<piece> whole{{reinterpret_cast<std::byte*>(const_cast<mpi_packet*>(&p)), sizeof p}};
    whole.insert(whole.end(), pieces, pieces + n);
    return c->tell(whole);
  }
  keep_outgoing(send_copy(peer, p, pieces, n), owner);
}

/// MPI has been given a packet: if it has not sent it yet, or not all that are waited for together, that is waited for.
COHORT_DECL void mpi_endpoint::keep_outgoing(outgoing o, request* owner, bool last_of_many) {
  if (detail::finished_by_mpi(o.sent) && !last_of_many) {
    scratch().give_back(std::move(o.buffer));
    if (owner != nullptr) complete(*owner);
    return;
  }
  // MPI may need this rank for it: whoever sends waits for that as it does for MPI_Send.
  o.owner = owner;
  if (owner != nullptr) owner->place = &outgoing_;
  outgoing_.push_back(std::move(o));
}

/// Has MPI send a packet and what is behind it, out of a copy that is kept until it has.
COHORT_DECL mpi_endpoint::outgoing mpi_endpoint::send_copy(int peer, const mpi_packet& p, const piece* pieces,
                                                           std::size_t n) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < n; ++i) bytes += pieces[i].bytes;
  outgoing o;
  o.peer = peer;
  o.buffer = scratch().take(sizeof p + bytes);
  std::byte* into = o.buffer.data();
  std::memcpy(into, &p, sizeof p);
  into += sizeof p;
  for (std::size_t i = 0; i < n; ++i) {
    if (pieces[i].bytes > 0) device_memory_.copy(into, pieces[i].data, pieces[i].bytes);
    into += pieces[i].bytes;
  }
  const auto whole = static_cast<int>(sizeof p + bytes);
  detail::check_mpi(MPI_Isend(o.buffer.data(), whole, MPI_BYTE, peer, 0, control_, &o.sent), "MPI_Isend");
  return o;
}

COHORT_DECL void mpi_endpoint::post(int peer, mpi_packet p, const void* data, std::size_t bytes) {
  p.bytes = bytes;
  const piece whole{const_cast<std::byte*>(static_cast<const std::byte*>(data)), bytes};
  post(peer, p, &whole, 1);
}

COHORT_DECL void mpi_endpoint::start_send(request& send) {
  if (has_retired(send.header.context, send.peer)) return refuse_departed(send);
  if (peer_connection* const c = link_to(send.peer); c != nullptr && c->open()) return c->send(send);
  const auto bytes = static_cast<std::size_t>(send.header.bytes);
  std::int64_t& credit = credit_[static_cast<std::size_t>(send.peer)];
  const bool may_follow =
      check_ == native_check::never && following_[static_cast<std::size_t>(send.peer)] + bytes <= window;
  const bool in_parts = bytes > longest_part && bytes <= eager_limit;
  if (in_parts && follows_another(send) && may_follow) return send_after_header(send);
  if (bytes <= eager_limit && credit >= cost_of(bytes)) {
    credit -= cost_of(bytes);
    if (in_parts) return send_in_parts(send);
    return post(send.peer, mpi_packet::of(mpi_packet::kind::eager, send.header), send.pieces, send.piece_count, &send);
  }
  if (may_follow) return send_after_header(send);
  announce(send);
}

// --- receiving ---------------------------------------------------------------------------------------------

/// Bytes of a short message, from `offset` on, into the buffer of its receive.
COHORT_DECL void mpi_endpoint::put(const request& receive, std::size_t offset, const std::byte* from,
                                   std::size_t bytes) {
  if (device_memory_.empty()) return scatter_into(receive, offset, from, bytes);
  for (const piece& p : range_of({receive.pieces, receive.piece_count}, offset, bytes)) {
    device_memory_.copy(p.data, from, p.bytes);
    from += p.bytes;
  }
}

COHORT_DECL void mpi_endpoint::start_posted(request& receive) {
  const group& g = receive.owner->owner->home();
  const bool nobody = receive.peer < 0 ? others_retired(g) : has_retired(g.context(), receive.peer);
  if (nobody && receive.tagged()) return refuse_departed(receive);
  matcher_.post(receive);
}

COHORT_DECL void mpi_endpoint::start_probe(request& probe) {
  if (const early_message* const m = matcher_.find_early(probe); m != nullptr) {
    probe.header = m->header;
    return complete(probe);
  }
  if (probe.immediate) {
    probe.header.source = -1;
    return complete(probe);
  }
  start_posted(probe);
}

COHORT_DECL void mpi_endpoint::start_receive(request& receive) {
  std::unique_ptr<early_message> early = matcher_.take_early(receive);
  if (early == nullptr) return start_posted(receive);
  if (auto wrong = accept_delivery(receive.owner->owner->home(), early->header, receive)) {
    drop(*early);
    return refuse(receive, early->header.source, wrong->code, std::move(wrong->text));
  }
  receive.header = early->header;
  if (early->origin == this) return listen(receive, early->header.source, static_cast<int>(early->ticket), true);
  if (early->origin == &announced_) return grant(receive, early->header.source, early->ticket);
  if (early->origin != nullptr) return take_early(*this, receive, std::move(early));
  put(receive, 0, early->payload.data(), early->arrived);
  return_credit(early->header.source, early->arrived);
  scratch().give_back(std::move(early->payload));
  complete(receive);
}

/// A short message has been used, or never will be.
COHORT_DECL void mpi_endpoint::return_credit(int source, std::size_t bytes) {
  std::int64_t& owed = owed_[static_cast<std::size_t>(source)];
  owed += cost_of(bytes);
  if (owed < static_cast<std::int64_t>(window) / 4 || broken_ || left_[static_cast<std::size_t>(source)]) return;
  mpi_packet p = mpi_packet::of(mpi_packet::kind::credit);
  p.other = static_cast<std::uint64_t>(std::exchange(owed, 0));
  post(source, p);
}

// --- what arrives ------------------------------------------------------------------------------------------

/// Listens in every slot that has been read. Not at once when one has been: what came is waited for.
COHORT_DECL void mpi_endpoint::listen_again() {
  for (; taken_count_ > 0; --taken_count_) {
    const std::size_t slot = taken_[taken_count_ - 1];
    detail::check_mpi(MPI_Irecv(ring_.data() + slot * slot_bytes, static_cast<int>(slot_bytes), MPI_BYTE,
                                MPI_ANY_SOURCE, 0, control_, &arriving_[slot]),
                      "MPI_Irecv");
    listening_[(next_listening_ + listening_count_++) % ring_size] = slot;
  }
}

/// Hands over the next message there is.
template <class Taken>
COHORT_DECL bool mpi_endpoint::take_one(Taken taken) {
  if (listening_count_ == 0) return false;
  // Messages match receives in the order in which these were posted: the oldest is always the next.
  const std::size_t slot = listening_[next_listening_];
  int there = 0;
  MPI_Status status{};
  detail::check_mpi(MPI_Test(&arriving_[slot], &there, &status), "MPI_Test");
  if (there != 0) take_from(slot, status, taken);
  return there != 0;
}

template <class Taken>
COHORT_DECL void mpi_endpoint::take_from(std::size_t slot, const MPI_Status& status, Taken taken) {
  int bytes = 0;
  detail::check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  next_listening_ = (next_listening_ + 1) % ring_size;
  --listening_count_;
  taken(status.MPI_SOURCE, ring_.data() + slot * slot_bytes, static_cast<std::size_t>(std::max(bytes, 0)));
  taken_[taken_count_++] = slot;
}

/// What came while a buffer was waited for.
COHORT_DECL bool mpi_endpoint::take_held() {
  if (held_.empty()) return false;
  const held_packet next = std::move(held_.front());
  held_.pop_front();
  handle(next.source, next.bytes.data(), next.bytes.size());
  return true;
}

COHORT_DECL bool mpi_endpoint::take_arrivals() {
  // Bounded, so that a flood of messages does not keep the coroutines from running; and none is looked for while one
  // of these has all it waited for.
  constexpr int most = 64;
  int taken = 0;
  while (taken < most && take_held()) ++taken;
  if (!held_.empty()) return true;
  listen_again();
  const auto take = [this](int source, const std::byte* data, std::size_t bytes) { handle(source, data, bytes); };
  while (taken < most && !something_ready() && take_one(take)) {
    ++taken;
    if (listening_count_ < ring_size / 2) listen_again();
  }
  return taken > 0;
}

COHORT_DECL void mpi_endpoint::handle(int source, const std::byte* data, std::size_t bytes) {
  mpi_packet p;
  const auto garbled = [&](const char* what) {
    fault f;
    f.code = errc::protocol_error;
    f.culprit = source;
    f.reporter = rank();
    f.text = "rank " + std::to_string(source) + " sent " + what + " of " + std::to_string(bytes) +
             " bytes, which no version of this protocol sends";
    spread(f);
  };
  if (bytes < sizeof p) return garbled("a header");
  std::memcpy(&p, data, sizeof p);
  if (p.what == 0 || p.what > mpi_packet::last) return garbled("an unknown packet");
  const std::byte* const payload = data + sizeof p;
  const std::size_t behind = bytes - sizeof p;
  const bool tags_fit = p.other >= 1 && p.other <= static_cast<std::uint64_t>(greatest_tag_);
  using kind = mpi_packet::kind;
  const auto what = static_cast<kind>(p.what);
  const bool carries = what == kind::eager || what == kind::fault || what == kind::standing || what == kind::retired;
  if (what == kind::part) {
    if (!continues(p.header(source), behind)) return garbled("a part of no message that lacks it");
    return on_part(p.header(source), payload, behind);
  }
  if (behind != (carries ? p.bytes : 0)) return garbled("a packet with another length than it says");
  if (what == kind::follows && (p.bytes > window || !tags_fit)) return garbled("a header that nothing can follow");
  switch (what) {
    case kind::eager: return on_eager(p.header(source), payload);
    case kind::announce: return on_announce(p.header(source), p.ticket);
    case kind::follows: return on_follows(p.header(source), static_cast<int>(p.other));
    case kind::recall: return recalled(source, static_cast<int>(p.other));
    case kind::unwanted: return on_unwanted(source, static_cast<int>(p.other), p.context);
    case kind::grant: return on_grant(source, p);
    case kind::revoke: return on_revoke(source, p);
    case kind::credit: {
      std::int64_t& credit = credit_[static_cast<std::size_t>(source)];
      constexpr auto most = static_cast<std::int64_t>(window);
      credit = std::min(credit + static_cast<std::int64_t>(std::min<std::uint64_t>(p.other, window)), most);
      return;
    }
    case kind::fault:
      return note(std::make_shared<const fault>(fault_of(p, {reinterpret_cast<const char*>(payload), behind})));
    case kind::query: {
      const group* const g = find(p.context);
      const mpi_standing mine = mpi_standing::of(g != nullptr ? g->arrival() : arrival{}, ::getpid(), host_);
      mpi_packet answer = mpi_packet::of(kind::standing);
      answer.context = p.context;
      answer.ticket = p.ticket;
      return post(source, answer, &mine, sizeof mine);
    }
    case kind::standing: {
      if (p.ticket == for_comparison) {
        if (const auto theirs = mpi_standing::read(payload, behind)) on_calls_of(source, p.context, *theirs);
        return;
      }
      if (!inquiry_ || inquiry_->what.context != p.context) return;
      inquiry_->answers[static_cast<std::size_t>(source)] = mpi_standing::read(payload, behind);
      const bool all = std::all_of(inquiry_->members.begin(), inquiry_->members.end(), [this](int member) {
        return member == rank() || inquiry_->answers[static_cast<std::size_t>(member)];
      });
      if (all) conclude_inquiry();
      return;
    }
    case kind::retired:
      if (const auto last = mpi_standing::read(payload, behind)) on_retired(source, p, *last);
      return;
    case kind::left:
      if (!left_[static_cast<std::size_t>(source)]) ++ranks_left_;
      left_[static_cast<std::size_t>(source)] = true;
      return forget_comms_of(source);
    case kind::gone:
      ++ranks_gone_;
      gone_quietly_ += p.other != 0 ? 1 : 0;
      return;
    default: return on_comm(source, p);
  }
}

/// Whether the communicator has failed or is gone, so that what comes for it is not kept.
COHORT_DECL bool mpi_endpoint::nobody_asks(std::uint64_t context) const {
  if (const group* const g = find(context); g != nullptr) return g->failure() != nullptr;
  const auto gone = retired_.find(context);
  return gone != retired_.end() && gone->second.own;
}

/// All bytes of a short message are at `data`, in a buffer of its own or where the next packet comes.
COHORT_DECL void mpi_endpoint::on_eager(const envelope& header, const std::byte* data, detail::byte_buffer* own) {
  const auto bytes = static_cast<std::size_t>(header.bytes);
  if (request* const receive = match_arrival(*this, matcher_, header); receive != nullptr) {
    put(*receive, 0, data, bytes);
    return_credit(header.source, bytes);
    return complete(*receive);
  }
  if (nobody_asks(header.context)) return return_credit(header.source, bytes);
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->arrived = bytes;
  if (own != nullptr) {
    early->payload = std::move(*own);
  } else {
    early->payload = scratch().take(bytes);
    if (bytes > 0) std::memcpy(early->payload.data(), data, bytes);
  }
  keep_early(*this, matcher_, std::move(early));
}

COHORT_DECL void mpi_endpoint::on_announce(const envelope& header, std::uint64_t ticket) {
  if (request* const receive = match_arrival(*this, matcher_, header); receive != nullptr)
    return grant(*receive, header.source, ticket);
  if (nobody_asks(header.context)) return;
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->origin = &announced_;
  early->ticket = ticket;
  keep_early(*this, matcher_, std::move(early));
}

}  // namespace cohort::transport
