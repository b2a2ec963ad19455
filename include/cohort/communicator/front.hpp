// SPDX-License-Identifier: BSL-1.0
// What every function of a communicator does before its body starts: checks the arguments, takes the next number,
// chooses the algorithm. Used by the call headers in this folder.
#pragma once

#include <cohort/backend/backend.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/error.hpp>
#include <cohort/memory.hpp>
#include <cohort/operation.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

namespace cohort::detail {

void add_option(call::options& o, const timeout& t);
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
  ~entry() {
    innermost() = outer_;
    if (visited_ != nullptr) visited_->leave();
  }

  /// Where what runs this engine's turns runs, once it is known which engine the call is for.
  [[nodiscard]] transport::callers_io context() const noexcept { return context_; }
  /// Whether this thread is alone in the engine of the call that it is making.
  [[nodiscard]] static bool into(transport::engine& e) noexcept {
    entry* const now = innermost();
    if (now == nullptr) return !e.visitor().is_other_thread();
    now->context_ = e.callers_context();
    if (now->visited_ != nullptr) return !e.visitor().is_other_thread();
    const visitor::admission here = e.visitor().come_in();
    if (here.entered) now->visited_ = &e.visitor();
    return here.alone;
  }

 private:
  static entry*& innermost() noexcept {
    static thread_local entry* now = nullptr;
    return now;
  }
  entry* outer_;
  transport::callers_io context_ = nullptr;
  visitor* visited_ = nullptr;  ///< what it has entered, and no call around it had
};

/// Runs the front of a call: what it throws is what the operation throws when it is awaited.
template <class T, class Front>
[[nodiscard]] operation<T> guarded(const Front& f) {
  const entry call;
  operation<T> started = [&f]() -> operation<T> {
    try {
      return f();
    } catch (...) {
      return operation<T>::refused(std::current_exception());
    }
  }();
  started.set_context(call.context());
  return started;
}

/// What does not depend on the backend.
class front_base {
 public:
  front_base() = default;
  explicit front_base(std::shared_ptr<group> g) noexcept : group_(std::move(g)) {}

  [[nodiscard]] const std::shared_ptr<group>& state() const noexcept { return group_; }
  [[nodiscard]] int rank() const noexcept { return group_ ? group_->rank() : -1; }
  [[nodiscard]] int size() const noexcept { return group_ ? group_->size() : 0; }

  /// The call can be made at all: the communicator is open, this process is in it, nothing has failed.
  COHORT_ALIGNED void require_open(operation_kind kind) const {
    if (!group_) refuse_entry(kind, errc::closed);
    transport::engine& e = group_->engine();
    if (e.forked()) refuse_entry(kind, errc::forked);
    if (!entry::into(e)) refuse_entry(kind, errc::concurrent_use);
    if (!group_->is_member()) refuse_entry(kind, errc::not_a_member);
    if (group_->failure()) refuse_failed(kind);
  }

  [[noreturn]] void refuse(errc code, operation_kind kind, const std::string& text, int culprit = -1) const;
  [[noreturn]] void refuse(operation_kind kind, const std::string& text) const;

  void check_root(operation_kind kind, root r) const {
    if (r.rank < 0 || r.rank >= size()) refuse_rank(kind, "root", r.rank);
  }
  void check_peer(operation_kind kind, const char* role, int peer) const {
    if (peer < 0 || peer >= size()) refuse_rank(kind, role, peer);
  }
  void check_tag(operation_kind kind, tag t) const {
    if (t.value < 0) refuse_tag(kind, t);
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
    refuse_count(kind, buffer, found, expected, reason);
  }
  /// n blocks of one size in a buffer of `found` elements; gives the size of a block.
  [[nodiscard]] std::size_t divide(operation_kind kind, const char* buffer, std::size_t found,
                                   const char* uneven) const;
  void check_null(operation_kind kind, const char* buffer, const void* data, std::size_t count) const {
    if (data == nullptr && count > 0) refuse_null(kind, buffer, count);
  }
  void check_overlap(operation_kind kind, const void* in, const void* out, std::size_t in_bytes, std::size_t out_bytes,
                     bool same_start_allowed) const {
    const auto a = reinterpret_cast<std::uintptr_t>(in);
    const auto b = reinterpret_cast<std::uintptr_t>(out);
    if (in_bytes == 0 || out_bytes == 0 || a + in_bytes <= b || b + out_bytes <= a) return;
    if (!same_start_allowed || a != b) refuse_overlap(kind);
  }

  [[nodiscard]] collective::algorithm choose(operation_kind kind, std::size_t bytes) const;
  /// Of a reduction. A library of its own combines in an order that nobody promises, and cannot be told of exceptions.
  [[nodiscard]] collective::algorithm choose(operation_kind kind, std::size_t bytes, bool commutative,
                                             bool may_be_native) const;

  /// Whether a call concerns nobody else and cannot be interrupted: then it is carried out where it is made, and is
  /// one of the communicator's calls all the same.
  [[nodiscard]] bool alone(const call::options& o) const noexcept;

  /// Takes the next number. From here on the call is made: what goes wrong now concerns every rank.
  [[nodiscard]] ticket enter(const transport::signature& s, call::options o) const;
  /// A message has no number.
  [[nodiscard]] ticket enter_message(const transport::signature& s, call::options o) const;

  [[nodiscard]] transport::signature sign(operation_kind kind, collective::algorithm how, std::uint16_t type,
                                          std::uint64_t count, std::uint16_t functor = 0,
                                          std::uint16_t root = transport::signature::no_root) const;

 private:
  // What is said of a mistake is apart from where it is looked for, which every call passes.
  [[noreturn, gnu::cold]] void refuse_entry(operation_kind kind, errc why) const;
  [[noreturn, gnu::cold]] void refuse_failed(operation_kind kind) const;
  [[noreturn, gnu::cold]] void refuse_rank(operation_kind kind, const char* role, int rank) const;
  [[noreturn, gnu::cold]] void refuse_tag(operation_kind kind, tag t) const;
  [[noreturn, gnu::cold]] void refuse_overlap(operation_kind kind) const;
  [[noreturn, gnu::cold]] void refuse_null(operation_kind kind, const char* buffer, std::size_t count) const;
  [[noreturn]] void refuse_count(operation_kind kind, const char* buffer, std::size_t found, std::size_t expected,
                                 const std::string& reason) const;
  // One grouping whatever the size of the vector is what the schedules have, and shared memory has not.
  [[nodiscard]] bool shares(operation_kind kind) const noexcept;

  std::shared_ptr<group> group_{};
};

template <backend Backend>
class front : public front_base {
 public:
  using transport_type = typename Backend::transport_type;
  using front_base::front_base;
};

}  // namespace cohort::detail

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/communicator/impl/front.hpp>
#endif
