// SPDX-License-Identifier: BSL-1.0
// ipc_ranks: processes that share one GPU and read each other's device memory, where NCCL refuses to have them. They wait
// for each other by events between processes, and tell each other by messages of a communicator of the host when to. The
// folds, their order and the phases are those of local_ranks.
#pragma once

#include <cohort/check_reduction.hpp>
#include <cohort/communicator/declaration.hpp>
#include <cohort/gpu/ipc_meeting.hpp>
#include <cohort/gpu/peer_rank.hpp>
#include <cohort/gpu/peer_schedule.hpp>
#include <cohort/gpu/shared_buffer.hpp>
#include <cohort/gpu/stream_ordered.hpp>
#include <cohort/task.hpp>
#include <cohort/types.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

struct ipc_options {
  std::optional<device> on_device{};                           ///< default: the one that is current
  std::chrono::nanoseconds timeout = std::chrono::minutes{5};  ///< of every message of the host, and for on_host()
  std::string name = "ipc";                                    ///< that errors use

  // A constructor, because g++ 12 destroys a temporary aggregate twice in a co_await expression.
  ipc_options() = default;
};

namespace detail {

/// Throws on every rank alike if one of them has an excuse.
template <class Host>
task<> agree(const Host& over, ipc_excuse mine, const char* operation, std::chrono::nanoseconds allowed) {
  std::vector<ipc_excuse> one(1, mine);
  std::vector<ipc_excuse> all(static_cast<std::size_t>(over.size()));
  co_await over.all_gather(one, all, cohort::timeout{allowed});
  check_excuses(std::span<const ipc_excuse>(all), operation, over.rank());
}

}  // namespace detail

/// The ranks of a communicator of the host, on one GPU. Made by connect_ipc.
///
/// Order:     of folds, rank order: the same bits on all ranks. The n-th call is the n-th on every rank, and the next is
///            made when the last has been awaited
/// Completes: every call, when awaited, when the ranks have told each other to go on: what is enqueued on stream() then
///            sees its result. It does not wait for the device, which `co_await on_host(ranks.enqueued())` does; no
///            kernel waits for another process, only streams do
/// Needs:     buffers that share() has given; work before and after on stream(). Not to be captured: the messages of the
///            host are no part of a graph. For a fold in a .cpp: COHORT_INSTANTIATE_FOLD(T, Op) in one .cu of the program
/// Errors:    invalid_argument (sizes, roots) on every rank alike; those of the communicator below (a lost rank is named);
///            what CUDA says, on one rank alone: the others have it when that rank ends, or by the timeout
/// Lifetime:  must outlive its calls, as must the buffers that they take
/// Cost:      a barrier of the host for each phase and one more: all_reduce three, the others two; of reduce the first is an all_gather of
///            half a kilobyte
template <class Backend>
class ipc_ranks {
 public:
  ipc_ranks(ipc_ranks&&) noexcept = default;
  ipc_ranks& operator=(ipc_ranks&&) noexcept = default;
  ~ipc_ranks() = default;

  [[nodiscard]] int rank() const noexcept { return state_->rank(); }
  [[nodiscard]] int size() const noexcept { return state_->size(); }
  /// The stream of all calls.
  [[nodiscard]] cudaStream_t stream() const noexcept { return state_->stream(); }
  /// What is on the stream by now, for on_host().
  [[nodiscard]] stream_ordered enqueued() const noexcept { return {state_->ticket(), stream(), "ipc_ranks"}; }

  /// Makes a buffer of every rank known to all of them.
  ///
  /// Result: all buffers, by addresses of this process
  /// Shapes: any count on any rank; the calls say what they need
  /// Needs:  memory of cudaMalloc, as a device_buffer has, or a part of it. The other processes can reach all of its
  ///         allocation
  /// Errors: on every rank alike, naming one whose memory no other process can open (managed, of the host, of a pool as
  ///         of cudaMallocAsync, virtual as of make_window) or that cannot open another's
  /// Cost:   two all_gathers of half a kilobyte, and opening what is not open yet: to be done once
  template <element T>
  [[nodiscard]] task<shared_buffer<T>> share(device_span<T> mine) const {
    constexpr const char* name = "share";
    const auto ranks = static_cast<std::size_t>(size());
    detail::ipc_excuse trouble;
    std::vector<detail::memory_offer> one(1);
    try {
      const device_scope here(device{state_->where(name).device});
      one[0] = detail::offer_memory(mine.data(), mine.size_bytes(), state_->where(name).device);
    } catch (const error& e) {
      trouble.cannot(e);
    }
    std::vector<detail::memory_offer> all(ranks);
    co_await host_.all_gather(one, all, timeout{state_->timeout()});
    std::vector<detail::opened_memory> opened(ranks);
    std::vector<device_span<T>> spans(ranks);
    if (trouble.reason().empty()) open_all(all, opened, spans, trouble);
    auto all_agree = detail::agree(host_, trouble, name, state_->timeout());
    co_await all_agree;
    spans[static_cast<std::size_t>(rank())] = mine;
    co_return shared_buffer<T>(state_, stream(), std::move(opened), std::move(spans));
  }
  /// Gives a shared buffer back on every rank; afterwards each may free its own.
  ///
  /// Completes: when all ranks have closed what they had open
  template <element T>
  task<> unshare(shared_buffer<T> buffer) const {
    { const shared_buffer<T> ends = std::move(buffer); }
    co_await host_.barrier(timeout{state_->timeout()});
  }

  /// Makes the stream of every rank wait for what is on all of them.
  task<> barrier() const {
    state_->arrive();
    co_await host_.barrier(timeout{state_->timeout()});
    state_->hold_back();
  }

