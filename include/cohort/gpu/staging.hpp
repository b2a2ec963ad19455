// SPDX-License-Identifier: BSL-1.0
// Device buffers over any communicator of the host: copied to pinned memory, given to the call there, and copied back, in
// the order of a stream. For ranks that share a GPU, for machines without NCCL, and for calls that NCCL does not have.
// Messages over a library that moves memory of a device itself, as a CUDA-aware MPI does, are given to it as they are.
#pragma once

#include <cohort/awaitable.hpp>
#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/on_host.hpp>
#include <cohort/task.hpp>
#include <cohort/transport/device_memory.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort {

/// How a staged call uses a device buffer: it is copied to the host before the call, from the host after it, or both.
template <class T>
struct staged_buffer {
  device_span<T> where{};
  bool before = false;
  bool after = false;
};
/// The call reads it.
template <class Buffer>
[[nodiscard]] auto reads(Buffer&& b) {
  detail::check_device_buffer<Buffer>();
  using T = detail::device_element_t<Buffer>;
  const device_span<const T> v = detail::view_on_device(b);
  return staged_buffer<const T>{v, true, false};
}
/// The call writes all of it.
template <class Buffer>
[[nodiscard]] auto writes(Buffer&& b) {
  detail::check_device_output<Buffer>();
  using T = detail::device_element_t<Buffer>;
  return staged_buffer<T>{detail::view_on_device(b), false, true};
}
/// The call reads it and writes it, or a part of it.
template <class Buffer>
[[nodiscard]] auto updates(Buffer&& b) {
  detail::check_device_output<Buffer>();
  using T = detail::device_element_t<Buffer>;
  return staged_buffer<T>{detail::view_on_device(b), true, true};
}

namespace detail {

/// Streams of a device that nobody else answers for, on a rank that it does not know.
class staging_party final : public device_party {
 public:
  explicit staging_party(int device_index) : device_(device_index) {}
  [[nodiscard]] std::exception_ptr failure() noexcept override { return nullptr; }
  [[nodiscard]] bool begin_abort(std::exception_ptr) noexcept override { return true; }  // copies end by themselves
  void finish_abort() noexcept override {}
  [[nodiscard]] poller& watch() override {
    if (!poller_) poller_ = std::make_shared<poller>(device_);
    return *poller_;
  }
  [[nodiscard]] event_pool& events() noexcept override { return events_; }
  [[nodiscard]] where_on_device where(const char* operation) const noexcept override {
    return {-1, 0, device_, operation, nullptr};
  }
  [[nodiscard]] std::chrono::nanoseconds default_timeout() const noexcept override { return std::chrono::minutes{5}; }

 private:
  int device_;
  std::shared_ptr<poller> poller_{};
  event_pool events_{};
};

/// Buffers of a device that a transport has in its hands while this lives.
template <transport::moves_device_memory Transport>
class lent_memory {
 public:
  lent_memory(Transport& to, std::vector<transport::device_range> all) : to_(&to), all_(std::move(all)) {
    for (const transport::device_range& r : all_) to_->device_memory().add(r);
  }
  lent_memory(const lent_memory&) = delete;
  lent_memory& operator=(const lent_memory&) = delete;
  ~lent_memory() {
    for (const transport::device_range& r : all_) to_->device_memory().remove(r);
  }

 private:
  Transport* to_;
  std::vector<transport::device_range> all_;
};

/// Done when it returns: cudaMemcpy into the memory of a device comes back before it has come there, and no stream of the
/// user's waits for the default stream.
inline void copy_on_device_or_host(void* to, const void* from, std::size_t bytes) {
  check_cuda(cudaMemcpy(to, from, bytes, cudaMemcpyDefault), "cudaMemcpy of a message");
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaMemcpy of a message");
}

}  // namespace detail

/// Calls of a communicator of the host on buffers of a device.
///
/// Needs:    one thread at a time, and one call at a time: the next when the last has been awaited
/// Lifetime: must outlive the calls that are made through it
/// Cost:     two copies over PCIe, and the host waits for the first; pinned memory is kept from call to call
/// Example:
///   cohort::host_staging gpu;                                                     // of the current device
///   const auto sum_up = [&](auto grad) { return world.all_reduce(grad, sum{}); };
///   co_await gpu.through(cohort::on{stream}, sum_up, cohort::updates(device_grad));
class host_staging {
 public:
  template <class Call, class... T>
  using call_result = await_result_t<std::invoke_result_t<Call&, std::span<T>...>>;

  explicit host_staging(device d = current_device())
      : device_(d), party_(std::make_shared<detail::staging_party>(d.index)) {}

