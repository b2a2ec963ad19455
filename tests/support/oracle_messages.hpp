// SPDX-License-Identifier: BSL-1.0
// The oracle of send, recv and exchange: between all pairs of ranks, by tag, from any rank, in order, long and short.
#pragma once

#include "oracle.hpp"

#include <cohort/when_all.hpp>

namespace oracle {

inline constexpr operation_kind message_kinds[] = {operation_kind::send, operation_kind::receive,
                                                   operation_kind::exchange};

/// What one rank sends another under a tag.
template <class T>
[[nodiscard]] std::vector<T> message(int sender, int receiver, int tag, std::size_t count) {
  return tokens<T>(static_cast<std::uint64_t>(tag) + 5, sender * 1000 + receiver, count);
}

template <class Backend>
void expect_received(const checker<Backend>& c, const std::string& what, cohort::received found,
                     cohort::received expected) {
  if (found == expected) return;
  const auto text = [](const cohort::received& r) {
    return std::to_string(r.count) + " elements from rank " + std::to_string(r.source) + " with tag " +
           std::to_string(r.tag);
  };
  c.fail(what, text(found) + ", expected " + text(expected));
}

/// Every rank, in the order of their numbers, sends to every rank, itself too, which has posted its receive or not.
template <class T, class Backend>
task<> check_pairs(checker<Backend>& c, std::size_t count, bool receive_first) {
  for (int sender = 0; sender < c.size(); ++sender) {
    for (int receiver = 0; receiver < c.size(); ++receiver) {
      std::string what =
          title<T>("send", count) + " from rank " + std::to_string(sender) + " to rank " + std::to_string(receiver);
      const std::vector<T> sent = message<T>(sender, receiver, 3, count);
      const guarded<T> out(sent);
      guarded<T> in(count + 2);
      std::vector<cohort::operation<>> sends;
      std::vector<cohort::operation<cohort::received>> receives;
      const auto post_send = [&] {
        if (c.rank() == sender) sends.push_back(c.world().send(out, cohort::to{receiver}, cohort::tag{3}));
      };
      const auto post_receive = [&] {
        if (c.rank() == receiver) receives.push_back(c.world().recv(in, cohort::from{sender}, cohort::tag{3}));
      };
      if (receive_first) post_receive();
      post_send();
      if (!receive_first) post_receive();
      for (auto& op : sends) {
        c.called(op, what);
        co_await op;
        c.unchanged(what, out, std::span<const T>(sent));
      }
      for (auto& op : receives) {
        c.called(op, what);
        const cohort::received r = co_await op;
        expect_received(c, what, r, {sender, 3, count});
        c.same(what, std::span<const T>(in.data(), count), std::span<const T>(sent));
        c.expect(in.untouched(count), what, "nothing to be written behind the message");
      }
    }
  }
}

/// Every rank sends `each` messages to rank 0 with tags of its own; they are taken from anywhere, as they come.
template <class T, class Backend>
task<> check_from_any(checker<Backend>& c, std::size_t count, int each) {
  std::string what = title<T>("recv", count, " from anywhere");
  if (c.rank() != 0 || c.size() == 1) {
    for (int i = 0; i < each; ++i) {
      const int label = 100 * c.rank() + i;
      const std::vector<T> sent = message<T>(c.rank(), 0, label, count);
      auto op = c.world().send(sent, cohort::to{0}, cohort::tag{label});
      if (c.size() > 1) {
        co_await op;
        continue;
      }
      guarded<T> in(count);
      auto receive = c.world().recv(in, cohort::from_any, cohort::any_tag);
      const cohort::received r = co_await receive;
      co_await op;
      expect_received(c, what, r, {0, label, count});
    }
    co_return;
  }
  std::vector<int> next(c.ranks(), 0);
  for (int i = 0; i < each * (c.size() - 1); ++i) {
    guarded<T> in(count);
    auto op = c.world().recv(in, cohort::from_any, cohort::any_tag);
    c.called(op, what);
    const cohort::received r = co_await op;
    c.expect(r.source > 0 && r.source < c.size(), what, "a source among the senders");
    // Messages of one sender that fit the receive come in the order in which they were sent, whatever their tags.
    const int label = 100 * r.source + next[static_cast<std::size_t>(r.source)]++;
    expect_received(c, what, r, {r.source, label, count});
    const std::vector<T> expected = message<T>(r.source, 0, label, count);
    c.holds(what, in, std::span<const T>(expected));
  }
}

/// A ring of messages under one tag, whose lengths alternate: long ones must not be overtaken by short ones.
template <class T, class Backend>
task<> check_order(checker<Backend>& c, std::vector<std::size_t> lengths, bool receive_first) {
  std::string what = title<T>("send", lengths.size(), " in order");
  const int next = (c.rank() + 1) % c.size();
  const int previous = (c.rank() + c.size() - 1) % c.size();
  std::vector<std::vector<T>> sent;
  std::vector<guarded<T>> in;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    sent.push_back(message<T>(c.rank(), next, static_cast<int>(i), lengths[i]));
    in.emplace_back(lengths[i] + 2);
  }
  std::vector<cohort::operation<>> sends;
  std::vector<cohort::operation<cohort::received>> receives;
  for (const bool sending : {!receive_first, receive_first}) {
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      if (sending) {
        sends.push_back(c.world().send(sent[i], cohort::to{next}));
      } else {
        receives.push_back(c.world().recv(in[i], cohort::from{previous}));
      }
    }
  }
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const cohort::received r = co_await receives[i];
    expect_received(c, what, r, {previous, 0, lengths[i]});
    const std::vector<T> expected = message<T>(previous, c.rank(), static_cast<int>(i), lengths[i]);
    c.same(what, std::span<const T>(in[i].data(), r.count), std::span<const T>(expected));
    c.expect(in[i].untouched(r.count), what, "nothing to be written behind the message");
  }
  for (auto& op : sends) {
    c.called(op, what);
    co_await op;
  }
}

