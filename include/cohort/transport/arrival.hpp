// SPDX-License-Identifier: BSL-1.0
// What every transport does with a message that arrives from another process: finds the receive that it is for, or why
// there can be none. Between the matcher and the engine; used by the TCP and the MPI transport.
#pragma once

#include <cohort/transport/engine.hpp>
#include <cohort/transport/matching.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cohort::transport {

/// Fails the communicator of a request on every rank.
inline void refuse(engine& e, const request& r, int culprit, errc code, std::string text) {
  const call& c = *r.owner->owner;
  e.report_mismatch(c.home(), c.sequence(), culprit, code, std::move(text));
}

/// The posted receive of a message, when the two agree; null when there is none. A disagreement fails the communicator
/// on every rank.
[[nodiscard]] inline request* match_arrival(engine& e, matcher& posted, const envelope& header) {
  request* const receive = posted.take_posted(header);
  if (receive == nullptr) {
    if (const group* const g = e.find(header.context); g != nullptr && !g->failure()) {
      if (auto wrong = check_unexpected(*g, header)) {
        e.report_mismatch(*g, header.sequence, header.source, errc::mismatch, std::move(*wrong));
      }
    }
    return nullptr;
  }
  if (auto wrong = accept_delivery(receive->owner->owner->home(), header, *receive)) {
    posted.post(*receive);
    refuse(e, *receive, header.source, wrong->code, std::move(wrong->text));
    return nullptr;
  }
  receive->header = header;
  return receive;
}

/// Keeps a message that nobody has asked for yet; probes see it.
inline early_message& keep_early(engine& e, matcher& early, std::unique_ptr<early_message> message) {
  early_message& kept = early.keep(std::move(message));
  while (request* const probe = early.take_probe(kept.header)) e.complete(*probe);
  return kept;
}

/// A call that begins here: whether a message of another one, with its number, is there already, which fails the
/// communicator on every rank.
[[nodiscard]] inline bool contradicts_early(engine& e, matcher& early, const call& c) {
  if (early.nothing_early()) return false;
  const early_message* const m = early.conflicting(c.home().context(), c.sequence(), c.signature());
  if (m == nullptr) return false;
  e.report_mismatch(c.home(), c.sequence(), m->header.source, errc::mismatch,
                    describe_disagreement(c.home(), e.rank(), c.signature(), m->header.source, m->header.call));
  return true;
}

}  // namespace cohort::transport
