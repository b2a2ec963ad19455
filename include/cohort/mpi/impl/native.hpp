// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/endpoint.hpp: the order of MPI's own collectives on each communicator, and what becomes of those that are given
// up. The making of MPI's communicators is in communicators.hpp.
#pragma once

#include <cohort/mpi/endpoint.hpp>

#include <algorithm>
#include <utility>

namespace cohort::transport {

COHORT_DECL native_turn::native_turn(mpi_endpoint& endpoint, call& c) : owner(&c), endpoint_(&endpoint) {
  endpoint_->queue(*this);
}
COHORT_DECL native_turn::~native_turn() { endpoint_->unqueue(*this); }

COHORT_DECL void mpi_endpoint::queue(native_turn& t) {
  native_line& line = natives_[t.owner->home().context()];
  if (line.members.empty()) {
    line.members = t.owner->home().members();
    // The world has its communicator already. Not the one of short messages: MPI would look through the receives that wait for
    // those whenever a part of a collective comes.
    if (t.owner->home().context() == 0) line.comm = data_;
    t.first = line.comm == MPI_COMM_NULL;
  }
  t.line = &line;
  t.previous = line.last;
  (line.last != nullptr ? line.last->next : line.first) = &t;
  line.last = &t;
}

COHORT_DECL void mpi_endpoint::unqueue(native_turn& t) noexcept {
  if (t.issued) return;
  t.issued = true;
  (t.previous != nullptr ? t.previous->next : t.line->first) = t.next;
  (t.next != nullptr ? t.next->previous : t.line->last) = t.previous;
  t.previous = t.next = nullptr;
}

COHORT_DECL void mpi_endpoint::start_native(native_turn& t) {
  t.waiting->place = &t;
  pump(t.owner->home().context());
}

/// Starts what may be started: those in front whose ranks have all come.
COHORT_DECL void mpi_endpoint::pump(std::uint64_t context) {
  native_line& line = natives_[context];
  while (line.first != nullptr && line.first->waiting != nullptr) {
    if (line.comm == MPI_COMM_NULL) return want_comm(context, line);
    native_turn& t = *line.first;
    unqueue(t);
    try {
      if (started_.empty()) {
        ++line.begun;
        t.start(t.self, line.comm, t.parts);
      } else {
        t.parts = std::exchange(started_, {});
        if (started_code_ != MPI_SUCCESS) return refuse_native(*t.waiting, started_code_);
      }
    } catch (const error& e) {
      t.waiting->place = nullptr;
      refuse(*t.waiting, rank(), e.condition(), std::string{"MPI refused it: "} + e.what());
      return;
    }
    issued_.push_back(&t);
    busy_until_ = clock::time_point{};
    nap_ = std::chrono::microseconds{0};
  }
}

COHORT_DECL bool mpi_endpoint::tested(request_list_of_mpi& parts, int& code) noexcept {
  int done = 0;
  if (parts.size() == 1) {
    code = MPI_Test(parts.data(), &done, MPI_STATUS_IGNORE);
  } else {
    code = MPI_Testall(static_cast<int>(parts.size()), parts.data(), &done, MPI_STATUSES_IGNORE);
  }
  return done != 0 || code != MPI_SUCCESS;
}

COHORT_DECL bool mpi_endpoint::settle_natives() {
  bool moved = false;
  for (std::size_t i = 0; i < issued_.size();) {
    native_turn& t = *issued_[i];
    int code = MPI_SUCCESS;
    if (!tested(t.parts, code)) {
      ++i;
      continue;
    }
    moved = true;
    issued_[i] = issued_.back();
    issued_.pop_back();
    request& r = *t.waiting;
    if (code == MPI_SUCCESS) {
      t.parts.clear();
      ++t.line->ended;
      complete(r);
      continue;
    }
    refuse_native(r, code);
    return true;  // the list may have changed
  }
  return moved;
}

COHORT_DECL void mpi_endpoint::refuse_native(request& r, int code) {
  r.place = nullptr;
  refuse(r, -1, errc::mismatch,
         detail::mpi_sentence(code, "MPI's own collective") +
             "; the ranks may have called different things, which only COHORT_MPI_CHECK=always finds out before");
}

/// MPI cannot cancel a collective. Every rank has entered it or soon will, so it ends; if not, it keeps its buffers.
COHORT_DECL void mpi_endpoint::give_up(native_turn& t) noexcept {
  if (!t.issued) {
    unqueue(t);
    return abandon_comm(t.owner->home().context());
  }
  const auto at = std::find(issued_.begin(), issued_.end(), &t);
  if (at == issued_.end()) return;
  issued_.erase(at);
  wait_for_end(t.parts, *t.line);
}

COHORT_DECL void mpi_endpoint::wait_for_end(request_list_of_mpi& parts, native_line& line) noexcept {
  // Where MPI has not ended one within that time, it does not end the next ones either.
  const bool at_once = parts.may_be_left() || line.stuck;
  auto until = clock::now() + (at_once ? clock::duration{0} : clock::duration{patience});
  int code = MPI_SUCCESS;
  bool taken_back = false;
  while (!tested(parts, code)) {
    if (clock::now() >= until) {
      line.stuck = line.stuck || !parts.may_be_left();
      if (std::exchange(taken_back, true)) return;
      parts.take_back();
      until += longest_taking_back;
    }
    hear_recalls();
    ::sched_yield();
  }
  // What comes for a receive that was taken back is pending there for good.
  if (code == MPI_SUCCESS && !taken_back) ++line.ended;
  parts.clear();
}

// --- begun where they are called ---------------------------------------------------------------------------

COHORT_DECL MPI_Comm mpi_endpoint::comm_to_start_on(const group& g) {
  // Now and then a frame, whose turns hear what else others have to say.
  constexpr unsigned starts_a_turn = 64;
  if (check_ != native_check::never || broken_ || ++starts_ % starts_a_turn == 0) return MPI_COMM_NULL;
  if (!outgoing_.empty()) push_out();
  if (!issued_.empty() || !transfers_.empty() || !outgoing_.empty() || !matcher_.nothing_early()) return MPI_COMM_NULL;
  const auto line = natives_.find(g.context());
  if (line == natives_.end() || line->second.first != nullptr) return MPI_COMM_NULL;
  if (line->second.comm == MPI_COMM_NULL) return MPI_COMM_NULL;
  starting_ = &line->second;
  ++starting_->begun;
  return starting_->comm;
}

COHORT_DECL bool mpi_endpoint::ends_soon(request_list_of_mpi& parts, std::size_t bytes, int& code) noexcept {
  constexpr std::size_t bytes_a_test = 512;  // MPI moves them while it is asked, and more slowly otherwise
  const std::size_t tests = brief_tests_ + (brief_tests_ > 1 ? bytes / bytes_a_test : 0);
  for (std::size_t i = 0; i < tests; ++i) {
    if (!tested(parts, code)) continue;
    if (code == MPI_SUCCESS) ++starting_->ended;
    return code == MPI_SUCCESS;
  }
  return false;
}

COHORT_DECL void mpi_endpoint::keep_started(request_list_of_mpi parts, int code,
                                            detail::borrowed_buffer arriving) noexcept {
  started_ = std::move(parts);
  started_code_ = code;
  started_into_ = std::move(arriving);
}

COHORT_DECL detail::borrowed_buffer mpi_endpoint::take_kept(std::size_t bytes) {
  if (started_into_.data() != nullptr) return std::move(started_into_);
  return detail::borrowed_buffer(scratch(), bytes);
}

COHORT_DECL void mpi_endpoint::drop_started() noexcept {
  if (started_.empty()) return;
  if (started_code_ == MPI_SUCCESS) wait_for_end(started_, *starting_);
  if (!started_.empty()) started_into_.leave();
  started_into_ = {};
  started_.clear();
}

}  // namespace cohort::transport