/// Messages under different tags are taken in another order than that in which they were sent.
template <class T, class Backend>
task<> check_tags(checker<Backend>& c, std::size_t count) {
  std::string what = title<T>("recv", count, " by tag");
  constexpr std::array<int, 5> order_of_receives{4, 0, 3, 1, 2};
  const int next = (c.rank() + 1) % c.size();
  const int previous = (c.rank() + c.size() - 1) % c.size();
  std::vector<std::vector<T>> sent;
  std::vector<cohort::operation<>> sends;
  for (int label = 0; label < 5; ++label) sent.push_back(message<T>(c.rank(), next, label, count));
  for (int label = 0; label < 5; ++label) {
    sends.push_back(c.world().send(sent[static_cast<std::size_t>(label)], cohort::to{next}, cohort::tag{label}));
  }
  for (const int label : order_of_receives) {
    guarded<T> in(count);
    auto op = label % 2 == 0 ? c.world().recv(in, cohort::from{previous}, cohort::tag{label})
                             : c.world().recv(in, cohort::from_any, cohort::tag{label});
    c.called(op, what);
    const cohort::received r = co_await op;
    expect_received(c, what, r, {previous, label, count});
    const std::vector<T> expected = message<T>(previous, c.rank(), label, count);
    c.holds(what, in, std::span<const T>(expected));
  }
  for (auto& op : sends) co_await op;
}

/// One step around the ring, `distance` ranks far; 0 is with itself.
template <class T, class Backend>
task<> check_exchange(checker<Backend>& c, std::size_t count, int distance) {
  std::string what = title<T>("exchange", count) + " over a distance of " + std::to_string(distance);
  const int next = (c.rank() + distance) % c.size();
  const int previous = (c.rank() + c.size() - distance % c.size()) % c.size();
  const std::vector<T> sent = message<T>(c.rank(), next, distance, count);
  const std::vector<T> expected = message<T>(previous, c.rank(), distance, count);
  const guarded<T> out(sent);
  guarded<T> in(count);
  auto op = c.world().exchange(out, cohort::to{next}, in, cohort::from{previous}, cohort::tag{distance});
  c.called(op, what);
  const cohort::received r = co_await op;
  expect_received(c, what, r, {previous, distance, count});
  c.holds(what, in, std::span<const T>(expected));
  c.unchanged(what, out, std::span<const T>(sent));
}

template <class T, class Backend>
task<> message_matrix(checker<Backend>& c, std::vector<std::size_t> counts) {
  for (const std::size_t count : counts) {
    for (const bool receive_first : {false, true}) {
      auto pairs = check_pairs<T>(c, count, receive_first);
      co_await pairs;
      auto order = check_order<T>(c, {count, 1, 2 * count, 0, count, 7}, receive_first);
      co_await order;
    }
    for (int distance = 0; distance < c.size(); ++distance) {
      auto exchange = check_exchange<T>(c, count, distance);
      co_await exchange;
    }
    auto tags = check_tags<T>(c, count);
    co_await tags;
    auto any = check_from_any<T>(c, count, 5);
    co_await any;
    // Without it a fast rank's next messages could be taken for these by a receive from anywhere.
    auto barrier = c.world().barrier();
    co_await barrier;
  }
}

}  // namespace oracle
