// SPDX-License-Identifier: BSL-1.0
// What `register_memory` gives: a buffer is within reach of the other ranks of this host as long as it lives.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/transport/sharing_engine.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cohort {

namespace transport {
class shared_segment;
}

/// Keeps a buffer registered.
///
/// Lifetime: destroy it when no operation uses the buffer, on this rank or another, and before the buffer. It may
///           outlive its communicator
class [[nodiscard("a buffer is registered as long as this object lives")]] registration {
 public:
  registration() = default;
  registration(registration && other) noexcept
      : engine_(std::move(other.engine_)),
        regions_(std::exchange(other.regions_, nullptr)),
        number_(std::exchange(other.number_, 0)),
        to_(std::move(other.to_)) {}
  registration& operator=(registration&& other) noexcept {
    std::swap(engine_, other.engine_);
    std::swap(regions_, other.regions_);
    std::swap(number_, other.number_);
    std::swap(to_, other.to_);
    return *this;
  }
  ~registration();

  /// Whether other ranks can reach the buffer; false where there is no shared memory.
  [[nodiscard]] bool active() const noexcept { return regions_ != nullptr; }

  /// For communicators: within reach of all ranks of this host, as a buffer may be used on any communicator.
  ///
  /// Needs:  `engine` shares memory
  /// Result: inactive for a buffer that has no page for itself
  [[nodiscard]] static registration of_pages(std::shared_ptr<transport::sharing_engine> engine, std::byte * data,
                                             std::size_t bytes);
  [[nodiscard]] static registration of_segment(std::shared_ptr<transport::sharing_engine> engine,
                                               transport::shared_segment & memory);

 private:
  registration(std::shared_ptr<transport::engine> engine, transport::regions & all, std::uint64_t number,
               std::vector<int> to) noexcept
      : engine_(std::move(engine)), regions_(&all), number_(number), to_(std::move(to)) {}

  std::shared_ptr<transport::engine> engine_{};  // keeps regions_
  transport::regions* regions_ = nullptr;
  std::uint64_t number_ = 0;
  std::vector<int> to_{};
};

}  // namespace cohort

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/registration.hpp>
#endif
