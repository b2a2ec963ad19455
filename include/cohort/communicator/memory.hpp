// SPDX-License-Identifier: BSL-1.0
// Calls that make memory reachable for the other ranks of this host. A base of communicator<Backend>; on a backend or
// in a group without shared memory they do nothing but hold what they are given.
#pragma once

#include <cohort/collective/window.hpp>
#include <cohort/communicator/front.hpp>
#include <cohort/registration.hpp>
#include <cohort/shared_vector.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

namespace cohort {

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
  /// Lifetime: the memory stays shared until it is unmapped; see `registration`. Where an operation that uses it where it
  ///           is ends with an error, it is this rank's alone from then on, and combined as if it had not been registered:
  ///           all pages that the operation's buffers have for themselves, and so not quite all of a part of it
  /// Cost:     about a microsecond for each 4 KiB, once
  template <range_like Buffer>
  registration register_memory(Buffer&& buffer) const {
    check_output<Buffer>();
    const auto elements = view(buffer);
    if (elements.empty()) {
      throw error(errc::invalid_argument, "register_memory: the buffer has no elements: expected at least one");
    }
    if constexpr (transport::sharing_transport<typename Backend::transport_type>) {
      if (auto engine = shared()) {
        auto* const data = reinterpret_cast<std::byte*>(elements.data());
        return registration::of_pages(std::move(engine), data, elements.size_bytes());
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
    if constexpr (transport::sharing_transport<typename Backend::transport_type>) {
      if (auto engine = shared()) registered = registration::of_segment(std::move(engine), memory);
    }
    memory.close_descriptor();
    return shared_vector<T>(std::move(memory), std::move(registered), count);
  }

 private:
  [[nodiscard]] const group& state() const { return *static_cast<const Communicator&>(*this).calls().state(); }
  // Null where this rank shares no memory with the others.
  [[nodiscard]] std::shared_ptr<transport::sharing_engine> shared() const {
    auto engine = std::static_pointer_cast<typename Backend::transport_type>(state().shared_engine());
    if (state().window == nullptr || engine->shared_buffers() == nullptr) return nullptr;
    return engine;
  }
};

}  // namespace detail
}  // namespace cohort
