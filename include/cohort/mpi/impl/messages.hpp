// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: what becomes of a send, of a receive, and of what arrives. A short message travels behind
// its header. A long one is announced; its receiver listens for it and says so, and MPI moves it from buffer to buffer.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cohort::transport {

inline void mpi_endpoint::start(request& r) {
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

inline void mpi_endpoint::refuse(const request& r, int culprit, errc code, std::string text) {
  transport::refuse(*this, r, culprit, code, std::move(text));
}

inline bool mpi_endpoint::has_retired(std::uint64_t context, int world_rank) const {
  if (left_[static_cast<std::size_t>(world_rank)] && world_rank != rank()) return true;
  const auto at = retired_.find(context);
  return at != retired_.end() && std::any_of(at->second.of.begin(), at->second.of.end(),
                                             [world_rank](const retirement& r) { return r.rank == world_rank; });
}

inline bool mpi_endpoint::others_retired(const group& g) const {
  return g.size() > 1 && std::all_of(g.members().begin(), g.members().end(),
                                     [&](int member) { return member == rank() || has_retired(g.context(), member); });
}

inline void mpi_endpoint::refuse_departed(const request& r) {
  const group& g = r.owner->owner->home();
  const std::string where = g.context() == 0 ? " has left the world" : " has left '" + g.name() + "'";
  const std::string who = r.peer < 0 ? "every other rank" : "rank " + std::to_string(g.rank_of(r.peer));
  refuse(r, r.peer, errc::peer_lost, who + where);
}

// --- sending -----------------------------------------------------------------------------------------------

inline void mpi_endpoint::post(int peer, const mpi_packet& p, const piece* pieces, std::size_t n) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < n; ++i) bytes += pieces[i].bytes;
  outgoing o;
  o.buffer = scratch().take(sizeof p + bytes);
  std::byte* into = o.buffer.data();
  std::memcpy(into, &p, sizeof p);
  into += sizeof p;
  for (std::size_t i = 0; i < n; ++i) {
    if (pieces[i].bytes > 0) std::memcpy(into, pieces[i].data, pieces[i].bytes);
    into += pieces[i].bytes;
  }
  const auto whole = static_cast<int>(sizeof p + bytes);
  detail::check_mpi(MPI_Isend(o.buffer.data(), whole, MPI_BYTE, peer, 0, control_, &o.sent), "MPI_Isend");
  int done = 0;
  detail::check_mpi(MPI_Test(&o.sent, &done, MPI_STATUS_IGNORE), "MPI_Test");
  if (done != 0) {
    scratch().give_back(std::move(o.buffer));
  } else {
    outgoing_.push_back(std::move(o));
  }
}

inline void mpi_endpoint::post(int peer, mpi_packet p, const void* data, std::size_t bytes) {
  p.bytes = bytes;
  const piece whole{const_cast<std::byte*>(static_cast<const std::byte*>(data)), bytes};
  post(peer, p, &whole, 1);
}