  /// Makes `call` with a std::span of pinned memory in the place of each device buffer, in the same order.
  ///
  /// Result:    the call's
  /// Completes: when the call has been carried out and what it wrote has been copied back; later work of the stream sees it
  /// Errors:    invalid_argument while the stream is captured; those of the call, after which what it writes is unspecified
  /// Lifetime:  the device buffers are borrowed until then; bind `call` to a name, because g++ 12 destroys a temporary
  ///            lambda twice in a co_await expression
  template <class Call, class... T>
  task<call_result<Call, T...>> through(on where, Call call, staged_buffer<T>... buffers) {
    detail::refuse_while_capturing(here(where), "host_staging");
    const std::vector<std::byte*> places = place({buffers.where.size_bytes()...});
    bool waits = false;
    {
      const device_scope current(device_);  // a default stream is one of the device that is current
      std::size_t i = 0;
      ((waits = copy_in(buffers, places[i++], where.stream) || waits), ...);
    }
    if (waits) co_await on_host(here(where));
    auto operation = std::apply(call, spans_of(places, buffers...));
    if constexpr (std::is_void_v<call_result<Call, T...>>) {
      co_await operation;
      copy_back(where.stream, places, buffers...);
      co_await on_host(here(where));  // only then may the pinned memory be used again
    } else {
      call_result<Call, T...> value = co_await operation;
      copy_back(where.stream, places, buffers...);
      co_await on_host(here(where));
      co_return value;
    }
  }

  /// The same for a call of `world` that only sends and receives (send, recv, exchange): where the library beneath moves
  /// memory of a device itself, the call is given the buffers as they are, and nothing is staged. Over mpi that is so if
  /// MPI says so, unless COHORT_MPI_DEVICE=staged or mpi_options::device_memory says otherwise.
  ///
  /// Result, Completes, Errors, Lifetime: as `through`
  /// Needs:     `call` makes one call of `world`, and nothing on the host looks into the buffers
  /// Cost:      direct: the host waits for the stream; messages of at most 16320 bytes are copied by cudaMemcpy
  template <class Communicator, class Call, class... T>
  task<call_result<Call, T...>> messages(on where, const Communicator& world, Call call, staged_buffer<T>... buffers) {
    using transport_type = typename Communicator::backend_type::transport_type;
    if constexpr (transport::moves_device_memory<transport_type>) {
      auto& beneath = static_cast<transport_type&>(world.calls().state()->engine());
      if (beneath.takes_device_memory()) {
        detail::refuse_while_capturing(here(where), "host_staging");
        co_await on_host(here(where));
        const detail::lent_memory<transport_type> lent(beneath, {range_of(buffers)...});
        auto operation = call(std::span<T>(buffers.where.data(), buffers.where.size())...);
        if constexpr (std::is_void_v<call_result<Call, T...>>) {
          co_await operation;
          co_return;
        } else {
          call_result<Call, T...> value = co_await operation;
          co_return value;
        }
      }
    }
    auto staged = through(where, std::move(call), buffers...);
    if constexpr (std::is_void_v<call_result<Call, T...>>) {
      co_await staged;
    } else {
      call_result<Call, T...> value = co_await staged;
      co_return value;
    }
  }

 private:
  template <class T>
  [[nodiscard]] static transport::device_range range_of(const staged_buffer<T>& b) noexcept {
    return {reinterpret_cast<const std::byte*>(b.where.data()), b.where.size_bytes(), &detail::copy_on_device_or_host};
  }
  [[nodiscard]] stream_ordered here(on where) const { return {party_->ticket(), where.stream, "host_staging"}; }

  /// Room for all buffers, each on a cache line of its own.
  [[nodiscard]] std::vector<std::byte*> place(std::initializer_list<std::size_t> sizes) {
    constexpr std::size_t line = 64;
    std::size_t all = 0;
    for (const std::size_t s : sizes) all += (s + line - 1) / line * line;
    if (memory_.size() < all) {
      const device_scope current(device_);
      memory_ = pinned_buffer<std::byte>(all + all / 2);
    }
    std::vector<std::byte*> at;
    std::size_t offset = 0;
    for (const std::size_t s : sizes) {
      at.push_back(memory_.data() + offset);
      offset += (s + line - 1) / line * line;
    }
    return at;
  }

  template <class T>
  [[nodiscard]] static bool copy_in(const staged_buffer<T>& b, std::byte* to, cudaStream_t s) {
    if (!b.before || b.where.empty()) return false;
    detail::check_cuda(cudaMemcpyAsync(to, b.where.data(), b.where.size_bytes(), cudaMemcpyDeviceToHost, s),
                       "cudaMemcpyAsync to the host");
    return true;
  }
  template <class... T>
  [[nodiscard]] static std::tuple<std::span<T>...> spans_of(const std::vector<std::byte*>& places,
                                                            const staged_buffer<T>&... buffers) {
    std::size_t i = 0;
    const auto next = [&] { return places[i++]; };
    // In braces: from left to right.
    return std::tuple<std::span<T>...>{std::span<T>(reinterpret_cast<T*>(next()), buffers.where.size())...};
  }
  template <class... T>
  void copy_back(cudaStream_t s, const std::vector<std::byte*>& places, const staged_buffer<T>&... buffers) const {
    const device_scope current(device_);
    std::size_t i = 0;
    const auto one = [&](const auto& b) {
      const std::byte* const from = places[i++];
      if constexpr (!std::is_const_v<typename std::remove_cvref_t<decltype(b.where)>::element_type>) {
        if (!b.after || b.where.empty()) return;
        detail::check_cuda(cudaMemcpyAsync(b.where.data(), from, b.where.size_bytes(), cudaMemcpyHostToDevice, s),
                           "cudaMemcpyAsync to the device");
      }
    };
    (one(buffers), ...);
  }

  device device_;
  std::shared_ptr<detail::staging_party> party_;
  pinned_buffer<std::byte> memory_{};
};

}  // namespace cohort
