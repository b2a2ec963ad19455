// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: long messages, which MPI moves from buffer to buffer. With the check on, one is announced,
// its receiver listens for it and asks, and only then has MPI anything to do with the sender's buffer: an operation can
// be dropped whatever the receiver does. Without, the bytes follow the header at once, under a tag of the sender's;
// who has matched the header listens under that. Then a buffer is given back once the receiver has let MPI have them.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <sched.h>

#include <algorithm>
#include <utility>

namespace cohort::transport {

[[nodiscard]] COHORT_DECL int mpi_endpoint::take_tag() {
  if (free_tags_.empty()) {
    if (next_tag_ > greatest_tag_) throw error(errc::limit_exceeded, "more long messages at a time than MPI has tags");
    return next_tag_++;
  }
  const int tag = free_tags_.back();
  free_tags_.pop_back();
  return tag;
}

// --- asked for ---------------------------------------------------------------------------------------------

COHORT_DECL void mpi_endpoint::announce(request& send) {
  std::uint32_t index = 0;
  if (free_announced_.empty()) {
    index = static_cast<std::uint32_t>(announced_.size());
    announced_.emplace_back();
  } else {
    index = free_announced_.back();
    free_announced_.pop_back();
  }
  announced_[index].send = &send;
  send.ticket = std::uint64_t{announced_[index].generation} << 32 | index;
  send.place = &announced_;
  mpi_packet p = mpi_packet::of(mpi_packet::kind::announce, send.header);
  p.ticket = send.ticket;
  post(send.peer, p);
}

/// Listens for the bytes of an announced message, then asks for them.
COHORT_DECL void mpi_endpoint::grant(request& receive, int source, std::uint64_t ticket) {
  mpi_packet p = mpi_packet::of(mpi_packet::kind::grant);
  p.ticket = ticket;
  const int tag = take_tag();
  p.other = static_cast<std::uint64_t>(tag);
  listen(receive, source, tag, false);
  post(source, p);
}

COHORT_DECL void mpi_endpoint::on_grant(int source, const mpi_packet& p) {
  const auto index = static_cast<std::uint32_t>(p.ticket);
  const auto generation = static_cast<std::uint32_t>(p.ticket >> 32);
  if (p.other > static_cast<std::uint64_t>(greatest_tag_)) return;
  const bool wanted = index < announced_.size() && announced_[index].generation == generation &&
                      announced_[index].send != nullptr && announced_[index].send->peer == source;
  if (!wanted) {
    mpi_packet sorry = mpi_packet::of(mpi_packet::kind::revoke);
    sorry.other = p.other;
    return post(source, sorry);
  }
  request& send = *announced_[index].send;
  withdraw(send);
  transfer t;
  t.owner = &send;
  t.peer = source;
  t.bytes = detail::mpi_bytes::of_runs(send.pieces, send.piece_count);
  MPI_Request r = MPI_REQUEST_NULL;
  detail::check_mpi(
      MPI_Isend(t.bytes.address, t.bytes.count, t.bytes.type, source, static_cast<int>(p.other), data_, &r),
      "MPI_Isend");
  begin(std::move(t), r);
}

// What was granted does not come: the sender has given it up, and why travels on its own.
COHORT_DECL void mpi_endpoint::on_revoke(int source, const mpi_packet& p) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    const transfer& t = transfers_[i];
    if (!t.receives || t.follows || t.peer != source || static_cast<std::uint64_t>(t.tag) != p.other) continue;
    if (t.owner != nullptr) t.owner->place = nullptr;
    transfers_[i].owner = nullptr;
    MPI_Cancel(&transfer_requests_[i]);
    MPI_Wait(&transfer_requests_[i], MPI_STATUS_IGNORE);
    return finish(i, MPI_SUCCESS);
  }
}

// --- behind their headers ----------------------------------------------------------------------------------

COHORT_DECL void mpi_endpoint::send_after_header(request& send) {
  transfer t;
  t.owner = &send;
  t.peer = send.peer;
  t.tag = take_tag();
  t.follows = true;
  t.size = static_cast<std::size_t>(send.header.bytes);
  t.bytes = detail::mpi_bytes::of_runs(send.pieces, send.piece_count);
  mpi_packet p = mpi_packet::of(mpi_packet::kind::follows, send.header);
  p.other = static_cast<std::uint64_t>(t.tag);
  post(send.peer, p);
  // Synchronous: it ends when the receiver has asked MPI for it, and not before, so that what MPI may keep there counts.
  MPI_Request r = MPI_REQUEST_NULL;
  detail::check_mpi(MPI_Issend(t.bytes.address, t.bytes.count, t.bytes.type, t.peer, t.tag, control_, &r),
                    "MPI_Issend");
  following_[static_cast<std::size_t>(t.peer)] += t.size;
  begin(std::move(t), r);
}

