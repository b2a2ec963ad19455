// SPDX-License-Identifier: BSL-1.0
// What every function of a communicator does before its body starts: checks the arguments, takes the next number,
// chooses the algorithm. Used by the call headers in this folder.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/error.hpp>
#include <cohort/memory.hpp>
#include <cohort/operation.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace cohort::detail {

inline void add_option(call::options& o, const timeout& t) {
  if (t.after <= std::chrono::nanoseconds::zero()) {
    throw error(errc::invalid_argument,
                "timeout of " + std::to_string(t.after.count()) +
                    " ns: expected more than zero; leave it out for the communicator's default");
  }
  o.timeout = t.after;
}
inline void add_option(call::options& o, const stop& s) { o.stop = s.token; }

template <call_option... Options>
[[nodiscard]] call::options options_of(const Options&... options) {
  call::options o;
  (add_option(o, options), ...);
  return o;
}

/// One call of this thread, from its front to where its body first waits: no other thread may be inside meanwhile.
class entry {
 public:
  entry() noexcept : outer_(std::exchange(innermost(), this)) {}
  entry(const entry&) = delete;
  entry& operator=(const entry&) = delete;
  ~entry() { innermost() = outer_; }

  /// Whether this thread is alone in the engine of the call that it is making.
  [[nodiscard]] static bool into(transport::engine& e) noexcept {
    entry* const now = innermost();
    if (now == nullptr || now->visit_) return !e.visitor().is_other_thread();
    return now->visit_.emplace(e.visitor()).alone();
  }

 private:
  static entry*& innermost() noexcept {
    static thread_local entry* now = nullptr;
    return now;
  }
  entry* outer_;
  std::optional<visitor::visit> visit_{};
};

/// Runs the front of a call: what it throws is what the operation throws when it is awaited.
template <class T, class Front>
[[nodiscard]] operation<T> guarded(const Front& f) {
  const entry call;
  try {
    return f();
  } catch (...) {
    return operation<T>::refused(std::current_exception());
  }
}

template <backend Backend>
class front {
 public:
  using transport_type = typename Backend::transport_type;

  front() = default;
  explicit front(std::shared_ptr<group> g) noexcept : group_(std::move(g)) {}

  [[nodiscard]] const std::shared_ptr<group>& state() const noexcept { return group_; }
  [[nodiscard]] int rank() const noexcept { return group_ ? group_->rank() : -1; }
  [[nodiscard]] int size() const noexcept { return group_ ? group_->size() : 0; }

  /// The call can be made at all: the communicator is open, this process is in it, nothing has failed.
  void require_open(operation_kind kind) const {
    if (!group_)
      throw error(errc::closed, std::string{name(kind)} + ": this communicator was moved from or never connected");
    transport::engine& e = group_->engine();
    if (e.forked()) refuse(errc::forked, kind, e.misuse_text());
    if (!entry::into(e)) refuse(errc::concurrent_use, kind, e.misuse_text());
    if (!group_->is_member()) {
      refuse(errc::not_a_member, kind, "this process is not in the communicator: ask is_member() before the call");
    }
    if (const auto& f = group_->failure()) {
      refuse(f->code, kind, "the communicator has failed and takes no more calls; first cause: " + f->text, f->culprit);
    }
  }

