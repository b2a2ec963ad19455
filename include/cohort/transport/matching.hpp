// SPDX-License-Identifier: BSL-1.0
// Which message belongs to which receive: posted receives and early messages of one rank, without any I/O.
// Used by every transport; a collective is matched by its number, a tagged message by source and tag.
#pragma once

#include <cohort/transport/call.hpp>
#include <cohort/transport/early_messages.hpp>
#include <cohort/transport/request.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace cohort::transport {

/// Whether a message may be taken by a receive that nobody has posted, into a buffer of `room` bytes.
[[nodiscard]] inline bool may_take(const envelope& came, const envelope& expected, std::size_t room) noexcept {
  if (came.tagged != expected.tagged || came.context != expected.context || came.sequence != expected.sequence)
    return false;
  return came.tagged ? came.call.type == expected.call.type && came.bytes <= room
                     : came.call == expected.call && came.bytes == room;
}

class matcher {
 public:
  matcher() = default;
  matcher(const matcher&) = delete;
  matcher& operator=(const matcher&) = delete;
  ~matcher() = default;

  /// Takes the oldest posted receive that this message belongs to; null if there is none yet.
  [[nodiscard]] request* take_posted(const envelope& message) {
    queues& q = of(message.context);
    for (request* r = q.posted.front(); r != nullptr; r = r->next) {
      if (r->probing || !matches(message, *r)) continue;
      q.posted.remove(*r);
      r->place = nullptr;
      return r;
    }
    return nullptr;
  }
  /// Takes a probe that waits for such a message; null if there is none (more).
  [[nodiscard]] request* take_probe(const envelope& message) {
    queues& q = of(message.context);
    for (request* r = q.posted.front(); r != nullptr; r = r->next) {
      if (!r->probing || !matches(message, *r)) continue;
      q.posted.remove(*r);
      r->place = nullptr;
      r->header = message;
      return r;
    }
    return nullptr;
  }
  /// The oldest early message that this probe asks for; null if there is none yet.
  [[nodiscard]] const early_message* find_early(const request& probe) { return find(of(probe.header.context), probe); }

  /// Takes the oldest early message that this receive asks for; null if there is none yet.
  [[nodiscard]] std::unique_ptr<early_message> take_early(const request& receive) {
    queues& q = of(receive.header.context);
    early_message* const m = find(q, receive);
    if (m == nullptr) return nullptr;
    --early_;
    return q.early.take(*m);
  }

  /// The same for one of this rank that has no request, where nothing of its communicator is waited for: only one that is
  /// what is expected, has room, and is here with all its bytes.
  [[nodiscard]] std::unique_ptr<early_message> take_whole(const envelope& expected, int source, std::size_t room) {
    queues& q = of(expected.context);
    if (!q.posted.empty()) return nullptr;
    early_message* const m = q.early.find(expected.tagged, expected.sequence, [&](const early_message& each) {
      return each.header.source == source && each.header.sequence == expected.sequence;
    });
    if (m == nullptr || m->ticket != 0 || m->sender != nullptr || m->arrived < m->header.bytes) return nullptr;
    if (!may_take(m->header, expected, room)) return nullptr;
    --early_;
    return q.early.take(*m);
  }

  void post(request& receive) {
    of(receive.header.context).posted.push_back(receive);
    receive.place = this;
  }
  void withdraw(request& receive) {
    of(receive.header.context).posted.remove(receive);
    receive.place = nullptr;
  }

  early_message& keep(std::unique_ptr<early_message> message) {
    early_message& m = of(message->header.context).early.keep(std::move(message));
    ++early_;
    return m;
  }

