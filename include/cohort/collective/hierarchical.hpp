// SPDX-License-Identifier: BSL-1.0
// The collectives of ranks on several hosts with several ranks each: which of the schedules of single_leader.hpp,
// multi_leader.hpp and two_level.hpp carries one out. Called where the choice was `hierarchical`, which is made only if
// the communicator knows its hosts.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/collective/execute.hpp>
#include <cohort/collective/hosts.hpp>
#include <cohort/collective/schedule/multi_leader.hpp>
#include <cohort/collective/schedule/single_leader.hpp>
#include <cohort/collective/schedule/two_level.hpp>

#include <cstddef>

namespace cohort::collective {

/// Vectors of more bytes are cut, and every rank of a host talks to other hosts: below, rounds cost more than bytes.
inline constexpr std::size_t single_leader_bytes = 16384;

template <class Channel>
[[nodiscard]] const host_table* hosts_of(const Channel& ch) noexcept {
  return ch.current().home().hosts.get();
}

template <class Channel, class Vector>
task<> all_reduce_on_hosts(const Channel& ch, Vector& v, std::size_t bytes, const cohort::detail::reducer& op) {
  const host_table* const on = hosts_of(ch);
  if (bytes > single_leader_bytes) {
    return execute_in_place(ch, multi_leader_all_reduce{multi_leader{on, ch.rank()}}, v, &op);
  }
  return execute_in_place(ch, single_leader_all_reduce{single_leader{on, ch.rank()}}, v, &op);
}

template <class Channel>
task<> reduce_on_hosts(const Channel& ch, int root, const whole_vector& v, const cohort::detail::reducer& op) {
  const host_table* const on = hosts_of(ch);
  if (v.count * v.element_bytes > single_leader_bytes) {
    return execute_in_place(ch, multi_leader_reduce{multi_leader{on, ch.rank()}, root}, v, &op);
  }
  return execute_in_place(ch, single_leader_reduce{single_leader{on, ch.rank(), root}}, v, &op);
}

template <class Channel>
task<> broadcast_on_hosts(const Channel& ch, int root, whole_vector& v) {
  const host_table* const on = hosts_of(ch);
  if (v.count * v.element_bytes > single_leader_bytes) {
    return execute_in_place(ch, multi_leader_broadcast{multi_leader{on, ch.rank()}, root}, v, nullptr);
  }
  return execute_in_place(ch, single_leader_broadcast{single_leader{on, ch.rank(), root}}, v, nullptr);
}

template <class Channel>
task<> barrier_on_hosts(const Channel& ch) {
  return execute(ch, single_leader_barrier{single_leader{hosts_of(ch), ch.rank()}}, layouts{}, nullptr);
}

template <class Channel>
task<> all_gather_on_hosts(const Channel& ch, const layouts& where) {
  const columns at{hosts_of(ch), ch.rank()};
  if (where.out.bytes(0, where.out.blocks()) > single_leader_bytes) {
    return execute(ch, two_level_all_gather{at}, where, nullptr);
  }
  return execute(ch, single_leader_all_gather{at}, where, nullptr);
}

}  // namespace cohort::collective
