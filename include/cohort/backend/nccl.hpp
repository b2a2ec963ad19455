// SPDX-License-Identifier: BSL-1.0
// The NCCL backend: communicator<nccl>, the ranks of a job with one GPU each, and the same words as on the CPU on buffers
// in device memory. For a plain g++ or clang as for nvcc; connect.hpp makes one.
#pragma once

#include <cohort/communicator/declaration.hpp>
#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/on_host.hpp>
#include <cohort/nccl/coalesced.hpp>
#include <cohort/nccl/front.hpp>
#include <cohort/nccl/messages.hpp>
#include <cohort/nccl/moves.hpp>
#include <cohort/nccl/reductions.hpp>
#include <cohort/nccl/refused.hpp>
#include <cohort/nccl/subgroups.hpp>
#include <cohort/nccl/support.hpp>
#include <cohort/nccl/window.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

struct nccl {
  static constexpr std::string_view name = "nccl";
  /// For cohort::supports.
  template <function F, class T, class Op>
  [[nodiscard]] static consteval support supports() noexcept {
    return detail::nccl_support<F, T, Op>();
  }
};

/// A group of ranks with one GPU each.
///
/// Order:     the n-th call on a communicator is the n-th on every rank; NCCL compares nothing, so that ranks which call
///            different things may hang until a deadline, or give wrong data
/// Completes: every call when it is enqueued; its work is done in the order of the stream, and on_host() waits for it
/// Lifetime:  move-only; its end waits, up to half a minute, for what is in flight, and for the end of graphs that hold calls
///            of it: destroy these first. on_host() of an operation after it is an error
/// Needs:     one thread at a time
/// Errors:    every call: not_a_member, concurrent_use, and the first cause of an earlier failure
template <>
class [[nodiscard]] communicator<nccl> : public detail::nccl_message_calls<communicator<nccl>>,
                                         public detail::nccl_move_calls<communicator<nccl>>,
                                         public detail::nccl_reduction_calls<communicator<nccl>>,
                                         public detail::nccl_group_calls<communicator<nccl>>,
                                         public detail::nccl_subgroup_calls<communicator<nccl>>,
                                         public detail::nccl_refused_calls<communicator<nccl>> {
 public:
  using backend_type = nccl;

  /// For connect.hpp; null: of a group that this process is not in.
  explicit communicator(std::shared_ptr<detail::nccl_party> state) noexcept : front_(std::move(state)) {}
  communicator(communicator&&) noexcept = default;
  communicator& operator=(communicator&&) noexcept = default;
  communicator(const communicator&) = delete;
  communicator& operator=(const communicator&) = delete;
  ~communicator() = default;

  /// This process's rank, 0 .. size()-1; -1 if it is not a member.
  [[nodiscard]] int rank() const noexcept { return front_.rank(); }
  [[nodiscard]] int size() const noexcept { return front_.size(); }
  [[nodiscard]] bool is_member() const noexcept { return rank() >= 0; }
  /// The name that errors use.
  [[nodiscard]] std::string name() const { return front_.party() ? front_.party()->name() : std::string(); }
  /// The device of this rank, as this process numbers them.
  [[nodiscard]] device on_device() const {
    front_.require_member("on_device");
    return device{front_.party()->device_index()};
  }

  /// Rank of this communicator to rank of the one that connect made, and back; -1 if there is none.
  ///
  /// Errors: invalid_argument for what split() has made: NCCL tells nobody who else has its color
  [[nodiscard]] int world_rank_of(int r) const {
    const std::vector<int>& all = members("world_rank_of");
    return r < 0 || r >= size() ? -1 : all[static_cast<std::size_t>(r)];
  }
  [[nodiscard]] int rank_of(int world_rank) const {
    const std::vector<int>& all = members("rank_of");
    const auto found = std::find(all.begin(), all.end(), world_rank);
    return found == all.end() ? -1 : static_cast<int>(found - all.begin());
  }

  /// Whether an error has made this communicator unusable; every later call reports that error.
  [[nodiscard]] bool failed() const noexcept { return front_.party() && front_.party()->failed(); }

  /// The stream of calls that name none. The default stream of the device unless set.
  void set_stream(on where) const {
    front_.require_member("set_stream");
    front_.party()->stream = where.stream;
  }
  /// How long on_host() waits where no timeout{} is given, and how long NCCL may take to connect. Five minutes unless
  /// set.
  void set_timeout(std::chrono::nanoseconds after) const {
    front_.require_member("set_timeout");
    front_.party()->timeout = after;
  }
  [[nodiscard]] std::chrono::nanoseconds timeout_after() const {
    front_.require_member("timeout_after");
    return front_.party()->timeout.load();
  }

  /// For loops that are written for every backend: the device moves what is in flight by itself.
  ///
  /// Result: false: there is nothing for the host to move
  static constexpr bool poll() noexcept { return false; }
  /// Of reductions by a fold: up to `one_shot` bytes a rank everything is gathered everywhere; of longer ones `chunk`
  /// bytes are exchanged with each rank at a time. To be set alike on every rank.
  void set_fold_sizes(std::size_t one_shot, std::size_t chunk) const {
    front_.require_member("set_fold_sizes");
    front_.party()->one_shot_bytes = one_shot;
    front_.party()->chunk_bytes = chunk;
  }

  /// What is on a stream by now, as an operation: for on_host() after a graph was launched, or after kernels.
  [[nodiscard]] stream_ordered enqueued(on where) const {
    return front_.start("enqueued", {where.stream, {}}, [](detail::nccl_party&, cudaStream_t) {});
  }
  [[nodiscard]] stream_ordered enqueued() const {
    return front_.start("enqueued", {}, [](detail::nccl_party&, cudaStream_t) {});
  }

  /// Ends everything that is in flight on this rank; every later call reports errc::cancelled. The other ranks notice a
  /// lost rank, or a deadline.
  void abort() const {
    front_.require_member("abort");
    auto& p = *front_.party();
    const detail::nccl_entry inside(p, "abort");
    p.fail(p.make_failure(errc::cancelled, "abort", "abort() was called"));
  }

  /// Memory that is registered with all ranks.
  ///
  /// Needs:  the same call on every rank, in the same order
  /// Errors: invalid_argument (no elements), out_of_memory, io_error
  template <element T>
  [[nodiscard]] nccl_window<T> make_window(std::size_t count) const {
    front_.require_member("make_window");
    const detail::nccl_entry inside(*front_.party(), "make_window");
    const device_scope here(device{front_.party()->device_index()});
    return nccl_window<T>(front_.party(), count);
  }

  /// How on_host() sees completion here: "flags", or "events, because ...".
  [[nodiscard]] std::string host_wait_by() const {
    front_.require_member("host_wait_by");
    return front_.party()->watch().way();
  }

  /// NCCL's own communicator, for calls that this library does not have. Null after a failure.
  [[nodiscard]] ncclComm_t native_handle() const noexcept { return front_.party() ? front_.party()->comm() : nullptr; }
  /// For headers that add calls.
  [[nodiscard]] const detail::nccl_front& calls() const noexcept { return front_; }

 private:
  [[nodiscard]] const std::vector<int>& members(const char* operation) const {
    front_.require_member(operation);
    const std::vector<int>& all = front_.party()->members();
    if (all.empty()) {
      front_.refuse(
          operation,
          "it was made by split, and NCCL tells nobody who else has a color: make it by subgroup(ranks{...}), "
          "or ask the same split of the communicator of the host");
    }
    return all;
  }

  detail::nccl_front front_;
};

}  // namespace cohort

#include <cohort/nccl/connect.hpp>
