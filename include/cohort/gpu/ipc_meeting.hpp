// SPDX-License-Identifier: BSL-1.0
// How processes on one GPU come to share it: what each says of itself, what is refused on all of them alike, and the state
// that comes of it. Used by ipc_ranks.hpp.
#pragma once

#include <cohort/error.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/device_party.hpp>
#include <cohort/gpu/excuse.hpp>
#include <cohort/gpu/ipc_event.hpp>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/gpu/stream.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort::detail {

/// An excuse, and what kind of error it is.
struct ipc_excuse : excuse {
  errc kind{};

  void cannot(const error& e) noexcept {
    kind = e.condition();
    excuse::cannot(e.what());
  }
};

struct ipc_introduction : ipc_excuse {
  std::array<unsigned char, 16> uuid{};  ///< of the device
  std::array<event_offer, 2> events{};
};
static_assert(std::is_trivially_copyable_v<ipc_introduction>);

/// "connect_ipc on rank 1 of 4: ..."
[[nodiscard]] inline error ipc_error(errc kind, const char* operation, int rank, std::size_t ranks, int culprit,
                                     const std::string& text) {
  error_details d;
  d.rank = rank;
  d.peer = culprit;
  d.operation = operation;
  return {kind,
          std::string(operation) + " on rank " + std::to_string(rank) + " of " + std::to_string(ranks) + ": " + text,
          std::move(d)};
}

/// Throws the first excuse, on every rank alike.
template <class Excuse>
void check_excuses(std::span<const Excuse> all, const char* operation, int rank) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    if (all[r].reason().empty()) continue;
    throw ipc_error(all[r].kind, operation, rank, all.size(), static_cast<int>(r),
                    "rank " + std::to_string(r) + " cannot: " + std::string(all[r].reason()));
  }
}

/// Refuses what cannot work, on every rank alike.
///
/// Errors: that of the first rank that cannot take part; invalid_argument naming two ranks on different GPUs, or too many
inline void check_meeting(std::span<const ipc_introduction> all, int rank) {
  constexpr const char* operation = "connect_ipc";
  constexpr std::size_t most = fold_sources<float>::most_listed;
  if (all.size() > most) {
    throw ipc_error(errc::invalid_argument, operation, rank, all.size(), -1,
                    "expected at most " + std::to_string(most) + " ranks on one GPU");
  }
  check_excuses(all, operation, rank);
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r].uuid == all[0].uuid) continue;
    throw ipc_error(errc::invalid_argument, operation, rank, all.size(), static_cast<int>(r),
                    "ranks 0 and " + std::to_string(r) +
                        " are on different GPUs, and these calls are for ranks that share one: choose it by "
                        "ipc_options::on_device, or use connect<nccl> with a GPU for each rank");
  }
}

/// The stream of a rank, its events, and those of the others. Kept by ipc_ranks and by what it gives.
class ipc_state final : public device_party {
 public:
  ipc_state(int rank, int size, std::chrono::nanoseconds timeout, std::string name)
      : rank_(rank), size_(size), timeout_(timeout), name_(std::move(name)) {}
  ~ipc_state() override {
    if (left) return;
    for (ipc_event& e : own_) e.abandon();
  }

  /// Everything that this rank needs of the device, and what it says of itself. What fails is said there.
  [[nodiscard]] ipc_introduction begin(const std::optional<device>& chosen) noexcept {
    ipc_introduction mine;
    try {
      const device d = chosen ? *chosen : current_device();
      device_ = d.index;
      const device_scope here(d);
      int able = 0;
      check_cuda(cudaDeviceGetAttribute(&able, cudaDevAttrIpcEventSupport, device_), "cudaDeviceGetAttribute");
      if (able == 0) {
        throw error(errc::bad_environment,
                    "device " + std::to_string(device_) +
                        " has no events between processes: use host_staging over the same ranks");
      }
      cudaDeviceProp properties{};
      check_cuda(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
      static_assert(sizeof properties.uuid == sizeof mine.uuid);
      std::memcpy(mine.uuid.data(), &properties.uuid, mine.uuid.size());
      stream_.emplace();
      for (std::size_t k = 0; k < own_.size(); ++k) {
        own_[k] = ipc_event::make();
        mine.events[k] = own_[k].offer();
      }
    } catch (const error& e) {
      mine.cannot(e);
    }
    return mine;
  }
  [[nodiscard]] ipc_excuse open_events(std::span<const ipc_introduction> all) noexcept {
    ipc_excuse mine;
    try {
      const device_scope here(device{device_});
      for (std::size_t k = 0; k < own_.size(); ++k) {
        for (std::size_t r = 0; r < all.size(); ++r) {
          if (static_cast<int>(r) != rank_) others_[k].push_back(ipc_event::open(all[r].events[k]));
        }
      }
    } catch (const error& e) {
      mine.cannot(e);
    }
    return mine;
  }

  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int size() const noexcept { return size_; }
  [[nodiscard]] cudaStream_t stream() const noexcept { return stream_->get(); }
  [[nodiscard]] std::chrono::nanoseconds timeout() const noexcept { return timeout_; }

  /// The first half of a barrier: this rank's place in its stream. The others wait for it when they know of it, which a
  /// message of the host tells them: a wait takes the last record that was issued before it.
  void arrive() {
    const device_scope here(device{device_});
    // Two events take turns, so that a wait takes the record of its own barrier and not a later one, which comes after
    // work that nobody here needs: when one is recorded again, everybody has been through the barrier of the other, and
    // so has issued all waits for this one.
    turn_ = 1 - turn_;
    own_[turn_].record(stream());
  }
  /// The second half: this rank's stream waits for the places of all others.
  void hold_back() const {
    const device_scope here(device{device_});
    for (const ipc_event& e : others_[turn_]) e.hold_back(stream());
  }
  /// Lets go of the others' events.
  void close() noexcept {
    for (auto& each : others_) each.clear();
  }
  bool left = false;  ///< nobody waits for this rank's events any more

  // --- device_party
  [[nodiscard]] std::exception_ptr failure() noexcept override { return nullptr; }
  [[nodiscard]] bool begin_abort(std::exception_ptr) noexcept override {
    return true;
  }  // what is enqueued ends by itself
  void finish_abort() noexcept override {}
  [[nodiscard]] poller& watch() override {
    if (!poller_) poller_ = std::make_shared<poller>(device_);
    return *poller_;
  }
  [[nodiscard]] event_pool& events() noexcept override { return events_; }
  [[nodiscard]] where_on_device where(const char* operation) const noexcept override {
    return {rank_, size_, device_, operation, &name_};
  }
  [[nodiscard]] std::chrono::nanoseconds default_timeout() const noexcept override { return timeout_; }

 private:
  int rank_;
  int size_;
  int device_ = -1;
  std::chrono::nanoseconds timeout_;
  std::string name_;
  std::optional<cohort::stream> stream_{};
  std::array<ipc_event, 2> own_{};
  std::array<std::vector<ipc_event>, 2> others_{};
  std::size_t turn_ = 0;
  std::shared_ptr<poller> poller_{};
  event_pool events_{};
};

}  // namespace cohort::detail
