// SPDX-License-Identifier: BSL-1.0
// The calls of communicator<nccl> that make a smaller one of it: split, duplicate, subgroup, shrink. A base of the
// communicator. They wait on the host until NCCL is done, and share the devices and the poller of the communicator that they
// are made of.
#pragma once

#include <cohort/memory.hpp>
#include <cohort/nccl/front.hpp>
#include <cohort/nccl/subgroup_id.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <concepts>
#include <coroutine>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

/// A communicator that has just been made. It is one, and `co_await` gives it too, so that `co_await world.split(...)` is the
/// same words as on the CPU.
///
/// Completes: at once, without suspending: the call that made it has waited
template <class Communicator>
class [[nodiscard]] made_group : public Communicator {
 public:
  explicit made_group(Communicator&& made) noexcept : Communicator(std::move(made)) {}

  [[nodiscard]] static constexpr bool await_ready() noexcept { return true; }
  static constexpr void await_suspend(std::coroutine_handle<>) noexcept {}
  [[nodiscard]] Communicator await_resume() noexcept { return std::move(static_cast<Communicator&>(*this)); }
};

namespace detail {

template <class Communicator>
class nccl_subgroup_calls {
 public:
  /// One communicator for each color.
  ///
  /// Result:    the communicator of those with this color, ordered by key, then by rank; not a member for no_color
  /// Needs:     the same call on every rank
  /// Completes: when it returns: it waits for the other ranks
  /// Errors:    timed_out, the communicator's first cause, io_error
  template <class... Options>
  [[nodiscard]] made_group<Communicator> split(color c, key k, const Options&... options) const {
    constexpr const char* name = "split";
    calls().require_member(name);
    if (c.value < -1) calls().refuse(name, "color " + std::to_string(c.value) + ": expected 0 or more, or no_color");
    std::string its_name = name_of(calls().party()->name() + "/" + std::to_string(c.value), options...);
    // Nobody knows the colors of the others, unless there are none.
    std::vector<int> members = calls().size() == 1 ? calls().party()->members() : std::vector<int>();
    return part(name, c, k, std::move(its_name), std::move(members));
  }
  template <class... Options>
  [[nodiscard]] made_group<Communicator> split(color c, const Options&... options) const {
    return split(c, key{calls().rank()}, options...);
  }

  /// The same ranks again, with an order of calls of its own.
  template <class... Options>
  [[nodiscard]] made_group<Communicator> duplicate(const Options&... options) const {
    constexpr const char* name = "duplicate";
    calls().require_member(name);
    return part(name, color{0}, key{calls().rank()}, name_of(calls().party()->name() + "/copy", options...),
                calls().party()->members());
  }