  /// A send of this process that is withdrawn before it was matched.
  void discard_sender(const request& send) {
    early_ -= of(send.header.context).early.discard_if([&send](const early_message& m) { return m.sender == &send; });
  }
  /// Everything that a lost connection announced and cannot deliver any more.
  template <class Drop>
  void discard_if(Drop drop) {
    for (auto& [context, q] : queues_) early_ -= q.early.discard_if(drop);
  }
  /// Whether a receive of this communicator waits for this peer and no other; -1: for any of them.
  [[nodiscard]] bool awaits(std::uint64_t context, int peer, bool tagged_only) {
    for (const request* r = of(context).posted.front(); r != nullptr; r = r->next) {
      if (r->peer == peer && (r->tagged() || !tagged_only)) return true;
    }
    return false;
  }
  /// Whether a receive of this communicator may wait for this peer, or for whoever comes. Of many it looks at the first few.
  [[nodiscard]] bool may_await(std::uint64_t context, int peer) {
    constexpr int few = 32;
    const request* r = of(context).posted.front();
    for (int i = 0; i < few && r != nullptr && r->peer != peer && r->peer >= 0; ++i) r = r->next;
    return r != nullptr;
  }
  /// The communicator is gone; `dropped` sees each message that nobody has asked for.
  template <class Dropped>
  void forget(std::uint64_t context, Dropped dropped) {
    const auto at = queues_.find(context);
    if (at == queues_.end()) return;
    early_ -= at->second.early.discard_if([&dropped](const early_message& m) {
      dropped(m);
      return true;
    });
    queues_.erase(at);
    cached_ = nullptr;
  }

  /// Whether no message has come early.
  [[nodiscard]] bool nothing_early() const noexcept { return early_ == 0; }
  /// Whether nothing has come early, and nothing of this communicator is waited for.
  [[nodiscard]] bool idle(std::uint64_t context) { return early_ == 0 && of(context).posted.empty(); }
  /// Whether no early message for this collective says that its sender called something else.
  [[nodiscard]] bool nothing_against(std::uint64_t context, std::int64_t sequence, const signature& mine) {
    return early_ == 0 || conflicting(context, sequence, mine) == nullptr;
  }
  /// An early message for this collective that says that its sender called something else.
  [[nodiscard]] const early_message* conflicting(std::uint64_t context, std::int64_t sequence, const signature& mine) {
    const auto number = static_cast<std::uint32_t>(sequence);
    return of(context).early.find(
        false, number, [&](const early_message& m) { return m.header.sequence == number && m.header.call != mine; });
  }

 private:
  struct queues {
    request_list posted{};
    early_messages early{};
  };

  static bool matches(const envelope& message, const request& r) noexcept {
    if (message.tagged != r.header.tagged) return false;
    if (r.peer >= 0 && r.peer != message.source) return false;
    return (message.tagged && r.any_tag) || message.sequence == r.header.sequence;
  }

  [[nodiscard]] static early_message* find(const queues& q, const request& r) {
    return q.early.find(r.header.tagged, r.header.sequence,
                        [&r](const early_message& m) { return matches(m.header, r); });
  }

  queues& of(std::uint64_t context) {
    if (cached_ != nullptr && cached_context_ == context) return *cached_;
    cached_ = &queues_[context];
    cached_context_ = context;
    return *cached_;
  }

  queues* cached_ = nullptr;
  std::uint64_t cached_context_ = 0;
  std::size_t early_ = 0;
  std::unordered_map<std::uint64_t, queues> queues_{};
};

/// What is wrong with delivering this message to this receive; nothing, if all is well.
struct disagreement {
  errc code;
  std::string text;
};

/// Needs: `mine` and `theirs` are ranks of the world
[[nodiscard]] inline std::string describe_disagreement(const group& g, int mine, const signature& my_call, int theirs,
                                                       const signature& their_call) {
  return describe_disagreement(g.rank_of(mine), my_call, g.rank_of(theirs), their_call);
}

/// Who sends nothing there any more, and takes nothing: a rank of the world, or with -1 every other member.
[[nodiscard]] inline std::string describe_departure(const group& g, int rank, bool from_world) {
  return (rank < 0 ? "every other rank" : "rank " + std::to_string(g.rank_of(rank))) +
         (from_world ? " has left the world" : " has left '" + g.name() + "'");
}

