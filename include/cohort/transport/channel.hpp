// SPDX-License-Identifier: BSL-1.0
// What a collective sees of a transport: ranks of its own communicator, and transfers that carry its number
// and signature. The base concept of every backend.
#pragma once

#include <cohort/transport/engine.hpp>

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace cohort::transport {

/// A transport needs no more than this to carry every function of the library.
template <class T>
concept message_transport = std::derived_from<T, engine> && requires(T& t, request& r) {
  { t.start(r) } -> std::same_as<void>;
};

/// Suspends until every request of a set is complete; throws what the communicator failed with.
class transfers_done {
 public:
  explicit transfers_done(transfer_set& set) noexcept : set_(&set) {}
  [[nodiscard]] bool await_ready() const noexcept { return set_->pending == 0; }
  void await_suspend(std::coroutine_handle<> h) const noexcept { set_->waiter = h; }
  void await_resume() const {
    set_->waiter = nullptr;
    if (set_->failed) throw set_->owner->failure();
  }

 private:
  transfer_set* set_;
};

/// A set of requests that its call knows of while it is in scope.
class transfer_scope {
 public:
  explicit transfer_scope(call& owner) noexcept {
    set_.owner = &owner;
    owner.waiting = &set_;
  }
  transfer_scope(const transfer_scope&) = delete;
  transfer_scope& operator=(const transfer_scope&) = delete;
  ~transfer_scope() {
    // An exception may end the scope while requests are under way: the transport must not keep them.
    for (std::size_t i = 0; set_.pending > 0 && i < set_.request_count; ++i) {
      request& r = set_.requests[i];
      if (r.complete || r.place == nullptr) continue;
      if (set_.owner->engine().forked()) break;  // they go on in the parent, in memory that other ranks see
      set_.owner->engine().withdraw(r);
    }
    if (set_.owner->waiting == &set_) set_.owner->waiting = nullptr;
  }

  /// The requests to come: they must stay where they are until `done()` has returned.
  void hold(request* requests, std::size_t count) noexcept {
    set_.requests = requests;
    set_.request_count = count;
    set_.pending = count;
    for (std::size_t i = 0; i < count; ++i) requests[i].owner = &set_;
  }
  template <message_transport Transport>
  void start(Transport& transport, std::size_t index) {
    // A failure that is noticed while one request is started concerns those after it.
    if (set_.failed || set_.owner->home().failure()) {
      set_.failed = true;
      set_.pending = 0;
      set_.requests[index].complete = true;
      return;
    }
    transport.start(set_.requests[index]);
  }
  [[nodiscard]] transfers_done done() noexcept { return transfers_done{set_}; }

 private:
  transfer_set set_{};
};

/// The header of a message of a collective.
[[nodiscard]] inline envelope header_of(const group& g, std::int64_t sequence, const signature& s,
                                        std::size_t bytes) noexcept {
  envelope e;
  e.context = g.context();
  e.sequence = static_cast<std::uint32_t>(sequence);
  e.source = g.world_rank(g.rank());
  e.bytes = bytes;
  e.call.copy_by_words(s);
  return e;
}

/// One operation's view of its transport.
template <message_transport Transport>
class channel {
 public:
  using transport_type = Transport;

  explicit channel(call& c) noexcept : call_(&c) {}

  [[nodiscard]] int rank() const noexcept { return call_->home().rank(); }
  [[nodiscard]] int size() const noexcept { return call_->home().size(); }
  [[nodiscard]] int world_rank(int r) const noexcept { return call_->home().world_rank(r); }
  [[nodiscard]] call& current() const noexcept { return *call_; }
  [[nodiscard]] Transport& transport() const noexcept { return static_cast<Transport&>(call_->engine()); }

  /// The header of a message of this operation.
  [[nodiscard]] envelope header(std::size_t bytes) const noexcept {
    return header_of(call_->home(), call_->sequence(), call_->signature(), bytes);
  }

 private:
  call* call_;
};

}  // namespace cohort::transport
