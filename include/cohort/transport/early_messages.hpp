// SPDX-License-Identifier: BSL-1.0
// The messages of one communicator that came before anybody asked for them, in the order in which they came. Those of a
// collective are found by its number: a rank that needs nothing of the others may be tens of thousands of calls ahead.
// Used by matching.hpp.
#pragma once

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/frame_pool.hpp>
#include <cohort/transport/linked_list.hpp>
#include <cohort/transport/request.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cohort::transport {

/// A message that came before its receive was posted.
struct early_message : detail::pooled_frame {
  early_message* previous = nullptr;
  early_message* next = nullptr;
  envelope header{};
  detail::byte_buffer payload{};  ///< the bytes, when they came along
  std::size_t along = 0;          ///< how many come with the header: all, or those in front
  std::size_t arrived = 0;        ///< how many of these are here
  request* sender = nullptr;      ///< in this process: the send that waits to be matched
  void* origin = nullptr;         ///< elsewhere: the connection to ask for the (other) bytes
  std::uint64_t ticket = 0;       ///< and their number there
};

class early_messages {
 public:
  early_messages() = default;
  early_messages(const early_messages&) = delete;
  early_messages& operator=(const early_messages&) = delete;
  ~early_messages() {
    discard_if([](const early_message&) { return true; });
  }

  /// Errors: std::bad_alloc; the message is gone then
  early_message& keep(std::unique_ptr<early_message> message) {
    if (!message->header.tagged) {
      if (numbers_ >= 2 * numbered_.size()) grow();
      ++numbers_;
    }
    early_message& m = *message.release();
    list_of(m.header).push_back(m);
    return m;
  }
  /// The oldest that `wanted` holds for, of the tagged ones, or of those of the collective with that number.
  template <class Wanted>
  [[nodiscard]] early_message* find(bool tagged, std::uint32_t number, Wanted wanted) const {
    if (!tagged && numbered_.empty()) return nullptr;
    const list& l = tagged ? tagged_ : numbered_[number % numbered_.size()];
    for (early_message* m = l.front(); m != nullptr; m = m->next) {
      if (wanted(*m)) return m;
    }
    return nullptr;
  }
  [[nodiscard]] std::unique_ptr<early_message> take(early_message& m) noexcept {
    list_of(m.header).remove(m);
    if (!m.header.tagged) --numbers_;
    return std::unique_ptr<early_message>(&m);
  }
  /// Result: how many
  template <class Drop>
  std::size_t discard_if(Drop drop) {
    std::size_t dropped = 0;
    const auto look = [&](early_message& m) {
      if (!drop(std::as_const(m))) return;
      take(m).reset();
      ++dropped;
    };
    see_all(tagged_, look);
    for (const list& l : numbered_) see_all(l, look);
    return dropped;
  }

 private:
  using list = linked_list<early_message>;

  [[nodiscard]] list& list_of(const envelope& e) noexcept {
    return e.tagged ? tagged_ : numbered_[e.sequence % numbered_.size()];
  }
  template <class See>
  static void see_all(const list& l, const See& see) {
    for (early_message* m = l.front(); m != nullptr;) {
      early_message* const following = m->next;  // it may be taken
      see(*m);
      m = following;
    }
  }
  /// Those of one number are in one list, and stay in their order.
  void grow() {
    constexpr std::size_t fewest = 16;
    std::vector<list> larger(numbered_.empty() ? fewest : 4 * numbered_.size());
    for (const list& l : numbered_) {
      const auto move = [&larger](early_message& m) { larger[m.header.sequence % larger.size()].push_back(m); };
      see_all(l, move);
    }
    numbered_ = std::move(larger);
  }

  list tagged_{};
  std::vector<list> numbered_{};  // as many as a power of two
  std::size_t numbers_ = 0;       // messages in them
};

}  // namespace cohort::transport
