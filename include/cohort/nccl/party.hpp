// SPDX-License-Identifier: BSL-1.0
// The state of a communicator<nccl>: NCCL's own communicator, the device, the scratch memory, and the first cause of a
// failure. Shared by the communicator and by what waits for its operations.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/poller.hpp>
#include <cohort/gpu/stream.hpp>
#include <cohort/gpu/stream_ordered.hpp>
#include <cohort/nccl/check.hpp>
#include <cohort/nccl/gate.hpp>
#include <cohort/nccl/handle.hpp>
#include <cohort/nccl/open_group.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::detail {

/// Scratch memory of one stream. It only grows, and what it has outgrown is kept: a graph may have been captured with it.
struct device_scratch {
  cudaStream_t owner = nullptr;
  bool result = false;
  std::vector<device_buffer<std::byte>> kept{};
};

/// A second stream of the device, and two pairs of events, for folds that overlap with the wire.
struct fold_overlap {
  cohort::stream second{};
  std::array<event, 2> exchanged{};
  std::array<event, 2> combined{};
};

class nccl_party final : public device_party {
  // What every call reads or writes, side by side: NCCL's own work between two calls leaves little of it in the caches.
  nccl_handle comm_;
  call_gate gate_{};
  std::atomic<std::int64_t> calls_{-1};  // the poller reads it
  std::atomic<bool> failed_{false};

 public:
  cudaStream_t stream = nullptr;

 private:
  int rank_;
  int size_;
  int device_;

 public:
  using clock = std::chrono::steady_clock;

  /// `members`: the ranks in the world of those that are in here; none where that is not known.
  nccl_party(nccl_handle comm, int rank, int size, int device_index, std::string name, std::vector<int> members)
      : comm_(std::move(comm)),
        rank_(rank),
        size_(size),
        device_(device_index),
        name_(std::move(name)),
        members_(std::move(members)) {}
  ~nccl_party() override {
    // What is in flight is waited for; a rank that does not come must not hold this process at its end.
    constexpr std::chrono::seconds patience{30};
    if (comm_ && !failed()) comm_.close(clock::now() + std::min<clock::duration>(patience, timeout.load()));
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] int device_index() const noexcept { return device_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] ncclComm_t comm() const noexcept { return comm_.get(); }
  [[nodiscard]] const nccl_handle& handle() const noexcept { return comm_; }
  [[nodiscard]] call_gate& gate() noexcept { return gate_; }
  [[nodiscard]] const std::vector<int>& members() const noexcept { return members_; }
  /// The ranks in the world of some that are in here; none where that is not known.
  [[nodiscard]] std::vector<int> members_of(const std::vector<int>& list) const {
    std::vector<int> some;
    if (members_.empty()) return some;
    for (const int r : list) some.push_back(members_[static_cast<std::size_t>(r)]);
    return some;
  }

  std::atomic<std::chrono::nanoseconds> timeout{std::chrono::minutes{5}};
  std::size_t one_shot_bytes = std::size_t{1} << 20;  ///< folds up to this size a rank gather everything at once
  std::size_t chunk_bytes = std::size_t{4} << 20;     ///< of longer ones: what is exchanged with each rank at a time

  // --- guardian: the poller's thread
  [[nodiscard]] std::exception_ptr failure() noexcept override {
    if (failed()) return cause();
    if (!gate_.enter_to_abort()) return nullptr;  // whoever is inside will see it
    const ncclResult_t code = comm_.asynchronous_error();
    gate_.leave_after_abort();
    if (nccl_survives(code)) return nullptr;
    return make_failure(nccl_condition(code), "", nccl_sentence(code, "NCCL's own thread", nullptr));
  }
  [[nodiscard]] bool begin_abort(std::exception_ptr why) noexcept override {
    constexpr std::chrono::milliseconds grace{100};  // most calls come out of NCCL by themselves
    const bool entered = gate_.enter_to_abort();
    if (!entered && (!comm_.blocks() || time_inside() < grace)) return false;
    braking_ = !entered;
    note_failure(std::move(why));
    return true;
  }
  void finish_abort() noexcept override {
    if (braking_) return comm_.pull_brake();
    comm_.abort();
    gate_.leave_after_abort();
  }
  /// Where NCCL's calls block, one that lasts longer than the communicator's timeout is ended.
  void oversee() noexcept override {
    if (time_inside() <= timeout.load() || failed()) return;
    note_failure(make_failure(errc::timed_out, "",
                              "a call of NCCL's has not ended: a rank has not made this call, or cannot be reached"));
    comm_.pull_brake();
  }

