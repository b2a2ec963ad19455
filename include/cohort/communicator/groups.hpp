// SPDX-License-Identifier: BSL-1.0
// The calls of a communicator that make other communicators of its ranks: subgroup, split, duplicate. A base of
// communicator<Backend>; checks the arguments and starts collective/form_group.hpp.
#pragma once

#include <cohort/collective/form_group.hpp>
#include <cohort/communicator/front.hpp>
#include <cohort/detail/config.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort::detail {

// A name is not an option of the operation: name_of takes it out of the list.
inline void add_option(call::options&, const named&) noexcept {}

/// The list of a subgroup, if it has some of the ranks of that communicator, each once.
///
/// Errors: invalid_argument
[[nodiscard]] std::vector<std::int32_t> checked_members(const front_base& calls, const std::vector<int>& list);

[[nodiscard]] inline const std::string* name_in() noexcept { return nullptr; }
template <class First, class... Rest>
[[nodiscard]] const std::string* name_in(const First& first, const Rest&... rest) noexcept {
  if constexpr (std::is_same_v<First, named>) {
    return &first.name;
  } else {
    return name_in(rest...);
  }
}

template <group_option... Options>
[[nodiscard]] call::options group_options_of(const Options&... options) {
  call::options o;
  (add_option(o, options), ...);
  return o;
}

template <class Communicator, backend Backend>
class group_calls {
  using transport_type = typename Backend::transport_type;

 public:
  /// A communicator of some of these ranks.
  ///
  /// Result:    the group; rank() is -1 and is_member() false for a process that is not in the list
  /// Needs:     the same list, in the same order, from every member; the order of the list is that of the new ranks.
  ///            Members call it, others may: they get their answer at once
  /// Order:     members that make several groups of the same ranks make them in the same order. It is not numbered
  ///            among the collectives of this communicator
  /// Completes: when this member has the list of the member with the lowest rank and found it equal
  /// Errors:    errc::invalid_argument (no rank, one that there is not, one listed twice); mismatch naming two lists;
  ///            timed_out when a member does not come. They concern the new group only
  /// Lifetime:  the group keeps what it needs of the world; destroying it frees its part
  /// Cost:      one broadcast of the list among the members, nothing for others; the timeout, algorithms and order of
  ///            reductions are inherited
  /// Example:   examples/21_groups.cpp
  template <group_option... Options>
  operation<Communicator> subgroup(const ranks& members, Options&&... options) const {
    return guarded<Communicator>([&]() -> operation<Communicator> {
      constexpr auto kind = operation_kind::subgroup;
      calls().require_open(kind);
      const std::vector<std::int32_t> list = checked_members(calls(), members.list());
      auto formed = collective::subgroup_of(*calls().state(), list, name_for(collective::list_text(list), options...));
      if (!formed->is_member()) return operation<Communicator>::completed(Communicator(std::move(formed)));
      transport::signature s = calls().sign(kind, collective::algorithm::binomial, 0, 0);
      ticket first(formed, formed->next_sequence(), s, group_options_of(options...));
      // Not moved: the ticket refers to it until the operation's promise has been made.
      return collective::agree_on_members<transport_type, Communicator>(std::move(first), formed, list);
    });
  }
  template <class Range, group_option... Options>
    requires(!std::same_as<std::remove_cvref_t<Range>, ranks> && range_like<Range>)
  operation<Communicator> subgroup(const Range& members, Options&&... options)
  const { return subgroup(ranks(members), std::forward<Options>(options)...); }

  /// One communicator for each color: every rank calls it and gets that of its own color.
  ///
  /// Result:    ranks of one color, ordered by key, and by rank where keys are equal; no group for `no_color`
  /// Completes: when every rank has called it
  /// Errors:    errc::invalid_argument (a color below 0 that is not no_color), mismatch, peer_lost, aborted, timed_out
  /// Cost:      one all_gather of eight bytes
  /// Example:   examples/21_groups.cpp
  template <group_option... Options>
  operation<Communicator> split(color mine, key order, Options&&... options) const {
    return guarded<Communicator>([&]() -> operation<Communicator> {
      constexpr auto kind = operation_kind::split;
      calls().require_open(kind);
      if (mine.value < no_color.value) {
        calls().refuse(kind, "color " + std::to_string(mine.value) + ": expected 0 or more, or no_color");
      }
      ticket t =
          calls().enter(calls().sign(kind, collective::algorithm::circulant, 0, 0), group_options_of(options...));
      const std::string what = mine.value < 0 ? std::string{"no color"} : "color " + std::to_string(mine.value);
      return collective::split<transport_type, Communicator>(std::move(t), mine.value, order.value,
                                                             name_for("/" + what, options...));
    });
  }
  template <group_option... Options>
  operation<Communicator> split(color mine, Options&&... options) const {
    return split(mine, key{0}, std::forward<Options>(options)...);
  }

  /// The same ranks once more: calls on the two communicators do not meet, so that a library can have its own.
  ///
  /// Completes: when every rank has called it
  /// Errors:    mismatch, peer_lost, aborted, timed_out
  /// Cost:      one barrier
  template <group_option... Options>
  operation<Communicator> duplicate(Options&&... options) const {
    return guarded<Communicator>([&]() -> operation<Communicator> {
      constexpr auto kind = operation_kind::duplicate;
      calls().require_open(kind);
      ticket t =
          calls().enter(calls().sign(kind, collective::algorithm::dissemination, 0, 0), group_options_of(options...));
      return collective::duplicate<transport_type, Communicator>(std::move(t), name_for("/copy", options...));
    });
  }

 private:
  using front_type = front<Backend>;
  [[nodiscard]] const front_type& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  template <class... Options>
  [[nodiscard]] std::string name_for(const std::string& what, const Options&... options) const {
    const std::string* const given = name_in(options...);
    return given != nullptr ? *given : calls().state()->name() + what;
  }
};

}  // namespace cohort::detail

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/communicator/impl/groups.hpp>
#endif