  [[noreturn]] void refuse(errc code, operation_kind kind, const std::string& text, int culprit = -1) const {
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
  [[noreturn]] void refuse(operation_kind kind, const std::string& text) const {
    refuse(errc::invalid_argument, kind, text);
  }

  void check_root(operation_kind kind, root r) const {
    if (r.rank < 0 || r.rank >= size()) {
      refuse(kind, "root " + std::to_string(r.rank) + ": expected 0.." + std::to_string(size() - 1));
    }
  }
  void check_peer(operation_kind kind, const char* role, int peer) const {
    if (peer < 0 || peer >= size()) {
      refuse(kind, std::string{role} + " " + std::to_string(peer) + ": expected 0.." + std::to_string(size() - 1));
    }
  }
  void check_tag(operation_kind kind, tag t) const {
    if (t.value < 0)
      refuse(kind,
             "tag " + std::to_string(t.value) + ": expected 0.." + std::to_string(std::numeric_limits<int>::max()));
  }
  /// `found` elements where `expected` are needed; `why` says where the number comes from: words, or a function that
  /// makes them, as only a refusal needs them.
  template <class Why>
  void check_count(operation_kind kind, const char* buffer, std::size_t found, std::size_t expected,
                   const Why& why) const {
    if (found == expected) return;
    std::string reason;
    if constexpr (std::is_invocable_v<const Why&>) {
      reason = why();
    } else {
      reason = why;
    }
    refuse(kind, std::string{buffer} + " has " + std::to_string(found) + " elements, expected " +
                     std::to_string(expected) + " = " + reason);
  }
  /// n blocks of one size in a buffer of `found` elements; gives the size of a block.
  [[nodiscard]] std::size_t divide(operation_kind kind, const char* buffer, std::size_t found,
                                   const char* uneven) const {
    const auto n = static_cast<std::size_t>(size());
    if (found % n != 0) {
      refuse(kind, std::string{buffer} + " has " + std::to_string(found) + " elements, not a multiple of the " +
                       std::to_string(n) + " ranks: use " + uneven + " for blocks of different sizes");
    }
    return found / n;
  }
  void check_null(operation_kind kind, const char* buffer, const void* data, std::size_t count) const {
    if (data == nullptr && count > 0) {
      refuse(kind, std::string{buffer} + " is a null pointer with " + std::to_string(count) + " elements");
    }
  }
  void check_overlap(operation_kind kind, const void* in, const void* out, std::size_t in_bytes, std::size_t out_bytes,
                     bool same_start_allowed) const {
    const auto a = reinterpret_cast<std::uintptr_t>(in);
    const auto b = reinterpret_cast<std::uintptr_t>(out);
    if (in_bytes == 0 || out_bytes == 0 || a + in_bytes <= b || b + out_bytes <= a) return;
    if (same_start_allowed && a == b) return;
    refuse(kind, "input and output overlap in part: pass disjoint buffers, or use the in-place form");
  }

  [[nodiscard]] collective::algorithm choose(operation_kind kind, std::size_t bytes) const {
    return group_->selection.choose(kind, bytes, size(), true, {true, shares(kind), group_->hosts != nullptr});
  }
  /// Of a reduction. A library of its own combines in an order that nobody promises, and cannot be told of exceptions.
  [[nodiscard]] collective::algorithm choose(operation_kind kind, std::size_t bytes, bool commutative,
                                             bool may_be_native) const {
    return group_->selection.choose(kind, bytes, size(), commutative && !group_->ordered,
                                    {may_be_native && !group_->ordered, shares(kind), group_->hosts != nullptr});
  }

  /// Whether a call concerns nobody else and cannot be interrupted: then it is carried out where it is made, and is
  /// one of the communicator's calls all the same.
  [[nodiscard]] bool alone(const call::options& o) const noexcept {
    if (group_->size() != 1 || o.stop.stop_possible()) return false;
    (void)group_->next_sequence();
    return true;
  }

  /// Takes the next number. From here on the call is made: what goes wrong now concerns every rank.
  [[nodiscard]] ticket enter(const transport::signature& s, call::options o) const {
    return ticket(group_, group_->next_sequence(), s, std::move(o));
  }
  /// A message has no number.
  [[nodiscard]] ticket enter_message(const transport::signature& s, call::options o) const {
    return ticket(group_, -1, s, std::move(o));
  }

  [[nodiscard]] transport::signature sign(operation_kind kind, collective::algorithm how, std::uint16_t type,
                                          std::uint64_t count) const {
    transport::signature s;
    s.kind = kind;
    s.algorithm = how;
    s.type = type;
    s.count = count;
    return s;
  }

 private:
  // One grouping whatever the size of the vector is what the schedules have, and shared memory has not.
  [[nodiscard]] bool shares(operation_kind kind) const noexcept {
    return group_->window != nullptr && !(group_->ordered && reduces(kind));
  }

  std::shared_ptr<group> group_{};
};

}  // namespace cohort::detail
