// SPDX-License-Identifier: BSL-1.0
// The blocks of a buffer that belong to the ranks: of one size, by counts, or a list of buffers. And the movement of such
// blocks by NCCL's messages, for what NCCL has no collective for. Used by moves.hpp.
#pragma once

#include <cohort/element.hpp>
#include <cohort/gpu/device_span.hpp>
#include <cohort/memory.hpp>
#include <cohort/nccl/front.hpp>

#include <concepts>
#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>
#include <vector>

namespace cohort {

/// A range of device buffers, one for each rank.
template <class B>
concept device_list = range_like<B> && std::ranges::forward_range<B> &&
    device_range<std::remove_reference_t<std::ranges::range_reference_t<B>>>;

/// A number of elements for each rank: any range of integers.
template <class C>
concept device_counts = range_like<C> && std::integral<std::remove_cvref_t<std::ranges::range_reference_t<const C>>>;

namespace detail {

/// The element type of a buffer and of a list of buffers.
template <class Buffer, class List>
[[nodiscard]] constexpr auto checked_device_list() noexcept {
  using Each = std::remove_reference_t<std::ranges::range_reference_t<std::remove_reference_t<List>>>;
  check_device_buffer<Buffer>();
  if constexpr (device_range<std::remove_reference_t<Buffer>>) {
    static_assert(std::is_same_v<device_element_t<Buffer>, device_element_t<Each>>,
                  "cohort: a buffer and the buffers of the list have different element types: elements travel as they "
                  "are, so convert on one side before the call");
  }
  return std::type_identity<device_element_t<Each>>{};
}
template <class Buffer, class List>
using checked_list_element = typename decltype(checked_device_list<Buffer, List>())::type;

/// Refuses the forms of the other backends that return what they receive.
template <class Buffer>
constexpr bool refuse_returned_values() noexcept {
  check_device_buffer<Buffer>();
  static_assert(
      always_false<Buffer>,
      "cohort: this form returns values in the memory of the host, which NCCL does not fill: give a device buffer "
      "for the result, all_gather(in, out), or make the call on the communicator of the host that this one was "
      "made of");
  return true;
}
template <class Buffer>
constexpr bool refuse_unknown_counts() noexcept {
  check_device_buffer<Buffer>();
  static_assert(
      always_false<Buffer>,
      "cohort: this form asks the other ranks for their counts, which NCCL has no way to: pass them, "
      "all_gather_v(in, out, counts); where they are not known, all_gather them before, on the communicator of "
      "the host that this one was made of");
  return true;
}

/// What a caller means as a buffer, right or wrong.
template <class B>
concept meant_as_buffer = device_range<std::remove_reference_t<B>> || range_like<std::remove_reference_t<B>>;

template <class T>
using device_blocks = std::vector<device_span<T>>;

/// Block r of `all` has counts[r] elements.
///
/// Errors: invalid_argument: as many counts as ranks, none below zero, and together the size of `all`
template <class T, device_counts Counts>
[[nodiscard]] device_blocks<T> blocks_by_counts(const nccl_front& calls, const char* operation, const char* name,
                                                const char* counts_name, device_span<T> all, const Counts& counts) {
  device_blocks<T> blocks;
  std::size_t at = 0;
  for (const auto c : counts) {
    if constexpr (std::is_signed_v<std::remove_cvref_t<decltype(c)>>) {
      if (c < 0) {
        calls.refuse(operation, std::string(counts_name) + "[" + std::to_string(blocks.size()) + "] is " +
                                    std::to_string(c) + ": expected 0 or more");
      }
    }
    const auto n = static_cast<std::size_t>(c);
    if (n > all.size() - at) {
      calls.refuse(operation, std::string(counts_name) + " add up to more than the " + std::to_string(all.size()) +
                                  " elements of " + name + ": expected their sum");
    }
    blocks.push_back(all.subspan(at, n));
    at += n;
  }
  if (blocks.size() != static_cast<std::size_t>(calls.size())) {
    calls.refuse(operation, std::string(counts_name) + " has " + std::to_string(blocks.size()) + " entries, expected " +
                                std::to_string(calls.size()) + ", one for each rank");
  }
  calls.check_count(operation, name, all.size(), at, "the sum of the counts");
  return blocks;
}

/// The buffers of a list.
template <class T, class List>
[[nodiscard]] device_blocks<T> blocks_of_list(const nccl_front& calls, const char* operation, const char* name,
                                              List& list) {
  device_blocks<T> blocks;
  for (auto& each : list) {
    device_span<T> view = view_on_device(each);
    calls.check_memory(operation, name, view);
    blocks.push_back(view);
  }
  if (blocks.size() != static_cast<std::size_t>(calls.size())) {
    calls.refuse(operation, std::string(name) + " has " + std::to_string(blocks.size()) + " buffers, expected " +
                                std::to_string(calls.size()) + ", one for each rank");
  }
  return blocks;
}

/// Messages of bytes within a group.
inline void send_bytes(nccl_party& p, const char* operation, const void* data, std::size_t bytes, int peer,
                       cudaStream_t s) {
  if (bytes > 0) p.check(ncclSend(data, bytes, nccl_bytes::type, peer, p.comm(), s), "ncclSend", operation);
}
inline void receive_bytes(nccl_party& p, const char* operation, void* data, std::size_t bytes, int peer,
                          cudaStream_t s) {
  if (bytes > 0) p.check(ncclRecv(data, bytes, nccl_bytes::type, peer, p.comm(), s), "ncclRecv", operation);
}

/// A rank's own block, to where it belongs. Within a group of NCCL's nothing else may be enqueued: there it is a message.
inline void move_own(nccl_party& p, const char* operation, const void* from, void* to, std::size_t bytes,
                     cudaStream_t s) {
  if (bytes == 0 || from == to) return;
  if (in_open_group() && p.size() > 1) {
    send_bytes(p, operation, from, bytes, p.rank(), s);
    receive_bytes(p, operation, to, bytes, p.rank(), s);
  } else {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, s), "cudaMemcpyAsync");
  }
}