COHORT_DECL void mpi_endpoint::on_follows(const envelope& header, int tag) {
  if (request* const receive = match_arrival(*this, matcher_, header); receive != nullptr)
    return listen(*receive, header.source, tag, true);
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->origin = this;
  early->ticket = static_cast<std::uint64_t>(tag);
  if (nobody_asks(header.context)) return leave_unasked(*early);
  keep_early(*this, matcher_, std::move(early));
}

/// Of a message that was announced there is nothing to do: nobody asks for it.
COHORT_DECL void mpi_endpoint::leave_unasked(const early_message& m) {
  if (m.origin != this || broken_) return;
  const auto tag = static_cast<int>(m.ticket);
  unasked_.push_back({m.header.source, tag, static_cast<std::size_t>(m.header.bytes)});
  mpi_packet p = mpi_packet::of(mpi_packet::kind::unwanted);
  p.context = m.header.context;
  p.other = m.ticket;
  try {
    post(m.header.source, p);
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

/// Has MPI put the bytes into the buffer of a receive.
COHORT_DECL void mpi_endpoint::listen(request& receive, int source, int tag, bool follows) {
  transfer t;
  t.owner = &receive;
  t.follows = follows;
  t.size = static_cast<std::size_t>(receive.header.bytes);
  t.bytes = detail::mpi_bytes::of_runs(receive.pieces, receive.piece_count);
  begin_receive(std::move(t), source, tag);
}

/// Has MPI put what follows a header where it does no harm.
COHORT_DECL void mpi_endpoint::sink(int source, int tag, std::size_t size) {
  transfer t;
  t.follows = true;
  t.size = size;
  t.sink = scratch().take(size);
  t.bytes = detail::mpi_bytes::of(t.sink.data(), size);
  begin_receive(std::move(t), source, tag);
}

COHORT_DECL void mpi_endpoint::begin_receive(transfer t, int source, int tag) {
  t.peer = source;
  t.tag = tag;
  t.receives = true;
  MPI_Request r = MPI_REQUEST_NULL;
  detail::check_mpi(MPI_Irecv(t.bytes.address, t.bytes.count, t.bytes.type, source, tag, comm_of(t), &r), "MPI_Irecv");
  begin(std::move(t), r);
}

// If it is not here, a receive has it already, or a sink.
COHORT_DECL void mpi_endpoint::recalled(int source, int tag) {
  const auto it = [&](const early_message& m) {
    return m.origin == this && m.header.source == source && static_cast<int>(m.ticket) == tag;
  };
  std::size_t size = 0;
  bool here = false;
  matcher_.discard_if([&](const early_message& m) {
    if (!it(m)) return false;
    size = static_cast<std::size_t>(m.header.bytes);
    here = true;
    return true;
  });
  const auto left = std::find_if(unasked_.begin(), unasked_.end(),
                                 [&](const unasked& u) { return u.source == source && u.tag == tag; });
  if (left != unasked_.end()) {
    size = left->size;
    here = true;
    unasked_.erase(left);
  }
  if (here) sink(source, tag, size);
}

// Meanwhile that one may have been given up and its tag be another one's. Of the same communicator nobody asks for that either.
COHORT_DECL void mpi_endpoint::on_unwanted(int source, int tag, std::uint64_t context) {
  for (const transfer& t : transfers_) {
    if (!t.follows || t.receives || t.peer != source || t.tag != tag || t.owner == nullptr) continue;
    if (t.owner->header.context != context) continue;
    if (!t.owner->owner->owner->home().failure()) refuse_departed(*t.owner);
    return;
  }
}

// --- on their way ------------------------------------------------------------------------------------------

COHORT_DECL void mpi_endpoint::begin(transfer t, MPI_Request r) {
  if (t.owner != nullptr) {
    t.owner->place = &transfers_;
    t.owner->ticket = transfers_.size();
  }
  transfers_.push_back(std::move(t));
  transfer_requests_.push_back(r);
}

/// Takes a transfer out of the list; MPI has let go of it.
COHORT_DECL void mpi_endpoint::finish(std::size_t index, int code) {
  transfer done = std::move(transfers_[index]);
  for (const piece& p : done.left) scratch().note_end(p.data, p.bytes);
  if (done.tag >= 0 && owns_tag(done)) free_tags_.push_back(done.tag);
  if (done.follows && !done.receives) following_[static_cast<std::size_t>(done.peer)] -= done.size;
  if (index + 1 < transfers_.size()) {
    transfers_[index] = std::move(transfers_.back());
    transfer_requests_[index] = transfer_requests_.back();
    if (transfers_[index].owner != nullptr) transfers_[index].owner->ticket = index;
  }
  transfers_.pop_back();
  transfer_requests_.pop_back();
  if (done.owner == nullptr) return scratch().give_back(std::move(done.sink));
  if (code == MPI_SUCCESS) return complete(*done.owner);
  done.owner->place = nullptr;
  refuse(*done.owner, done.peer, detail::mpi_condition(code), detail::mpi_sentence(code, "a message by MPI"));
}

COHORT_DECL bool mpi_endpoint::settle_transfers() {
  if (transfers_.size() == 1) {
    int done = 0;
    const int code = MPI_Test(transfer_requests_.data(), &done, MPI_STATUS_IGNORE);
    if (done == 0 && code == MPI_SUCCESS) return false;
    finish(0, code);
    return true;
  }
  finished_.resize(transfers_.size());
  statuses_.resize(transfers_.size());
  int count = 0;
  const int code = MPI_Testsome(static_cast<int>(transfers_.size()), transfer_requests_.data(), &count,
                                finished_.data(), statuses_.data());
  if (code != MPI_ERR_IN_STATUS) detail::check_mpi(code, "MPI_Testsome");
  if (count == MPI_UNDEFINED || count == 0) return false;
  // From the back: what takes a finished one's place has been dealt with.
  finished_.resize(static_cast<std::size_t>(count));
  std::vector<std::pair<std::size_t, int>> ended;
  for (std::size_t i = 0; i < finished_.size(); ++i) {
    ended.emplace_back(finished_[i], code == MPI_ERR_IN_STATUS ? statuses_[i].MPI_ERROR : MPI_SUCCESS);
  }
  std::sort(ended.begin(), ended.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  // A refusal may give up other transfers, and so change the list: first the list, then what comes of it.
  std::vector<std::pair<request*, int>> failed;
  for (const auto& [index, result] : ended) {
    if (result != MPI_SUCCESS && transfers_[index].owner != nullptr) {
      failed.emplace_back(transfers_[index].owner, result);
      transfers_[index].owner->place = nullptr;
      transfers_[index].owner = nullptr;
    }
    finish(index, MPI_SUCCESS);
  }
  for (const auto& [r, result] : failed) {
    if (!r->complete) {
      refuse(*r, r->peer, detail::mpi_condition(result), detail::mpi_sentence(result, "a message by MPI"));
    }
  }
  return true;
}

/// Nobody waits for this transfer any more, and its buffer is about to go: MPI must not touch that again.
COHORT_DECL void mpi_endpoint::let_go(std::size_t index) noexcept {
  const request& given_up = *transfers_[index].owner;
  // A rank that has not let go of one within that time is not waited for again.
  const bool known_stuck = std::any_of(transfers_.begin(), transfers_.end(), [&](const transfer& t) {
    return !t.left.empty() && t.peer == transfers_[index].peer;
  });
  // New ones may be begun meanwhile, behind it.
  transfers_[index].owner = nullptr;
  const bool receives = transfers_[index].receives;
  const bool unasked_for = transfers_[index].follows && !receives;
  if (receives) MPI_Cancel(&transfer_requests_[index]);
  if (unasked_for && !recall(transfers_[index])) return leave_to_mpi(transfers_[index], given_up);
  const auto until = clock::now() + (known_stuck ? clock::duration{0} : clock::duration{patience});
  int done = 0;
  MPI_Status status{};
  while (done == 0) {
    if (MPI_Test(&transfer_requests_[index], &done, &status) != MPI_SUCCESS) break;
    if (done == 0 && clock::now() >= until) return leave_to_mpi(transfers_[index], given_up);  // the peer is stuck
    if (done != 0) break;
    if (unasked_for) hear_recalls();  // the peer may be waiting here for the same
    ::sched_yield();
  }
  int cancelled = 0;
  if (receives && done != 0) MPI_Test_cancelled(&status, &cancelled);
  if (cancelled == 0) return finish(index, MPI_SUCCESS);
  // The sender has been asked for the bytes, or sends them unasked: they need a place where they do no harm.
  transfer& t = transfers_[index];
  try {
    t.sink = scratch().take(t.size);
    t.bytes = detail::mpi_bytes::of(t.sink.data(), t.size);
    detail::check_mpi(
        MPI_Irecv(t.bytes.address, t.bytes.count, t.bytes.type, t.peer, t.tag, comm_of(t), &transfer_requests_[index]),
        "MPI_Irecv");
  } catch (...) {
    finish(index, MPI_SUCCESS);
  }
}

/// MPI keeps the buffer. If it is one of this engine's, nobody gets it meanwhile.
COHORT_DECL void mpi_endpoint::leave_to_mpi(transfer& t, const request& given_up) noexcept {
  try {
    for (std::size_t i = 0; i < given_up.piece_count; ++i) {
      const piece& p = given_up.pieces[i];
      if (p.bytes == 0) continue;
      scratch().note_use(p.data, p.bytes);
      t.left.push_back(p);
    }
  } catch (const std::bad_alloc&) {
    // Then it is as safe as a buffer of the caller's, who frees it.
  }
}

/// Tells the receiver of what follows its header. False if MPI does not take messages any more.
COHORT_DECL bool mpi_endpoint::recall(const transfer& t) noexcept {
  mpi_packet p = mpi_packet::of(mpi_packet::kind::recall);
  p.other = static_cast<std::uint64_t>(t.tag);
  try {
    if (!broken_) post(t.peer, p);
    return !broken_;
  } catch (const std::exception&) {
    return false;
  }
}

/// What comes while a buffer is waited for is kept for later, but for what others wait for as this rank does.
COHORT_DECL void mpi_endpoint::hear_recalls() {
  const auto look = [this](int source, const std::byte* data, std::size_t bytes) {
    mpi_packet p;
    if (bytes >= sizeof p) std::memcpy(&p, data, sizeof p);
    if (static_cast<mpi_packet::kind>(p.what) != mpi_packet::kind::recall) {
      held_.push_back({source, {data, data + bytes}});
      return;
    }
    const auto header = std::find_if(held_.begin(), held_.end(), [&](const held_packet& h) {
      mpi_packet q;
      if (h.source != source || h.bytes.size() != sizeof q) return false;
      std::memcpy(&q, h.bytes.data(), sizeof q);
      return static_cast<mpi_packet::kind>(q.what) == mpi_packet::kind::follows && q.other == p.other;
    });
    if (header == held_.end()) return recalled(source, static_cast<int>(p.other));
    mpi_packet q;
    std::memcpy(&q, header->bytes.data(), sizeof q);
    held_.erase(header);
    if (q.bytes <= window) sink(source, static_cast<int>(p.other), static_cast<std::size_t>(q.bytes));
  };
  try {
    listen_again();
    while (take_one(look)) continue;
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
}

COHORT_DECL void mpi_endpoint::withdraw(request& r) {
  if (r.place == nullptr) return;
  if (r.place == &matcher_) {
    matcher_.withdraw(r);
  } else if (r.place == &outgoing_) {
    for (outgoing& o : outgoing_) {
      if (o.owner == &r) o.owner = nullptr;  // what is sent is a copy
    }
  } else if (r.place == &coming_) {
    for (coming& c : coming_) {
      if (c.receive == &r) c.receive = nullptr;  // what still comes of it is forgotten
    }
  } else if (r.place == &announced_) {
    const auto index = static_cast<std::uint32_t>(r.ticket);
    announced_[index].send = nullptr;
    ++announced_[index].generation;
    free_announced_.push_back(index);
  } else if (r.place == &transfers_) {
    let_go(static_cast<std::size_t>(r.ticket));
  } else if (peer_connection* const c = links_.at(r.place); c != nullptr) {
    c->withdraw(r);
  } else {
    give_up(*static_cast<native_turn*>(r.place));
  }
  r.place = nullptr;
}

}  // namespace cohort::transport
