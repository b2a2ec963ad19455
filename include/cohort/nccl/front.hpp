// SPDX-License-Identifier: BSL-1.0
// What every call of a communicator<nccl> does around what it enqueues: reads the options, checks that it can be made,
// makes the device current, and gives back where it stands. Used by the call headers of this folder.
#pragma once

#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/on_host.hpp>
#include <cohort/gpu/profile_range.hpp>
#include <cohort/gpu/stream.hpp>
#include <cohort/gpu/stream_ordered.hpp>
#include <cohort/nccl/datatype.hpp>
#include <cohort/nccl/open_group.hpp>
#include <cohort/nccl/party.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace cohort {

/// What a call on a device takes behind its arguments.
template <class O>
concept device_option = std::same_as<std::remove_cvref_t<O>, on> || std::same_as<std::remove_cvref_t<O>, timeout>;

namespace detail {

struct device_options {
  std::optional<cudaStream_t> stream{};
  std::chrono::nanoseconds timeout{0};  ///< 0: none was given

  void add(const on& o) noexcept { stream = o.stream; }
  void add(const cohort::timeout& t) {
    if (t.after <= std::chrono::nanoseconds::zero()) {
      throw error(errc::invalid_argument, "timeout of " + std::to_string(t.after.count()) +
                                              " ns: expected more than zero; leave it out for none");
    }
    timeout = t.after;
  }
};

template <class... Options>
constexpr bool check_device_options() noexcept {
  static_assert(
      (device_option<Options> && ...),
      "cohort: the trailing arguments of a call on this backend are options: on{stream}, timeout{5s}; a root "
      "is root{0}, a destination to{1}, a source from{0}; NCCL has no tags and no from_any, its messages match "
      "in the order of the calls; a stop{token} goes nowhere, because the call does not wait");
  return true;
}
template <class... Options>
[[nodiscard]] device_options device_options_of(const Options&... options) {
  device_options all;
  if constexpr (check_device_options<Options...>() && (device_option<Options> && ...)) (all.add(options), ...);
  return all;
}

/// One call: inside the gate, with the device current.
class nccl_entry {
 public:
  nccl_entry(nccl_party& p, const char* operation) : party_(&p) {
    // Before the gate, which is closed for as long as aborting takes.
    if (p.failed()) [[unlikely]]
      refuse_failed(p, operation);
    if (!p.gate().enter()) {
      p.refuse(errc::concurrent_use, operation,
               "another thread is inside a call of the same communicator: make calls from one thread at a time");
    }
    if (p.failed()) [[unlikely]] {
      p.gate().leave();
      refuse_failed(p, operation);
    }
  }
  nccl_entry(const nccl_entry&) = delete;
  nccl_entry& operator=(const nccl_entry&) = delete;
  ~nccl_entry() { party_->gate().leave(); }

 private:
  [[noreturn]] static void refuse_failed(const nccl_party& p, const char* operation) {
    try {
      std::rethrow_exception(p.cause());
    } catch (const error& e) {
      p.refuse(e.condition(), operation,
               std::string("the communicator has failed and takes no more calls; first cause: ") + e.what());
    } catch (const std::exception& e) {
      p.refuse(errc::user_function_failed, operation,
               std::string("the communicator has failed and takes no more calls; first cause: ") + e.what());
    }
  }
  nccl_party* party_;
};

class nccl_front {
 public:
  nccl_front() = default;
  explicit nccl_front(std::shared_ptr<nccl_party> p) noexcept : party_(std::move(p)) {}

  [[nodiscard]] const std::shared_ptr<nccl_party>& party() const noexcept { return party_; }
  [[nodiscard]] int rank() const noexcept { return party_ ? party_->rank() : -1; }
  [[nodiscard]] int size() const noexcept { return party_ ? party_->size() : 0; }

  /// Carries out `enqueue(party, stream)` as the call `operation`.
  template <class Enqueue>
  stream_ordered start(const char* operation, const device_options& o, const Enqueue& enqueue) const {
    require_member(operation);
    const device_scope here(device{party_->device_index()});
    return carry_out(operation, o, enqueue);
  }
  /// The same; where `nccl` carries it out alone, with no need for the device to be current: it sees to that itself.
  template <class Enqueue>
  stream_ordered start_by_nccl(const char* operation, const device_options& o, const Enqueue& enqueue,
                               bool nccl = true) const {
    require_member(operation);
    // The default streams are those of the device that is current.
    if (!nccl || is_default_stream(o.stream.value_or(party_->stream))) return start(operation, o, enqueue);
    return carry_out(operation, o, enqueue);
  }

  void require_member(const char* operation) const {
    if (party_) [[likely]]
      return;
    error_details d;
    d.operation = operation;
    throw error(errc::not_a_member,
                std::string(operation) +
                    ": this process is not in the communicator, or it was moved from: ask is_member() before the call",
                std::move(d));
  }

