// SPDX-License-Identifier: BSL-1.0
// Memory that the other ranks of this host can reach: register_memory and shared_vector. A base of
// communicator<Backend>; on a backend or in a group without shared memory they do nothing but hold what they are given.
#pragma once

#include <cohort/collective/shared/open.hpp>
#include <cohort/communicator/front.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cohort {

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
  ~registration() {
    if (regions_ == nullptr) return;
    try {
      regions_->remove(number_, to_);
    } catch (const std::exception&) {
      // The others keep a mapping that nobody names again.
      return;
    }
  }

  /// Whether other ranks can reach the buffer; false where there is no shared memory.
  [[nodiscard]] bool active() const noexcept { return regions_ != nullptr; }

  /// For communicators.
  registration(std::shared_ptr<transport::engine> engine, transport::regions & all, std::uint64_t number,
               std::vector<int> to) noexcept
      : engine_(std::move(engine)), regions_(&all), number_(number), to_(std::move(to)) {}

 private:
  std::shared_ptr<transport::engine> engine_{};  // keeps regions_
  transport::regions* regions_ = nullptr;
  std::uint64_t number_ = 0;
  std::vector<int> to_{};
};

/// Elements in memory that the ranks of a communicator share where they can.
///
/// Needs:    trivially copyable elements; they begin as zero bytes
/// Lifetime: as `registration`
template <element T>
class shared_vector {
 public:
  shared_vector() = default;
  shared_vector(shared_vector&&) noexcept = default;
  shared_vector& operator=(shared_vector&&) noexcept = default;
  ~shared_vector() = default;

  [[nodiscard]] T* data() noexcept { return data_; }
  [[nodiscard]] const T* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] T* begin() noexcept { return data_; }
  [[nodiscard]] T* end() noexcept { return data_ + size_; }
  [[nodiscard]] const T* begin() const noexcept { return data_; }
  [[nodiscard]] const T* end() const noexcept { return data_ + size_; }
  [[nodiscard]] T& operator[](std::size_t i) noexcept { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return data_[i]; }
  [[nodiscard]] bool active() const noexcept { return registered_.active(); }

  /// For communicators.
  shared_vector(transport::shared_segment memory, registration registered, std::size_t count) noexcept
      : memory_(std::move(memory)),
        registered_(std::move(registered)),
        data_(reinterpret_cast<T*>(memory_.data())),
        size_(count) {}

 private:
  transport::shared_segment memory_{};
  registration registered_{};
  T* data_ = nullptr;
  std::size_t size_ = 0;
};

namespace detail {

template <class Communicator, backend Backend>
class memory_calls {
 public:
  /// Lets the other ranks of this host read and write a buffer where it is, so that collectives on long vectors copy
  /// nothing.
  ///
  /// Result:   an object that keeps it registered; inactive, and without effect, where the ranks share no memory, and
  ///           for a buffer that has no page for itself
  /// Needs:    no other thread touches the buffer during the call. A child that this process forks shares the buffer
  ///           too, rather than have a copy
  /// Errors:   errc::invalid_argument (no elements, or registered already), out_of_memory, io_error; the buffer is as
  ///           before then
  /// Lifetime: the memory stays shared until it is unmapped; see `registration`
  /// Cost:     about a microsecond for each 4 KiB, once
  template <range_like Buffer>
  registration register_memory(Buffer&& buffer) const {
    check_output<Buffer>();
    const auto elements = view(buffer);
    if (elements.empty()) {
      throw error(errc::invalid_argument, "register_memory: the buffer has no elements: expected at least one");
    }
    if constexpr (collective::sharing_transport<typename Backend::transport_type>) {
      if (transport::regions* const all = shared()) {
        std::vector<int> to = others();
        auto* const data = reinterpret_cast<std::byte*>(elements.data());
        const std::uint64_t number = all->promote(data, elements.size_bytes(), to);
        if (number == 0) return {};
        return registration(state().shared_engine(), *all, number, std::move(to));
      }
    }
    return {};
  }

  /// A buffer of `count` elements that is registered from the beginning.
  ///
  /// Errors: errc::invalid_argument (no elements), out_of_memory, io_error
  template <element T>
  shared_vector<T> make_shared_vector(std::size_t count) const {
    if (count == 0 || count > std::size_t{1} << 48) {
      throw error(errc::invalid_argument, "make_shared_vector: " + std::to_string(count) +
                                              " elements: expected at least one, and no more than memory has room for");
    }
    transport::shared_segment memory = transport::shared_segment::create(count * sizeof(T));
    registration registered;
    if constexpr (collective::sharing_transport<typename Backend::transport_type>) {
      if (transport::regions* const all = shared()) {
        std::vector<int> to = others();
        const std::uint64_t number = all->add(memory, to);
        registered = registration(state().shared_engine(), *all, number, std::move(to));
      }
    }
    memory.close_descriptor();
    return shared_vector<T>(std::move(memory), std::move(registered), count);
  }

 private:
  [[nodiscard]] const group& state() const { return *static_cast<const Communicator&>(*this).calls().state(); }
  [[nodiscard]] transport::regions* shared() const {
    if (state().window == nullptr) return nullptr;
    return static_cast<typename Backend::transport_type&>(state().engine()).shared_buffers();
  }
  // All of this host: a buffer may be used on any communicator.
  [[nodiscard]] std::vector<int> others() const {
    return static_cast<typename Backend::transport_type&>(state().engine()).host_ranks()->sharing();
  }
};

}  // namespace detail
}  // namespace cohort