inline void mpi_endpoint::start_send(request& send) {
  if (has_retired(send.header.context, send.peer)) return refuse_departed(send);
  if (send.header.bytes <= eager_limit) {
    post(send.peer, mpi_packet::of(mpi_packet::kind::eager, send.header), send.pieces, send.piece_count);
    return complete(send);
  }
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

// --- receiving ---------------------------------------------------------------------------------------------

inline void mpi_endpoint::start_posted(request& receive) {
  const group& g = receive.owner->owner->home();
  const bool nobody = receive.peer < 0 ? others_retired(g) : has_retired(g.context(), receive.peer);
  if (nobody && receive.tagged()) return refuse_departed(receive);
  matcher_.post(receive);
}

inline void mpi_endpoint::start_probe(request& probe) {
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

inline void mpi_endpoint::start_receive(request& receive) {
  const std::unique_ptr<early_message> early = matcher_.take_early(receive);
  if (early == nullptr) return start_posted(receive);
  if (auto wrong = accept_delivery(receive.owner->owner->home(), early->header, receive)) {
    return refuse(receive, early->header.source, wrong->code, std::move(wrong->text));
  }
  receive.header = early->header;
  if (early->header.bytes > eager_limit) return grant(receive, early->header.source, early->ticket);
  scatter_into(receive, 0, early->payload.data(), static_cast<std::size_t>(early->header.bytes));
  scratch().give_back(std::move(early->payload));
  complete(receive);
}

/// Listens for the bytes of an announced message, then asks for them.
inline void mpi_endpoint::grant(request& receive, int source, std::uint64_t ticket) {
  transfer t;
  t.owner = &receive;
  t.peer = source;
  if (free_tags_.empty()) {
    if (next_tag_ > greatest_tag_) throw error(errc::limit_exceeded, "more long messages at a time than MPI has tags");
    t.tag = next_tag_++;
  } else {
    t.tag = free_tags_.back();
    free_tags_.pop_back();
  }
  t.size = static_cast<std::size_t>(receive.header.bytes);
  t.bytes = detail::mpi_bytes::of_runs(receive.pieces, receive.piece_count);
  mpi_packet p = mpi_packet::of(mpi_packet::kind::grant);
  p.ticket = ticket;
  p.other = static_cast<std::uint64_t>(t.tag);
  MPI_Request r = MPI_REQUEST_NULL;
  detail::check_mpi(MPI_Irecv(t.bytes.address, t.bytes.count, t.bytes.type, source, t.tag, data_, &r), "MPI_Irecv");
  begin(std::move(t), r);
  post(source, p);
}

// --- long messages on their way ----------------------------------------------------------------------------

inline void mpi_endpoint::begin(transfer t, MPI_Request r) {
  if (t.owner != nullptr) {
    t.owner->place = &transfers_;
    t.owner->ticket = transfers_.size();
  }
  transfers_.push_back(std::move(t));
  transfer_requests_.push_back(r);
}

/// Takes a transfer out of the list; MPI has let go of it.
inline void mpi_endpoint::finish(std::size_t index, int code) {
  transfer done = std::move(transfers_[index]);
  if (done.tag >= 0) free_tags_.push_back(done.tag);
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

inline bool mpi_endpoint::settle_transfers() {
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
inline void mpi_endpoint::let_go(std::size_t index) noexcept {
  transfer& t = transfers_[index];
  MPI_Request& r = transfer_requests_[index];
  t.owner = nullptr;
  const bool receives = t.tag >= 0;
  if (receives) MPI_Cancel(&r);
  const auto until = clock::now() + patience;
  int done = 0;
  MPI_Status status{};
  while (done == 0) {
    if (MPI_Test(&r, &done, &status) != MPI_SUCCESS) break;
    if (done == 0 && clock::now() >= until) return;  // the peer is stuck: MPI keeps the buffer
    if (done == 0) ::sched_yield();
  }
  int cancelled = 0;
  if (receives && done != 0) MPI_Test_cancelled(&status, &cancelled);
  if (cancelled == 0) return finish(index, MPI_SUCCESS);
  // The sender has been asked for the bytes and may send them: they need a place where they do no harm.
  try {
    t.sink = scratch().take(t.size);
    t.bytes = detail::mpi_bytes::of(t.sink.data(), t.size);
    detail::check_mpi(MPI_Irecv(t.bytes.address, t.bytes.count, t.bytes.type, t.peer, t.tag, data_, &r), "MPI_Irecv");
  } catch (...) {
    finish(index, MPI_SUCCESS);
  }
}

inline void mpi_endpoint::withdraw(request& r) {
  if (r.place == nullptr) return;
  if (r.place == &matcher_) {
    matcher_.withdraw(r);
  } else if (r.place == &announced_) {
    const auto index = static_cast<std::uint32_t>(r.ticket);
    announced_[index].send = nullptr;
    ++announced_[index].generation;
    free_announced_.push_back(index);
  } else if (r.place == &transfers_) {
    let_go(static_cast<std::size_t>(r.ticket));
  } else {
    give_up(*static_cast<native_turn*>(r.place));
  }
  r.place = nullptr;
}

// --- what arrives ------------------------------------------------------------------------------------------

inline bool mpi_endpoint::take_arrivals() {
  // Bounded, so that a flood of messages does not keep the coroutines from running.
  constexpr int most = 64;
  int taken = 0;
  while (taken < most) {
    int there = 0;
    MPI_Status status{};
    // Messages match receives in the order in which these were posted: the oldest is always the next.
    detail::check_mpi(MPI_Test(&arriving_[head_], &there, &status), "MPI_Test");
    if (there == 0) break;
    int bytes = 0;
    detail::check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    std::byte* const slot = ring_.data() + head_ * slot_bytes;
    handle(status.MPI_SOURCE, slot, static_cast<std::size_t>(std::max(bytes, 0)));
    detail::check_mpi(
        MPI_Irecv(slot, static_cast<int>(slot_bytes), MPI_BYTE, MPI_ANY_SOURCE, 0, control_, &arriving_[head_]),
        "MPI_Irecv");
    head_ = (head_ + 1) % ring_size;
    ++taken;
  }
  return taken > 0;
}

inline void mpi_endpoint::handle(int source, const std::byte* data, std::size_t bytes) {
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
  using kind = mpi_packet::kind;
  const auto what = static_cast<kind>(p.what);
  const bool carries = what == kind::eager || what == kind::fault || what == kind::standing || what == kind::retired;
  if (behind != (carries ? p.bytes : 0)) return garbled("a packet with another length than it says");
  switch (what) {
    case kind::eager: return on_eager(p.header(source), payload);
    case kind::announce: return on_announce(p.header(source), p.ticket);
    case kind::grant: return on_grant(source, p);
    case kind::revoke: return on_revoke(source, p);
    case kind::fault:
      return note(std::make_shared<const fault>(fault_of(p, {reinterpret_cast<const char*>(payload), behind})));
    case kind::query: {
      const group* const g = find(p.context);
      const mpi_standing mine =
          mpi_standing::of(g != nullptr ? g->arrival() : arrival{}, static_cast<int>(::getpid()), host_);
      mpi_packet answer = mpi_packet::of(kind::standing);
      answer.context = p.context;
      answer.ticket = p.ticket;
      return post(source, answer, &mine, sizeof mine);
    }
    case kind::standing: {
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
      return;
    default: return on_comm(source, p);
  }
}

inline void mpi_endpoint::on_eager(const envelope& header, const std::byte* data) {
  const auto bytes = static_cast<std::size_t>(header.bytes);
  if (request* const receive = match_arrival(*this, matcher_, header); receive != nullptr) {
    scatter_into(*receive, 0, data, bytes);
    return complete(*receive);
  }
  // Nobody will ask for it any more.
  if (const group* const g = find(header.context); g != nullptr && g->failure()) return;
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->payload = scratch().take(bytes);
  if (bytes > 0) std::memcpy(early->payload.data(), data, bytes);
  keep_early(*this, matcher_, std::move(early));
}

inline void mpi_endpoint::on_announce(const envelope& header, std::uint64_t ticket) {
  if (request* const receive = match_arrival(*this, matcher_, header); receive != nullptr)
    return grant(*receive, header.source, ticket);
  if (const group* const g = find(header.context); g != nullptr && g->failure()) return;
  auto early = std::make_unique<early_message>();
  early->header = header;
  early->ticket = ticket;
  keep_early(*this, matcher_, std::move(early));
}

inline void mpi_endpoint::on_grant(int source, const mpi_packet& p) {
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
inline void mpi_endpoint::on_revoke(int source, const mpi_packet& p) {
  for (std::size_t i = 0; i < transfers_.size(); ++i) {
    if (transfers_[i].peer != source || transfers_[i].tag < 0 ||
        static_cast<std::uint64_t>(transfers_[i].tag) != p.other)
      continue;
    if (transfers_[i].owner != nullptr) transfers_[i].owner->place = nullptr;
    transfers_[i].owner = nullptr;
    MPI_Cancel(&transfer_requests_[i]);
    MPI_Wait(&transfer_requests_[i], MPI_STATUS_IGNORE);
    return finish(i, MPI_SUCCESS);
  }
}

}  // namespace cohort::transport