  // --- device_party
  [[nodiscard]] poller& watch() override {
    if (!poller_) poller_ = std::make_shared<poller>(device_);
    return *poller_;
  }
  [[nodiscard]] event_pool& events() noexcept override { return events_; }
  [[nodiscard]] where_on_device where(const char* operation) const noexcept override {
    return {rank_, size_, device_, operation, &name_};
  }
  [[nodiscard]] std::chrono::nanoseconds default_timeout() const noexcept override { return timeout.load(); }
  void require_enqueued(const char* operation, const char* what) const override {
    if (!in_open_group()) return;
    refuse(
        errc::invalid_argument, operation,
        std::string(what) +
            " within group(), whose calls are on no stream before it ends: give timeout{} to group() itself, and wait "
            "for what it returns");
  }
  /// A group made of this one shares its poller.
  void share_poller(nccl_party& other) {
    static_cast<void>(watch());
    other.poller_ = poller_;
  }

  // --- failure
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::exception_ptr cause() const noexcept {
    const std::lock_guard lock(mutex_);
    return cause_;
  }
  [[nodiscard]] std::exception_ptr make_failure(errc code, const char* operation,
                                                const std::string& text) const noexcept {
    try {
      return std::make_exception_ptr(describe(code, operation, text));
    } catch (...) {
      return std::current_exception();
    }
  }
  /// "all_reduce on 'world', rank 1 of 4, device 1: ..."
  [[nodiscard]] error describe(errc code, const char* operation, const std::string& text) const {
    error_details d;
    d.rank = rank_;
    d.operation = operation;
    d.group = name_;
    d.sequence = calls_.load(std::memory_order_relaxed);
    const std::string sentence = (d.operation.empty() ? "the communicator" : d.operation) + " on '" + name_ +
                                 "', rank " + std::to_string(rank_) + " of " + std::to_string(size_) + ", device " +
                                 std::to_string(device_) + ": " + text;
    return {code, sentence, std::move(d)};
  }
  [[noreturn]] void refuse(errc code, const char* operation, const std::string& text) const {
    throw describe(code, operation, text);
  }
  /// Ends the communicator on this thread, which is inside.
  void fail(std::exception_ptr why) noexcept {
    note_failure(std::move(why));
    comm_.abort();
  }

  /// The outcome of an NCCL call. Where NCCL is still at it (the first use makes connections), it is followed.
  ///
  /// Errors: what NCCL says, with rank and operation; the communicator is aborted unless only an argument was refused
  void check(ncclResult_t code, const char* function, const char* operation) {
    if (code != ncclSuccess) [[unlikely]]
      check_other(code, function, operation);
  }

  /// The outcome of a call by which NCCL makes something, which is at `made` then.
  ///
  /// Needs:  no group, in which nothing can be waited for
  /// Errors: as check
  template <class Made>
  void check_made(ncclResult_t code, const Made& made, const char* function, const char* operation) {
    code = comm_.follow_making(code, deadline_of_call());
    // Of a communicator that has lost a rank the error stays, whatever was made of it.
    if (code != ncclInProgress && made != nullptr) return;
    check(code, function, operation);
  }
  void refuse_in_group(const char* operation) const {
    if (!in_open_group()) return;
    refuse(errc::invalid_argument, operation, "within group() nothing can be waited for: make it outside of the group");
  }

  /// When what is waited for now has taken too long.
  [[nodiscard]] clock::time_point deadline_of_call() const noexcept {
    const auto now = clock::now();
    const std::chrono::nanoseconds longest = timeout.load();
    return longest > clock::time_point::max() - now ? clock::time_point::max() : now + longest;
  }