  // --- arguments; all of them throw invalid_argument
  [[noreturn]] void refuse(const char* operation, const std::string& text) const {
    party_->refuse(errc::invalid_argument, operation, text);
  }
  void check_root(const char* operation, root r) const {
    if (r.rank < 0 || r.rank >= size()) {
      refuse(operation, "root " + std::to_string(r.rank) + ": expected 0.." + std::to_string(size() - 1));
    }
  }
  void check_peer(const char* operation, const char* role, int peer) const {
    if (peer < 0 || peer >= size()) [[unlikely]]
      refuse_peer(operation, role, peer);
  }
  void check_count(const char* operation, const char* buffer, std::size_t found, std::size_t expected,
                   const char* why) const {
    if (found == expected) return;
    refuse(operation, std::string(buffer) + " has " + std::to_string(found) + " elements, expected " +
                          std::to_string(expected) + " = " + why);
  }
  [[nodiscard]] std::size_t divide(const char* operation, const char* buffer, std::size_t found,
                                   const char* uneven) const {
    const auto n = static_cast<std::size_t>(size());
    if (found % n != 0) {
      refuse(operation, std::string(buffer) + " has " + std::to_string(found) + " elements, not a multiple of the " +
                            std::to_string(n) + " ranks: use " + uneven + " for blocks of different sizes");
    }
    return found / n;
  }
  template <class T>
  void check_memory(const char* operation, const char* buffer, device_span<T> where) const {
    if (where.empty()) return;
    if (where.data() == nullptr) {
      refuse(operation, std::string(buffer) + " is a null pointer with " + std::to_string(where.size()) + " elements");
    }
    party_->check_place(where.data(), operation, buffer);
  }
  template <class A, class B>
  void check_overlap(const char* operation, device_span<A> in, device_span<B> out, bool same_start_allowed) const {
    const auto a = reinterpret_cast<std::uintptr_t>(in.data());
    const auto b = reinterpret_cast<std::uintptr_t>(out.data());
    if (in.empty() || out.empty() || a + in.size_bytes() <= b || b + out.size_bytes() <= a) return;
    if (same_start_allowed && a == b) return;
    refuse(operation, "input and output overlap in part: pass disjoint buffers, or use the in-place form");
  }

 private:
  [[noreturn, gnu::noinline]] void refuse_peer(const char* operation, const char* role, int peer) const {
    refuse(operation, std::string(role) + " " + std::to_string(peer) + ": expected 0.." + std::to_string(size() - 1));
  }
  template <class Enqueue>
  stream_ordered carry_out(const char* operation, const device_options& o, const Enqueue& enqueue) const {
    nccl_party& p = *party_;
    if (o.timeout > std::chrono::nanoseconds::zero()) p.require_enqueued(operation, "timeout{}");
    const stream_ordered op = enqueued(p, operation, o, enqueue);
    // Outside of the gate: where the queue of a stream is full this thread waits for room, and the poller may have to abort
    // meanwhile what the stream stands at.
    if (o.timeout > std::chrono::nanoseconds::zero()) watch(op, o.timeout);
    return op;
  }
  template <class Enqueue>
  [[nodiscard]] stream_ordered enqueued(nccl_party& p, const char* operation, const device_options& o,
                                        const Enqueue& enqueue) const {
    const nccl_entry inside(p, operation);
    if (open_group* const group = open_group::of_this_thread()) [[unlikely]]
      join(*group);
    const profile_range range(operation);
    const cudaStream_t s = o.stream.value_or(p.stream);
    p.count_call();
    enqueue(p, s);
    return {p.ticket(), s, operation};
  }
  /// From inside: it stays so until the group ends, which NCCL needs it for.
  [[gnu::noinline]] void join(open_group& group) const {
    if (group.opener == party_.get()) return;
    if (std::find(group.others.begin(), group.others.end(), party_) != group.others.end()) return;
    group.others.push_back(party_);
    static_cast<void>(party_->gate().enter());
  }
  void watch(const stream_ordered& op, std::chrono::nanoseconds allowed) const {
    const device_scope here(device{party_->device_index()});
    refuse_while_capturing(op, "timeout{}");
    party_->watch().follow(milestone_of(op, party_, allowed));
  }

  std::shared_ptr<nccl_party> party_{};
};

/// Copies on the device, where NCCL is not needed.
inline void copy_on_device(nccl_party& p, const void* from, void* to, std::size_t bytes, cudaStream_t s) {
  static_cast<void>(p);
  if (bytes == 0 || from == to) return;
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s), "cudaMemcpyAsync");
}

/// Several calls of NCCL as one, of whatever communicators. On an exception the group is closed, and those that have calls
/// in it are aborted: what had been asked of NCCL would wait for what was not.
///
/// Needs: no co_await in `body`: groups belong to threads
template <class Body>
void in_nccl_group(nccl_party& p, const char* operation, const Body& body) {
  open_group*& open = open_group::of_this_thread();
  if (open != nullptr) return body();
  check_nccl(ncclGroupStart(), "ncclGroupStart");
  open_group group{&p};
  open = &group;
  std::exception_ptr why;
  try {
    body();
  } catch (...) {
    why = std::current_exception();
  }
  open = nullptr;
  const bool thrown = why != nullptr;
  const ncclResult_t code = ncclGroupEnd();
  const auto end = [&](nccl_party& each) {
    if (thrown) return each.fail(why);
    try {
      each.check(code, "ncclGroupEnd", operation);
    } catch (...) {
      if (!why) why = std::current_exception();
    }
  };
  end(p);
  for (const std::shared_ptr<nccl_party>& each : group.others) {
    end(*each);
    each->gate().leave();
  }
  if (why) std::rethrow_exception(why);
}

}  // namespace detail
}  // namespace cohort