  /// Shapes: as many elements on every rank. In place.
  /// Cost:   each rank folds its own part of the vector and copies the others'
  template <element T, class Op>
  task<> all_reduce(const shared_buffer<T>& inout, Op op) const {
    check_reduction<Op, T>();
    return run(detail::peer_all_reduce<T, Op>{inout.all(), op});
  }

  /// Shapes: in: size() times the count of out; no buffer of out within one of in
  template <element T, class Op>
  task<> reduce_scatter(const shared_buffer<T>& in, const shared_buffer<T>& out, Op op) const {
    check_reduction<Op, T>();
    return run(detail::peer_reduce_scatter<T, Op>{in.all(), out.all(), op});
  }

  /// Shapes: as many elements on every rank; out on the root alone, of the same device, and none of in
  template <element T, class Op>
  task<> reduce(const shared_buffer<T>& in, device_span<T> out, Op op, root to_rank) const {
    check_reduction<Op, T>();
    detail::peer_reduce<T, Op> how{in.all(), out, op, to_rank};
    how.check(size());
    return run_reduce(std::move(how));
  }

  template <element T>
  task<> broadcast(const shared_buffer<T>& inout, root from_rank) const {
    return run(detail::peer_broadcast<T>{inout.all(), from_rank});
  }

  /// Shapes: out: size() times the count of in
  template <element T>
  task<> all_gather(const shared_buffer<T>& in, const shared_buffer<T>& out) const {
    return run(detail::peer_all_gather<T>{in.all(), out.all()});
  }

  /// Shapes: in, out: size() blocks of one size; no buffer of out within one of in
  template <element T>
  task<> all_to_all(const shared_buffer<T>& in, const shared_buffer<T>& out) const {
    return run(detail::peer_all_to_all<T>{in.all(), out.all()});
  }

  /// Carries out the phases of a schedule, for headers that add calls.
  template <class Schedule>
  task<> run(Schedule how) const {
    how.check(size());
    for (int phase = 0; phase < Schedule::phases; ++phase) {
      auto before = barrier();
      co_await before;
      carry_out(phase, how);
    }
    auto after = barrier();  // nobody's buffers are written again before everybody has read them
    co_await after;
  }

  /// Ends it on every rank, in place of a last call. Without it the events of this rank stay until its process ends.
  ///
  /// Completes: when the work of all ranks is done
  task<> leave() const {
    detail::check_cuda(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    state_->close();
    co_await host_.barrier(timeout{state_->timeout()});
    state_->left = true;
  }

  /// For connect_ipc.
  ipc_ranks(communicator<Backend> host, std::shared_ptr<detail::ipc_state> state) noexcept
      : host_(std::move(host)), state_(std::move(state)) {}

 private:
  /// Only the root knows whether its `out` fits: the others are told where they would be told to go on.
  template <class T, class Op>
  task<> run_reduce(detail::peer_reduce<T, Op> how) const {
    detail::ipc_excuse mine;
    try {
      if (rank() == how.to_rank.rank) how.check_out();
    } catch (const error& e) {
      mine.cannot(e);
    }
    state_->arrive();
    auto all_agree = detail::agree(host_, mine, "reduce", state_->timeout());
    co_await all_agree;
    state_->hold_back();
    carry_out(0, how);
    auto after = barrier();
    co_await after;
  }
  template <class Schedule>
  void carry_out(int phase, const Schedule& how) const {
    const device_scope here(device{state_->where("").device});
    how(phase, detail::peer_rank(rank(), size(), stream()));
  }
  template <class T>
  void open_all(const std::vector<detail::memory_offer>& all, std::vector<detail::opened_memory>& opened,
                std::vector<device_span<T>>& spans, detail::ipc_excuse& trouble) const {
    try {
      const device_scope here(device{state_->where("").device});
      for (std::size_t r = 0; r < all.size(); ++r) {
        if (static_cast<int>(r) != rank()) opened[r] = detail::opened_memory(all[r]);
        spans[r] = {static_cast<T*>(opened[r].address()), static_cast<std::size_t>(all[r].bytes) / sizeof(T)};
      }
    } catch (const error& e) {
      trouble.cannot(e);
    }
  }

  communicator<Backend> host_;
  std::shared_ptr<detail::ipc_state> state_;
};

/// Makes the ranks of a communicator of the host share a GPU.
///
/// Result:    the ranks, in the same order; `over` may be used on, and may go
/// Needs:     the same call on every rank of `over`, whose ranks are processes of one host, or coroutines of one process
/// Completes: when every rank has what it needs
/// Errors:    on every rank alike: bad_environment naming a rank that has no device, or whose device has no events between
///            processes; invalid_argument naming two ranks on different GPUs; those of all_gather
/// Cost:      two all_gathers of half a kilobyte and a barrier
/// Example:
///   auto ranks = co_await cohort::connect_ipc(world);
///   auto grad = co_await ranks.share(device_grad.device_view());
///   co_await ranks.all_reduce(grad, cohort::average{});
template <class Backend>
[[nodiscard]] task<ipc_ranks<Backend>> connect_ipc(const communicator<Backend>& over, ipc_options options = {}) {
  auto state = std::make_shared<detail::ipc_state>(over.rank(), over.size(), options.timeout, options.name);
  std::vector<detail::ipc_introduction> one(1, state->begin(options.on_device));
  std::vector<detail::ipc_introduction> all(static_cast<std::size_t>(over.size()));
  co_await over.all_gather(one, all, timeout{options.timeout});
  detail::check_meeting(all, over.rank());
  const detail::ipc_excuse trouble = state->open_events(all);
  auto all_agree = detail::agree(over, trouble, "connect_ipc", options.timeout);
  co_await all_agree;
  communicator<Backend> host = co_await over.duplicate();
  co_return ipc_ranks<Backend>(std::move(host), std::move(state));
}

}  // namespace cohort
