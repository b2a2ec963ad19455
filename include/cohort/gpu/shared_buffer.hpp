// SPDX-License-Identifier: BSL-1.0
// shared_buffer<T>: a device buffer of each of several processes on one GPU, by the addresses that they have here. Made by
// ipc_ranks::share.
#pragma once

#include <cohort/element.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/device_party.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/ipc_memory.hpp>
#include <cohort/gpu/peer_schedule.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace cohort {

/// The buffers of all ranks.
///
/// Lifetime: the memory of each stays its owner's, who may free it when every rank has given its shared_buffer back
///           (ipc_ranks::unshare). The end of this object waits for the work on the ranks' stream and closes what this
///           process has open; it keeps what it needs of the ranks
template <element T>
class shared_buffer {
 public:
  shared_buffer(shared_buffer&&) noexcept = default;
  shared_buffer& operator=(shared_buffer&& other) noexcept {
    std::swap(party_, other.party_);
    std::swap(stream_, other.stream_);
    std::swap(opened_, other.opened_);
    std::swap(all_, other.all_);
    return *this;
  }
  ~shared_buffer() {
    if (!party_ || opened_.empty()) return;
    try {
      const device_scope here(device{party_->where("").device});
      // What reads a mapping must be over before the mapping goes.
      static_cast<void>(cudaStreamSynchronize(stream_));
      opened_.clear();
    } catch (const error&) {
      // The device is gone, and its mappings with it.
      return;
    }
  }

  /// Rank r's buffer at [r].
  [[nodiscard]] peer_buffers<T> all() const noexcept { return all_; }
  [[nodiscard]] device_span<T> of_rank(int r) const { return all_.at(static_cast<std::size_t>(r)); }

  /// For ipc_ranks.
  shared_buffer(std::shared_ptr<detail::device_party> party, cudaStream_t s, std::vector<detail::opened_memory> opened,
                std::vector<device_span<T>> all) noexcept
      : party_(std::move(party)), stream_(s), opened_(std::move(opened)), all_(std::move(all)) {}

 private:
  std::shared_ptr<detail::device_party> party_;  // keeps the stream
  cudaStream_t stream_;
  std::vector<detail::opened_memory> opened_;
  std::vector<device_span<T>> all_;
};

}  // namespace cohort