[[nodiscard]] inline std::optional<disagreement> check_delivery(const group& g, const envelope& message,
                                                                const request& receive) {
  if (!message.tagged) {
    if (message.call != receive.header.call) {
      return disagreement{errc::mismatch, describe_disagreement(g, g.world_rank(g.rank()), receive.header.call,
                                                                message.source, message.call)};
    }
    if (message.bytes != receive.header.bytes) {
      return disagreement{errc::mismatch,
                          describe_count_disagreement(g.rank_of(message.source), message.bytes, g.rank(),
                                                      receive.header.bytes, describe(message.call))};
    }
    return std::nullopt;
  }
  // Nothing is put into words on the way of every message.
  const auto who = [&g, &message] { return "rank " + std::to_string(g.rank_of(message.source)); };
  const auto me = [&g] { return "rank " + std::to_string(g.rank()); };
  if (message.call.type != receive.header.call.type) {
    return disagreement{errc::mismatch, who() + " sent elements of " + element_type_name(message.call.type) +
                                            " with tag " + std::to_string(message.sequence) + ", " + me() +
                                            " receives " + element_type_name(receive.header.call.type)};
  }
  if (receive.make_room == nullptr && message.bytes > receive.header.bytes) {
    return disagreement{errc::truncated, who() + " sent " + std::to_string(message.call.count) + " elements with tag " +
                                             std::to_string(message.sequence) + ", " + me() + " has room for " +
                                             std::to_string(receive.header.call.count)};
  }
  return std::nullopt;
}

/// What is wrong with it, or nothing: then the receive has room for the message.
[[nodiscard]] inline std::optional<disagreement> accept_delivery(const group& g, const envelope& message,
                                                                 request& receive) {
  if (auto wrong = check_delivery(g, message, receive)) return wrong;
  if (receive.make_room == nullptr || receive.make_room(receive, message.bytes)) return std::nullopt;
  return disagreement{errc::truncated, "rank " + std::to_string(g.rank_of(message.source)) + " sent " +
                                           std::to_string(message.call.count) + " elements with tag " +
                                           std::to_string(message.sequence) + ", rank " + std::to_string(g.rank()) +
                                           " cannot make room for them: its container may not grow so far, or there is "
                                           "no memory"};
}

/// A message nobody has asked for, held against what this rank does at that number; empty: it may still be asked for.
[[nodiscard]] inline std::optional<std::string> check_unexpected(const group& g, const envelope& message) {
  if (message.tagged) return std::nullopt;
  const auto mine = g.recent(message.sequence);
  if (!mine || *mine == message.call) return std::nullopt;
  return describe_disagreement(g, g.world_rank(g.rank()), *mine, message.source, message.call);
}

/// Copies bytes into the pieces of a receive, from byte `offset` of the message on.
inline void scatter_into(const request& receive, std::size_t offset, const std::byte* from,
                         std::size_t bytes) noexcept {
  for (std::size_t i = 0; i < receive.piece_count && bytes > 0; ++i) {
    const piece& p = receive.pieces[i];
    if (offset >= p.bytes) {
      offset -= p.bytes;
      continue;
    }
    const std::size_t part = std::min(bytes, p.bytes - offset);
    std::memcpy(p.data + offset, from, part);
    from += part;
    bytes -= part;
    if (receive.piece_filled != nullptr && offset + part == p.bytes)
      receive.piece_filled(receive, i, 0, p.data, p.bytes);
    offset = 0;
  }
}

/// The bytes of a send, one after the other.
inline void gather_from(const request& send, std::byte* into) noexcept {
  for (std::size_t i = 0; i < send.piece_count; ++i) {
    if (send.pieces[i].bytes > 0) std::memcpy(into, send.pieces[i].data, send.pieces[i].bytes);
    into += send.pieces[i].bytes;
  }
}

/// A message within one process.
inline void copy_message(const request& send, request& receive) noexcept {
  std::size_t offset = 0;
  for (std::size_t i = 0; i < send.piece_count; ++i) {
    scatter_into(receive, offset, send.pieces[i].data, send.pieces[i].bytes);
    offset += send.pieces[i].bytes;
  }
  receive.header = send.header;
}

}  // namespace cohort::transport
