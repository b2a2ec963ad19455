// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: beginning, the turn, and the end.
#pragma once

#include <cohort/detail/host_name.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/finished_by_mpi.hpp>
#include <cohort/mpi/library.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/version.hpp>

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace cohort::transport {
namespace detail_mpi {

// The library's version up to the patch level, and that of the messages below.
inline constexpr int protocol = (COHORT_VERSION_MAJOR * 1000 + COHORT_VERSION_MINOR) * 1000 + 20;

/// So long a world that ends moves what is still on its way.
inline constexpr std::chrono::seconds farewell{1};

[[nodiscard]] inline int rank_in(MPI_Comm comm) {
  int rank = 0;
  detail::check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}
[[nodiscard]] inline int size_of(MPI_Comm comm) {
  int size = 0;
  detail::check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}
[[nodiscard]] inline MPI_Comm copy_of(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  detail::check_mpi(MPI_Comm_dup(comm, &copy), "MPI_Comm_dup");
  detail::check_mpi(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return copy;
}

[[nodiscard]] inline int ranks_on_host(MPI_Comm comm) {
  MPI_Comm here = MPI_COMM_NULL;
  detail::check_mpi(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here), "MPI_Comm_split_type");
  const int ranks = size_of(here);
  MPI_Comm_free(&here);
  return ranks;
}

}  // namespace detail_mpi

COHORT_DECL mpi_endpoint::mpi_endpoint(MPI_Comm base, const settings& wanted)
    : sharing_engine(detail_mpi::rank_in(base), detail_mpi::size_of(base)),
      host_(detail::host_name()),
      check_(wanted.check),
      cuda_support_(ask_mpi_for_cuda()),
      takes_device_memory_(cohort::takes_device_memory(cuda_support_, wanted.device_memory)) {
  control_ = detail_mpi::copy_of(base);
  data_ = detail_mpi::copy_of(base);
  int versions[2] = {detail_mpi::protocol, -detail_mpi::protocol};
  detail::check_mpi(MPI_Allreduce(MPI_IN_PLACE, versions, 2, MPI_INT, MPI_MAX, control_), "MPI_Allreduce");
  if (versions[0] != -versions[1]) {
    const auto in_words = [](int v) {
      return std::to_string(v / 1000000) + "." + std::to_string(v / 1000 % 1000) + " (protocol " +
             std::to_string(v % 1000) + ")";
    };
    throw error(errc::version_mismatch, "the ranks of this MPI job are of cohort " + in_words(-versions[1]) + " to " +
                                            in_words(versions[0]) + ": build all of them with one version");
  }
  int other_worlds = detail::mpi_users::any() ? 1 : 0;
  detail::check_mpi(MPI_Allreduce(MPI_IN_PLACE, &other_worlds, 1, MPI_INT, MPI_MAX, control_), "MPI_Allreduce");
  makes_comms_ = other_worlds == 0;
  void* limit = nullptr;
  int known = 0;
  detail::check_mpi(MPI_Comm_get_attr(data_, MPI_TAG_UB, static_cast<void*>(&limit), &known), "MPI_Comm_get_attr");
  if (known != 0) greatest_tag_ = *static_cast<const int*>(limit) - 1;
  left_.resize(static_cast<std::size_t>(size()), false);
  following_.resize(static_cast<std::size_t>(size()), 0);
  held_up_.resize(static_cast<std::size_t>(size()), 0);
  coming_.resize(static_cast<std::size_t>(size()));
  credit_.resize(static_cast<std::size_t>(size()), static_cast<std::int64_t>(window));
  owed_.resize(static_cast<std::size_t>(size()), 0);
  answers_.resize(static_cast<std::size_t>(size()));
  ring_.resize(slot_bytes * ring_size);
  arriving_.fill(MPI_REQUEST_NULL);
  for (std::size_t& slot : taken_) slot = taken_count_++;
  listen_again();
  // Where every rank has a core, one that is not there yet may come in a moment; where not, it needs this one.
  constexpr std::size_t a_moment = 32;
  if (detail_mpi::ranks_on_host(control_) <= ::sysconf(_SC_NPROCESSORS_ONLN)) brief_tests_ = a_moment;
  share_memory(wanted);
  detail::mpi_users::add(this, [](void* self) noexcept { static_cast<mpi_endpoint*>(self)->say_last_words(); });
}

/// MPI ends before this world is destroyed: the others hear that this rank leaves.
COHORT_DECL void mpi_endpoint::say_last_words() noexcept {
  leave();
  push_out();
  try {
    if (neighbours_ && !broken_) links_.push_out(*neighbours_, detail_mpi::farewell, [this] { (void)take_letters(); });
  } catch (...) {
    // The others find out by their deadlines.
  }
  broken_ = true;
}

COHORT_DECL mpi_endpoint::~mpi_endpoint() {
  detail::mpi_users::remove(this);
  if (detail::mpi_has_ended()) broken_ = true;
  silence();
  mpi_endpoint::leave();
  if (detail::mpi_has_ended()) {
    abandon_requests();
    return;
  }
  // What others still send to this rank, and what it sent last, should not end with it.
  bool quiet = false;
  try {
    quiet = end_quietly(clock::now() + detail_mpi::farewell);
  } catch (...) {
    broken_ = true;
  }
  for (MPI_Request& r : arriving_) {
    if (r == MPI_REQUEST_NULL) continue;
    MPI_Cancel(&r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
  }
  for (const int r : links_.ranks()) links_.to(r).connection->close();
  for (outgoing& o : outgoing_) {
    int done = 0;
    MPI_Test(&o.sent, &done, MPI_STATUS_IGNORE);
    if (done != 0) o.buffer = {};
  }
  abandon_requests();
  if (!quiet) return;  // left to MPI_Finalize
  MPI_Comm_free(&data_);
  MPI_Comm_free(&control_);
}

/// MPI may still use what it has not said to have finished with: memory that is lost at the end of a world is better than a
/// message that is not what it was.
COHORT_DECL void mpi_endpoint::abandon_requests() noexcept {
  for (outgoing& o : outgoing_) static_cast<void>(o.buffer.release());
  for (transfer& t : transfers_) static_cast<void>(t.sink.release());
}

COHORT_DECL bool mpi_endpoint::progress() {
  bool moved = waits_.look(*this);
  if (broken_) return moved;
  // Words in memory cost less to look at than MPI: while nothing else is waited for, MPI is asked more rarely.
  constexpr unsigned looks_a_question = 16;
  constexpr unsigned looks_a_letter = 64;
  try {
    if (!links_.empty()) moved = links_.move() || moved;
    const bool in_mpi = !issued_.empty() || !outgoing_.empty() || !transfers_.empty() || !held_.empty();
    const bool in_memory = !waits_.empty() || (all_share_memory_ && !links_.empty());
    if (++turns_ % looks_a_question != 0 && in_memory && !in_mpi) {
      if (moved) nap_ = std::chrono::microseconds{0};
      return moved;
    }
    // Letters are looked for by a system call, and are rare: they open windows and connections.
    if (neighbours_ && (turns_ % looks_a_letter == 0 || neighbours_->has_waiting())) moved = take_letters() || moved;
    // MPI moves a collective of its own only while it is asked about it: whoever waits here mostly waits for that. Among ranks that
    // share cores, the one that it waits for may need this core to go on.
    const int questions = how_to_wait().crowded() ? 1 : 16;
    for (int i = 0; i < questions && !moved && !issued_.empty(); ++i) moved = settle_natives();
    moved = take_arrivals() || moved;
    if (!outgoing_.empty()) moved = settle_outgoing() || moved;
    if (!transfers_.empty()) moved = settle_transfers() || moved;
    if (inquiry_ && clock::now() >= inquiry_->until) conclude_inquiry();
  } catch (const std::exception& e) {
    mpi_failed(e.what());
  }
  if (moved) nap_ = std::chrono::microseconds{0};
  return moved;
}

/// Of those to one rank, which mostly end in the order in which they began, the oldest is asked about, and the next one once it
/// has ended: a rank that MPI has to wait for holds up nothing that goes elsewhere.
COHORT_DECL bool mpi_endpoint::settle_outgoing() {
  bool moved = false;
  ++settling_;
  for (outgoing& o : outgoing_) {
    unsigned& held_up = held_up_[static_cast<std::size_t>(o.peer)];
    if (held_up == settling_ || (o.sent == MPI_REQUEST_NULL && o.buffer.data() == nullptr)) continue;
    if (!detail::finished_by_mpi(o.sent)) {
      held_up = settling_;
      continue;
    }
    moved = true;
    finish_outgoing(o);
  }
  while (!outgoing_.empty() && outgoing_.front().sent == MPI_REQUEST_NULL) forget_oldest_outgoing();
  return moved;
}

/// MPI has sent it.
COHORT_DECL void mpi_endpoint::finish_outgoing(outgoing& o) {
  scratch().give_back(std::move(o.buffer));
  request* const owner = std::exchange(o.owner, nullptr);
  if (owner == nullptr) return;
  owner->place = nullptr;
  complete(*owner);
}
COHORT_DECL void mpi_endpoint::forget_oldest_outgoing() {
  finish_outgoing(outgoing_.front());
  static_cast<void>(outgoing_.pop_front());
}

COHORT_DECL void mpi_endpoint::sleep_until(clock::time_point until) {
  const bool in_mpi = !transfers_.empty() || !issued_.empty() || !outgoing_.empty();
  const auto now = clock::now();
  if (now >= compare_at_ && !broken_) compare_calls(now);
  // MPI moves long messages only while it is called: those get a while of undivided attention.
  if (nap_.count() == 0) busy_until_ = now + std::chrono::milliseconds{in_mpi ? 50 : 0};
  constexpr std::chrono::microseconds shortest{20};
  constexpr std::chrono::microseconds longest{1000};
  if (nap_.count() == 0) nap_ = shortest;
  if (in_mpi && now < busy_until_) {
    ::sched_yield();
    return;
  }
  // MPI has nothing that can be slept on together with other things: short naps, longer ones when nothing happens.
  if (!neighbours_) {
    std::unique_lock lock(mutex_);
    rung_.wait_until(lock, std::min(until, now + nap_), [this] { return woken_; });
    woken_ = false;
  } else {
    sleep_beside_memory(std::min(until, now + nap_));
  }
  nap_ = std::min(in_mpi ? shortest * 4 : longest, nap_ * 2);
}

COHORT_DECL void mpi_endpoint::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  if (beside_memory_) neighbours_->ring(rank());
  rung_.notify_all();
}

COHORT_DECL std::vector<int> mpi_endpoint::everybody() const {
  std::vector<int> all(static_cast<std::size_t>(size()));
  for (int r = 0; r < size(); ++r) all[static_cast<std::size_t>(r)] = r;
  return all;
}

// The making of a communicator blocks: of several worlds in one process only the first makes any, as processes that drive them
// in different orders would wait for each other. What the others have for themselves is made by connect.
COHORT_DECL void mpi_endpoint::group_added(group& g) {
  place(g);
  if (!makes_comms_ && g.context() != 0) g.natives = false;
}

COHORT_DECL void mpi_endpoint::group_removed(group& g) {
  if (detail::mpi_has_ended()) broken_ = true;
  if (neighbours_) neighbours_->forget(g.context());
  for (const int r : links_.ranks()) links_.to(r).connection->forget(g.context());
  matcher_.forget(g.context(), [this](const early_message& m) { drop(m); });
  abandon_comm(g.context());
  retirements& r = retired_[g.context()];
  r.own = true;
  const std::uint64_t natives = r.natives = natives_of(g.context());
  settle_retirements(g.context(), g.members().size());
  if (broken_) return;
  const mpi_standing last = mpi_standing::of(g.arrival(), ::getpid(), host_);
  mpi_packet p = mpi_packet::of(mpi_packet::kind::retired);
  p.context = g.context();
  p.other = natives;
  try {
    // Why it failed comes before that it is gone: whoever has not heard of it yet would blame this rank.
    if (g.failure()) broadcast(*g.failure(), g.members());
    for (const int member : g.members()) {
      if (member != rank()) post(member, p, &last, sizeof last);
    }
  } catch (...) {
    broken_ = true;  // the others find out by their deadlines
  }
}

COHORT_DECL void mpi_endpoint::leave() {
  if (has_left_) return;
  has_left_ = true;
  left_[static_cast<std::size_t>(rank())] = true;
  ++ranks_left_;
  if (broken_) return;
  try {
    for (int r = 0; r < size(); ++r) {
      if (r != rank()) post(r, mpi_packet::of(mpi_packet::kind::left));
    }
  } catch (...) {
    broken_ = true;
  }
}

COHORT_DECL bool mpi_endpoint::wait_until_all_left(clock::time_point deadline) {
  const auto all_sent = [this] {
    return outgoing_.empty() && std::none_of(links_.ranks().begin(), links_.ranks().end(),
                                             [this](int r) { return links_.to(r).connection->has_output(); });
  };
  const auto done = [&] { return broken_ || (ranks_left_ == size() && all_sent()); };
  drive_until([&] { return done() || (deadline != clock::time_point::max() && clock::now() >= deadline); });
  return done() && !broken_;
}

}  // namespace cohort::transport