/// Everybody's block to everybody: from[r] goes to rank r, and rank r's comes to to[r]. An empty block needs no message,
/// and both sides know which are empty.
template <class T>
void exchange_blocks(nccl_party& p, const char* operation, const device_blocks<const T>& from,
                     const device_blocks<T>& to, cudaStream_t s) {
  const auto own = static_cast<std::size_t>(p.rank());
  move_own(p, operation, from[own].data(), to[own].data(), from[own].size_bytes(), s);
  if (p.size() == 1) return;
  in_nccl_group(p, operation, [&] {
    for (int r = 0; r < p.size(); ++r) {
      if (r == p.rank()) continue;
      const auto i = static_cast<std::size_t>(r);
      send_bytes(p, operation, from[i].data(), from[i].size_bytes(), r, s);
      receive_bytes(p, operation, to[i].data(), to[i].size_bytes(), r, s);
    }
  });
}

/// Every rank's block to the root.
template <class T>
void gather_blocks(nccl_party& p, const char* operation, device_span<const T> own, const device_blocks<T>& to, int root,
                   cudaStream_t s) {
  if (p.rank() == root) {
    move_own(p, operation, own.data(), to[static_cast<std::size_t>(root)].data(), own.size_bytes(), s);
  }
  if (p.size() == 1) return;
  in_nccl_group(p, operation, [&] {
    if (p.rank() != root) return send_bytes(p, operation, own.data(), own.size_bytes(), root, s);
    for (int r = 0; r < p.size(); ++r) {
      const device_span<T> block = to[static_cast<std::size_t>(r)];
      if (r != root) receive_bytes(p, operation, block.data(), block.size_bytes(), r, s);
    }
  });
}

/// The root's blocks to their ranks.
template <class T>
void scatter_blocks(nccl_party& p, const char* operation, const device_blocks<const T>& from, device_span<T> own,
                    int root, cudaStream_t s) {
  if (p.rank() == root) {
    move_own(p, operation, from[static_cast<std::size_t>(root)].data(), own.data(), own.size_bytes(), s);
  }
  if (p.size() == 1) return;
  in_nccl_group(p, operation, [&] {
    if (p.rank() != root) return receive_bytes(p, operation, own.data(), own.size_bytes(), root, s);
    for (int r = 0; r < p.size(); ++r) {
      const device_span<const T> block = from[static_cast<std::size_t>(r)];
      if (r != root) send_bytes(p, operation, block.data(), block.size_bytes(), r, s);
    }
  });
}

}  // namespace detail
}  // namespace cohort
