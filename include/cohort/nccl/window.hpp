// SPDX-License-Identifier: BSL-1.0
// Memory that NCCL has made known to all ranks: it is reduced and moved without copies, and by the switches and copy
// engines where there are any. Made by communicator<nccl>::make_window.
#pragma once

#include <cohort/element.hpp>
#include <cohort/gpu/device.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/nccl/front.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace cohort {
namespace detail {

/// Refuses to go on with memory that NCCL has not registered. `p` is null for a window without memory.
///
/// Errors: invalid_argument
inline void require_registered(const nccl_party* p, bool is_registered, std::size_t elements) {
  constexpr const char* name = "native_window";
  if (p == nullptr) {
    error_details d;
    d.operation = name;
    throw error(errc::invalid_argument,
                std::string(name) +
                    ": this window has no memory: it was moved from, or not made by world.make_window<T>(count)",
                std::move(d));
  }
  if (is_registered) return;
  p->refuse(errc::invalid_argument, name,
            "an unregistered window of " + std::to_string(elements) +
                " elements, expected one that NCCL has registered with all ranks" +
                (p->size() == 1 ? ": in a world of one there is nobody to register it with; ask registered() first"
                                : ": ask registered() first, or make it anew by make_window"));
}

}  // namespace detail

/// Elements in device memory that is registered with a communicator.
///
/// Lifetime: keeps what it needs of the communicator; its end is a collective call like its making, in the same order on
///           every rank, and waits for the work that is in flight
template <element T>
class nccl_window {
 public:
  /// Without memory.
  nccl_window() = default;
  nccl_window(nccl_window&& other) noexcept
      : party_(std::move(other.party_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        window_(std::exchange(other.window_, nullptr)) {}
  nccl_window& operator=(nccl_window&& other) noexcept {
    std::swap(party_, other.party_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(window_, other.window_);
    return *this;
  }
  ~nccl_window() {
    if (data_ == nullptr) return;
    if (window_ != nullptr) deregister();
    static_cast<void>(ncclMemFree(data_));
  }

  [[nodiscard]] T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] device_span<T> device_view() const noexcept { return {data_, size_}; }
  /// Whether NCCL took it; it is ordinary device memory else, and every call works on it all the same.
  [[nodiscard]] bool registered() const noexcept { return window_ != nullptr; }

  /// NCCL's own window, for kernels that reach the other ranks through it (nccl_device.h).
  ///
  /// Errors: invalid_argument for a window that is not registered, or has no memory
  [[nodiscard]] ncclWindow_t native_window() const {
    detail::require_registered(party_.get(), window_ != nullptr, size_);
    return window_;
  }

  /// For the communicator.
  nccl_window(std::shared_ptr<detail::nccl_party> party, std::size_t count) : party_(std::move(party)), size_(count) {
    constexpr const char* name = "make_window";
    party_->refuse_in_group(name);
    if (count == 0 || count > (std::size_t{1} << 48) / sizeof(T)) {
      party_->refuse(errc::invalid_argument, name,
                     std::to_string(count) + " elements: expected at least one, and no more than memory has room for");
    }
    void* memory = nullptr;
    party_->check(ncclMemAlloc(&memory, count * sizeof(T)), "ncclMemAlloc", name);
    data_ = static_cast<T*>(memory);
    try {
      if (party_->size() > 1) {
        party_->check_made(
            ncclCommWindowRegister(party_->comm(), memory, count * sizeof(T), &window_, NCCL_WIN_COLL_SYMMETRIC),
            window_, "ncclCommWindowRegister", name);
      }
    } catch (...) {
      static_cast<void>(ncclMemFree(std::exchange(data_, nullptr)));
      throw;
    }
  }

 private:
  /// Inside the gate, so that the poller does not free the communicator meanwhile. Where another thread is inside, or the
  /// communicator has failed, the memory goes as it is.
  void deregister() const noexcept {
    if (party_->failed() || !party_->gate().enter()) return;
    if (!party_->failed()) {
      static_cast<void>(party_->handle().follow(ncclCommWindowDeregister(party_->comm(), window_),
                                                detail::nccl_party::clock::now() + party_->timeout.load()));
    }
    party_->gate().leave();
  }

  std::shared_ptr<detail::nccl_party> party_{};
  T* data_ = nullptr;
  std::size_t size_ = 0;
  ncclWindow_t window_ = nullptr;
};

}  // namespace cohort
