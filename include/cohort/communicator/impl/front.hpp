// SPDX-License-Identifier: BSL-1.0
// Bodies of communicator/front.hpp.
#pragma once

#include <cohort/communicator/front.hpp>
#include <cohort/error.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace cohort::detail {

COHORT_DECL void add_option(call::options& o, const timeout& t) {
  if (t.after <= std::chrono::nanoseconds::zero()) {
    throw error(errc::invalid_argument,
                "timeout of " + std::to_string(t.after.count()) +
                    " ns: expected more than zero; leave it out for the communicator's default");
  }
  o.timeout = t.after;
}

COHORT_DECL void front_base::refuse_entry(operation_kind kind, errc why) const {
  if (why == errc::closed) {
    throw error(errc::closed, std::string{name(kind)} + ": this communicator was moved from or never connected");
  }
  if (why == errc::not_a_member) {
    refuse(why, kind, "this process is not in the communicator: ask is_member() before the call");
  }
  refuse(why, kind, group_->engine().misuse_text());
}

COHORT_DECL void front_base::refuse_failed(operation_kind kind) const {
  const transport::fault& f = *group_->failure();
  refuse(f.code, kind, "the communicator has failed and takes no more calls; first cause: " + f.text, f.culprit);
}

COHORT_DECL void front_base::refuse(errc code, operation_kind kind, const std::string& text, int culprit) const {
  error_details d;
  d.rank = group_->engine().rank();
  d.peer = culprit;
  d.host = group_->engine().host();
  d.operation = std::string{name(kind)};
  d.group = group_->name();
  const std::string sentence = d.operation + " on '" + d.group + "' refused on rank " + std::to_string(rank()) +
                               " of " + std::to_string(size()) + ": " + text;
  throw error(code, sentence, std::move(d));
}

COHORT_DECL void front_base::refuse(operation_kind kind, const std::string& text) const {
  refuse(errc::invalid_argument, kind, text);
}

COHORT_DECL void front_base::refuse_rank(operation_kind kind, const char* role, int rank) const {
  refuse(kind, std::string{role} + " " + std::to_string(rank) + ": expected 0.." + std::to_string(size() - 1));
}

COHORT_DECL void front_base::refuse_tag(operation_kind kind, tag t) const {
  refuse(kind, "tag " + std::to_string(t.value) + ": expected 0.." + std::to_string(std::numeric_limits<int>::max()));
}

COHORT_DECL void front_base::refuse_null(operation_kind kind, const char* buffer, std::size_t count) const {
  refuse(kind, std::string{buffer} + " is a null pointer with " + std::to_string(count) + " elements");
}

COHORT_DECL std::size_t front_base::divide(operation_kind kind, const char* buffer, std::size_t found,
                                           const char* uneven) const {
  const auto n = static_cast<std::size_t>(size());
  if (found % n != 0) {
    refuse(kind, std::string{buffer} + " has " + std::to_string(found) + " elements, not a multiple of the " +
                     std::to_string(n) + " ranks: use " + uneven + " for blocks of different sizes");
  }
  return found / n;
}

COHORT_DECL void front_base::refuse_count(operation_kind kind, const char* buffer, std::size_t found,
                                          std::size_t expected, const std::string& reason) const {
  refuse(kind, std::string{buffer} + " has " + std::to_string(found) + " elements, expected " +
                   std::to_string(expected) + " = " + reason);
}

COHORT_DECL void front_base::refuse_overlap(operation_kind kind) const {
  refuse(kind, "input and output overlap in part: pass disjoint buffers, or use the in-place form");
}

COHORT_ALIGNED COHORT_DECL collective::algorithm front_base::choose(operation_kind kind, std::size_t bytes) const {
  return group_->selection.choose(kind, bytes, size(), true,
                                  {group_->natives, shares(kind), group_->hosts != nullptr, group_->crowded});
}

COHORT_ALIGNED COHORT_DECL collective::algorithm front_base::choose(operation_kind kind, std::size_t bytes,
                                                                    bool commutative, bool may_be_native) const {
  return group_->selection.choose(
      kind, bytes, size(), commutative && !group_->ordered,
      {may_be_native && group_->natives && !group_->ordered, shares(kind), group_->hosts != nullptr, group_->crowded});
}

COHORT_DECL bool front_base::alone(const call::options& o) const noexcept {
  if (group_->size() != 1 || o.stop.stop_possible()) return false;
  (void)group_->next_sequence();
  return true;
}

COHORT_DECL ticket front_base::enter(const transport::signature& s, call::options o) const {
  return ticket(group_, group_->next_sequence(), s, std::move(o));
}

COHORT_DECL ticket front_base::enter_message(const transport::signature& s, call::options o) const {
  return ticket(group_, -1, s, std::move(o));
}

COHORT_DECL transport::signature front_base::sign(operation_kind kind, collective::algorithm how, std::uint16_t type,
                                                  std::uint64_t count, std::uint16_t functor,
                                                  std::uint16_t root) const {
  transport::signature claimed;
  claimed.kind = kind;
  claimed.algorithm = how;
  claimed.type = type;
  claimed.functor = functor;
  claimed.root = root;
  transport::signature s;
  s.set_packed(claimed.packed());
  s.count = count;
  return s;
}

COHORT_DECL bool front_base::shares(operation_kind kind) const noexcept {
  return group_->window != nullptr && !(group_->ordered && reduces(kind));
}

}  // namespace cohort::detail
