// SPDX-License-Identifier: BSL-1.0
// The calls of communicator<nccl> that make a smaller one of it: split, duplicate, shrink. A base of the communicator. They
// wait on the host until NCCL is done, and share the devices and the poller of the communicator that they are made of.
#pragma once

#include <cohort/nccl/front.hpp>
#include <cohort/types.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort::detail {

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
  [[nodiscard]] Communicator split(color c, key k, const Options&... options) const {
    constexpr const char* name = "split";
    calls().require_member(name);
    nccl_party& p = *calls().party();
    if (c.value < -1) calls().refuse(name, "color " + std::to_string(c.value) + ": expected 0 or more, or no_color");
    const nccl_entry inside(p, name);
    const device_scope here(device{p.device_index()});
    ncclComm_t made = nullptr;
    ncclConfig_t config = nccl_handle::config();
    const int number = c.value == no_color.value ? NCCL_SPLIT_NOCOLOR : c.value;
    p.check(ncclCommSplit(p.comm(), number, k.value, &made, &config), "ncclCommSplit", name);
    return adopt(name, made, name_of(p.name() + "/" + std::to_string(c.value), options...));
  }
  template <class... Options>
  [[nodiscard]] Communicator split(color c, const Options&... options) const {
    return split(c, key{calls().rank()}, options...);
  }

  /// The same ranks again, with an order of calls of its own.
  template <class... Options>
  [[nodiscard]] Communicator duplicate(const Options&... options) const {
    calls().require_member("duplicate");
    return split(color{0}, key{calls().rank()}, named{name_of(calls().party()->name() + "/copy", options...)});
  }

  /// Those ranks, in the order of the list. Unlike elsewhere every rank calls it: NCCL has no other way.
  template <class... Options>
  [[nodiscard]] Communicator subgroup(const ranks& members, const Options&... options) const {
    constexpr const char* name = "subgroup";
    calls().require_member(name);
    const std::vector<int>& list = members.list();
    for (std::size_t i = 0; i < list.size(); ++i) {
      calls().check_peer(name, "member", list[i]);
      if (std::find(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(i), list[i]) !=
          list.begin() + static_cast<std::ptrdiff_t>(i)) {
        calls().refuse(name, "rank " + std::to_string(list[i]) + " is twice in the list: expected each once");
      }
    }
    const auto mine = std::find(list.begin(), list.end(), calls().rank());
    const auto name_it = [&] { return named{name_of(calls().party()->name() + "/subgroup", options...)}; };
    if (mine == list.end()) return split(no_color, key{0}, name_it());
    return split(color{0}, key{static_cast<int>(mine - list.begin())}, name_it());
  }

  /// Those ranks that are left when some are lost. Called by the survivors alone; what is in flight is ended.
  ///
  /// Result: the communicator of the others, in their order
  /// Needs:  the same list on every survivor, with none of them in it
  /// Errors: invalid_argument (this rank is in the list), timed_out, io_error
  template <class... Options>
  [[nodiscard]] Communicator shrink(const ranks& lost, const Options&... options) const {
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
    const nccl_entry inside(p, name);
    const device_scope here(device{p.device_index()});
    ncclComm_t made = nullptr;
    ncclConfig_t config = nccl_handle::config();
    p.check(ncclCommShrink(p.comm(), list.data(), static_cast<int>(list.size()), &made, &config, NCCL_SHRINK_ABORT),
            "ncclCommShrink", name);
    return adopt(name, made, name_of(p.name() + "/survivors", options...));
  }

 private:
  [[nodiscard]] const nccl_front& calls() const noexcept { return static_cast<const Communicator&>(*this).calls(); }

  [[nodiscard]] static std::string name_of(std::string by_default) { return by_default; }
  [[nodiscard]] static std::string name_of(std::string, const named& given) { return given.name; }

  /// Waits for NCCL to finish it, and asks who this rank is there.
  [[nodiscard]] Communicator adopt(const char* operation, ncclComm_t made, std::string name) const {
    nccl_party& p = *calls().party();
    if (made == nullptr) return Communicator(std::shared_ptr<nccl_party>());
    nccl_handle handle(made);
    handle.settle(ncclInProgress, operation, nccl_party::clock::now() + p.timeout,
                  "rank " + std::to_string(p.rank()) + " of " + std::to_string(p.size()) + " waits for the others");
    int rank = -1;
    int size = 0;
    check_nccl(ncclCommUserRank(made, &rank), "ncclCommUserRank");
    check_nccl(ncclCommCount(made, &size), "ncclCommCount");
    auto party = std::make_shared<nccl_party>(std::move(handle), rank, size, p.device_index(), std::move(name));
    party->timeout = p.timeout;
    party->stream = p.stream;
    party->one_shot_bytes = p.one_shot_bytes;
    party->chunk_bytes = p.chunk_bytes;
    p.share_poller(*party);
    return Communicator(std::move(party));
  }
};

}  // namespace cohort::detail