  /// The number of the call that is made now.
  void count_call() noexcept { calls_.store(calls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

  // --- memory
  /// At least `bytes` for what is enqueued on `s`, until the next request for the same stream.
  ///
  /// Errors: out_of_memory; invalid_argument while a graph is captured, for more than there is
  [[nodiscard]] std::byte* scratch(cudaStream_t s, std::size_t bytes, const char* operation, bool result = false) {
    device_scratch& mine = scratch_of(s, result);
    if (!mine.kept.empty() && mine.kept.back().size() >= bytes) return mine.kept.back().data();
    if (is_capturing(s)) {
      refuse(
          errc::invalid_argument, operation,
          "it needs " + std::to_string(bytes) +
              " bytes of scratch memory, which cannot be taken while a graph is captured: make the same call once on "
              "this stream before the capture");
    }
    std::size_t size = std::size_t{1} << 16;
    while (size < bytes) size *= 2;
    mine.kept.emplace_back(size);
    return mine.kept.back().data();
  }
  /// The same, apart from it: for results that lie beside the scratch memory of their own exchange.
  [[nodiscard]] std::byte* result_scratch(cudaStream_t s, std::size_t bytes, const char* operation) {
    return scratch(s, bytes, operation, true);
  }
  [[nodiscard]] fold_overlap& overlap() {
    if (!overlap_) overlap_.emplace();
    return *overlap_;
  }

  /// Refuses memory that this rank's device has not. Addresses that were found good are remembered.
  void check_place(const void* data, const char* operation, const char* buffer) {
    const auto number = reinterpret_cast<std::uintptr_t>(data);
    const void*& known = known_[(number >> 8 ^ number >> 16) % known_.size()];
    if (known == data) [[likely]]
      return;
    find_place(data, operation, buffer);
    known = data;
  }

 private:
  // Out of line, as all that follows here for errors: what a call needs of the instruction cache is most of what it costs.
  [[gnu::noinline]] void check_other(ncclResult_t code, const char* function, const char* operation) {
    // Within a group the last call is the one that is followed.
    if (code == ncclInProgress && in_open_group()) return;
    if (code == ncclInProgress) code = comm_.follow(code, deadline_of_call());
    if (code == ncclSuccess) return;
    if (failed()) throw_ended(function, operation);
    const error e = code == ncclInProgress
                        ? describe(errc::timed_out, operation,
                                   std::string(function) +
                                       " has not ended: a rank has not made this call, or cannot be "
                                       "reached")
                        : describe(nccl_condition(code), operation, nccl_sentence(code, function, comm_.get()));
    if (!nccl_survives(code) || code == ncclInProgress) fail(std::make_exception_ptr(e));
    throw e;
  }
  [[gnu::noinline]] void find_place(const void* data, const char* operation, const char* buffer) {
    const memory_place place = place_of(data);
    if (place.device != device_) {
      refuse(errc::invalid_argument, operation,
             std::string(buffer) + " is in " + (place.device >= 0 ? "the memory of " : "") + place.words +
                 ", expected the memory of device " + std::to_string(device_) +
                 ", which this communicator has: copy it there, or connect with device{" +
                 std::to_string(place.device < 0 ? device_ : place.device) + "}");
    }
  }
  /// On this thread, which is inside a call that another thread has ended.
  [[noreturn]] void throw_ended(const char* function, const char* operation) {
    comm_.abort();
    try {
      std::rethrow_exception(cause());
    } catch (const error& e) {
      throw describe(e.condition(), operation, std::string(function) + " was ended: " + e.what());
    }
  }
  /// For how long a thread of the user's has been in the same call, as the poller's thread has seen it; 0: in none.
  [[nodiscard]] clock::duration time_inside() noexcept {
    const std::uint64_t inside = gate_.call_inside();
    const auto now = clock::now();
    if (inside != seen_inside_ || inside == 0) {
      seen_inside_ = inside;
      seen_since_ = now;
    }
    return now - seen_since_;
  }
  void note_failure(std::exception_ptr why) noexcept {
    const std::lock_guard lock(mutex_);
    if (!cause_) cause_ = std::move(why);
    failed_.store(true, std::memory_order_release);
  }
  [[nodiscard]] device_scratch& scratch_of(cudaStream_t s, bool result) {
    for (device_scratch& d : scratch_) {
      if (d.owner == s && d.result == result) return d;
    }
    return scratch_.emplace_back(device_scratch{s, result, {}});
  }

  std::string name_;
  std::vector<int> members_;
  mutable std::mutex mutex_{};
  std::exception_ptr cause_{};
  // The poller's.
  std::uint64_t seen_inside_ = 0;  // the call in which it found this rank
  clock::time_point seen_since_{};
  bool braking_ = false;  // between begin_abort() and finish_abort()
  std::shared_ptr<poller> poller_{};
  event_pool events_{};
  std::vector<device_scratch> scratch_{};
  std::optional<fold_overlap> overlap_{};
  std::array<const void*, 64> known_{};
};

}  // namespace cohort::detail