  /// Those ranks, in the order of the list.
  ///
  /// Result:    the communicator of the list; not a member for a rank that is not in it
  /// Needs:     the same list on every rank that is in it; the others need not call
  /// Completes: when it returns: it waits for the other members, and for what is on the stream of the communicator
  /// Errors:    as split; invalid_argument (a rank that there is not, or twice; lists that differ; a stream that is being
  ///            captured; within a group(); on the poller's thread, see host_wait)
  /// Cost:      two messages of half a kilobyte for each member, then NCCL's own start, a second or more
  template <class... Options>
  [[nodiscard]] made_group<Communicator> subgroup(const ranks& members, const Options&... options) const {
    constexpr const char* name = "subgroup";
    calls().require_member(name);
    const std::vector<int>& list = members.list();
    if (list.empty()) calls().refuse(name, "the list of members is empty: expected at least one rank");
    for (std::size_t i = 0; i < list.size(); ++i) {
      calls().check_peer(name, "member", list[i]);
      if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list[i]) !=
          list.begin() + static_cast<std::ptrdiff_t>(i)) {
        calls().refuse(name, "rank " + std::to_string(list[i]) + " is twice in the list: expected each once");
      }
    }
    const auto mine = std::find(list.begin(), list.end(), calls().rank());
    if (mine == list.end()) return no_member();
    nccl_party& p = *calls().party();
    p.refuse_in_group(name);
    if (on_pollers_thread()) {
      calls().refuse(name,
                     "this is the thread of the poller, which has to see the answers of the other members: drive the "
                     "coroutine by an executor, by sync_wait or by run");
    }
    if (is_capturing(p.stream)) {
      calls().refuse(name,
                     "the stream is being captured into a graph, and a communicator is made by the host: make it "
                     "before the capture");
    }
    const ncclUniqueId id = agree_on_subgroup(calls(), list);
    const nccl_entry inside(p, name);
    const device_scope here(device{p.device_index()});
    return with_settings(nccl_handle::create(static_cast<int>(list.size()), id, static_cast<int>(mine - list.begin()),
                                             p.handle().blocks(), p.deadline_of_call()),
                         name_of(p.name() + "/subgroup", options...), p.members_of(list));
  }
  template <range_like Range, class... Options>
    requires(!std::same_as<std::remove_cvref_t<Range>, ranks>)
  [[nodiscard]] made_group<Communicator> subgroup(const Range& members, const Options&... options) const {
    return subgroup(ranks(members), options...);
  }

  /// Those ranks that are left when some are lost. Called by the survivors alone; what is in flight is ended.
  ///
  /// Result: the communicator of the others, in their order
  /// Needs:  the same list on every survivor, with none of them in it
  /// Errors: invalid_argument (this rank is in the list), timed_out, io_error
  template <class... Options>
  [[nodiscard]] made_group<Communicator> shrink(const ranks& lost, const Options&... options) const {
    constexpr const char* name = "shrink";
    calls().require_member(name);
    nccl_party& p = *calls().party();
    std::vector<int> list = lost.list();
    for (const int r : list) {
      calls().check_peer(name, "lost rank", r);
      if (r == p.rank()) {
        calls().refuse(name, "this rank is in the list of those that are lost: it must not call shrink");
      }
    }
    p.refuse_in_group(name);
    const nccl_entry inside(p, name);
    const device_scope here(device{p.device_index()});
    ncclComm_t made = nullptr;
    ncclConfig_t config = nccl_handle::config(p.handle().blocks());
    p.check_made(
        ncclCommShrink(p.comm(), list.data(), static_cast<int>(list.size()), &made, &config, NCCL_SHRINK_ABORT), made,
        "ncclCommShrink", name);
    std::vector<int> left;
    for (int r = 0; r < p.size(); ++r) {
      if (std::find(list.begin(), list.end(), r) == list.end()) left.push_back(r);
    }
    return adopt(name, made, name_of(p.name() + "/survivors", options...), p.members_of(left));
  }

 private:
  [[nodiscard]] const nccl_front& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  [[nodiscard]] static std::string name_of(std::string by_default) { return by_default; }
  [[nodiscard]] static std::string name_of(std::string, const named& given) { return given.name; }

  [[nodiscard]] made_group<Communicator> part(const char* operation, color c, key k, std::string name,
                                              std::vector<int> members) const {
    nccl_party& p = *calls().party();
    p.refuse_in_group(operation);
    const nccl_entry inside(p, operation);
    const device_scope here(device{p.device_index()});
    ncclComm_t made = nullptr;
    ncclConfig_t config = nccl_handle::config(p.handle().blocks());
    const int number = c.value == no_color.value ? NCCL_SPLIT_NOCOLOR : c.value;
    p.check_made(ncclCommSplit(p.comm(), number, k.value, &made, &config), made, "ncclCommSplit", operation);
    return adopt(operation, made, std::move(name), std::move(members));
  }

  [[nodiscard]] static made_group<Communicator> no_member() {
    return made_group<Communicator>(Communicator(std::shared_ptr<nccl_party>()));
  }

  /// Waits for NCCL to finish it.
  [[nodiscard]] made_group<Communicator> adopt(const char* operation, ncclComm_t made, std::string name,
                                               std::vector<int> members) const {
    const nccl_party& p = *calls().party();
    if (made == nullptr) return no_member();
    nccl_handle handle(made);
    const std::string who =
        "rank " + std::to_string(p.rank()) + " of " + std::to_string(p.size()) + " waits for the others";
    handle.settle(ncclInProgress, operation, p.deadline_of_call(), who);
    if (p.handle().blocks()) {
      int rank = -1;
      check_nccl(ncclCommUserRank(handle.get(), &rank), "ncclCommUserRank");
      handle.braked(rank, p.deadline_of_call(), who);
    }
    return with_settings(std::move(handle), std::move(name), std::move(members));
  }
  /// Asks who this rank is there; the settings are those of the communicator that it is made of.
  [[nodiscard]] made_group<Communicator> with_settings(nccl_handle handle, std::string name,
                                                       std::vector<int> members) const {
    nccl_party& p = *calls().party();
    int rank = -1;
    int size = 0;
    check_nccl(ncclCommUserRank(handle.get(), &rank), "ncclCommUserRank");
    check_nccl(ncclCommCount(handle.get(), &size), "ncclCommCount");
    auto party = std::make_shared<nccl_party>(std::move(handle), rank, size, p.device_index(), std::move(name),
                                              std::move(members));
    party->timeout = p.timeout.load();
    party->stream = p.stream;
    party->one_shot_bytes = p.one_shot_bytes;
    party->chunk_bytes = p.chunk_bytes;
    p.share_poller(*party);
    if (party->handle().blocks()) party->watch().oversee(party);
    return made_group<Communicator>(Communicator(std::move(party)));
  }
};

}  // namespace detail
}  // namespace cohort
