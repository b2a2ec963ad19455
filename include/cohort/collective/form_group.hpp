// SPDX-License-Identifier: BSL-1.0
// How a communicator is made of another one. Its context number is derived by every member from the same facts, so that
// nobody has to hand numbers out; what is sent only shows that the members agree. Called by communicator/groups.hpp.
#pragma once

#include <cohort/collective/body.hpp>
#include <cohort/detail/config.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort::collective {

/// "{0, 2, 4}"; of many the first eight.
[[nodiscard]] std::string list_text(const std::vector<std::int32_t>& list);

/// The group of some ranks of `parent`, given in the order that they shall have, before its members have agreed on it.
[[nodiscard]] std::shared_ptr<group> subgroup_of(group& parent, const std::vector<std::int32_t>& list,
                                                 std::string name);

/// The same where all ranks of `parent` have told what they want; `what` tells its children of that kind of call apart.
[[nodiscard]] std::shared_ptr<group> child_of(const call& c, operation_kind how, std::uint64_t what, std::string name,
                                              const std::vector<std::int32_t>& list);

/// Throws unless all members of `formed` have the same list: the one with the lowest rank tells everybody its own.
///
/// Errors: mismatch naming both lists
template <transport::message_transport Transport>
task<> compare_lists(call& c, const group& formed, std::vector<std::int32_t> list);

/// The group of this rank among those of one color, ordered by key and then by rank.
template <transport::message_transport Transport>
task<std::shared_ptr<group>> split_by(call& c, int my_color, int my_key, std::string name);

/// The same ranks under another number.
template <transport::message_transport Transport>
task<std::shared_ptr<group>> copy_of(call& c, std::string name);

/// The first call on a group that its members have made.
template <transport::message_transport Transport, class Communicator>
operation<Communicator> agree_on_members([[maybe_unused]] cohort::detail::ticket t, std::shared_ptr<group> formed,
                                         std::vector<std::int32_t> list) {
  call& c = co_await current_call{};
  auto agreed = compare_lists<Transport>(c, *formed, std::move(list));
  co_await agreed;
  co_return Communicator(std::move(formed));
}

template <transport::message_transport Transport, class Communicator>
operation<Communicator> split([[maybe_unused]] cohort::detail::ticket t, int my_color, int my_key, std::string name) {
  call& c = co_await current_call{};
  auto mine = split_by<Transport>(c, my_color, my_key, std::move(name));
  co_return Communicator(co_await mine);
}

/// Calls on the two communicators do not meet.
template <transport::message_transport Transport, class Communicator>
operation<Communicator> duplicate([[maybe_unused]] cohort::detail::ticket t, std::string name) {
  call& c = co_await current_call{};
  auto copy = copy_of<Transport>(c, std::move(name));
  co_return Communicator(co_await copy);
}

}  // namespace cohort::collective

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/collective/bodies/form_group.hpp>
#include <cohort/collective/impl/form_group.hpp>
#endif
