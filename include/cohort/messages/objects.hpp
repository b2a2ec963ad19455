// SPDX-License-Identifier: BSL-1.0
// The bodies of the object functions: an object becomes bytes at the call, travels as they do, and becomes an object
// again on arrival. Called by communicator/objects.hpp.
#pragma once

#include <cohort/codec.hpp>
#include <cohort/collective/broadcast.hpp>
#include <cohort/collective/negotiate.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/messages/transfer.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cohort::messages {

using object_bytes = std::vector<std::byte>;
using cohort::detail::object_byte;

template <class... Ts>
[[nodiscard]] object_bytes encoded(const codec_limits& limits, const Ts&... objects) {
  object_bytes bytes;
  encode_objects(bytes, limits, objects...);
  return bytes;
}

/// Bytes that were received become objects: what goes wrong now concerns this rank alone.
template <class... Ts>
[[nodiscard]] decoded_objects_t<Ts...> decoded(call& c, std::span<const std::byte> bytes, const codec_limits& limits) {
  c.set_alone();
  try {
    return decode_objects<Ts...>(bytes, limits);
  } catch (const error& e) {
    throw c.explained(e.condition(), e.what());
  }
}

/// Errors: limit_exceeded, on every rank
void check_size(const call& c, int rank, std::uint64_t bytes, const codec_limits& limits);

template <transport::message_transport Transport, class... Ts>
operation<decoded_objects_t<Ts...>> receive_objects([[maybe_unused]] cohort::detail::ticket t, end what,
                                                    codec_limits limits) {
  call& c = co_await collective::current_call{};
  object_bytes bytes;
  what.room = cohort::detail::growing_room::of(growing(bytes, limits.bytes));
  auto came = receive_within<Transport>(c, what);
  co_await came;
  co_return decoded<Ts...>(c, bytes, limits);
}

template <transport::message_transport Transport, class... Ts>
operation<decoded_objects_t<Ts...>> broadcast_objects([[maybe_unused]] cohort::detail::ticket t, object_bytes bytes,
                                                      codec_limits limits) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  const int root = c.signature().root;
  std::uint64_t size = bytes.size();
  co_await collective::broadcast_by(ch, collective::algorithm::binomial, root, collective::bytes_of(&size), 1,
                                    sizeof size);
  check_size(c, root, size, limits);
  bytes.resize(static_cast<std::size_t>(size));
  const auto how =
      c.home().selection.choose(operation_kind::broadcast, bytes.size(), ch.size(), true, {false, false, false, false});
  co_await collective::broadcast_by(ch, how, root, bytes.data(), bytes.size(), 1);
  co_return decoded<Ts...>(c, bytes, limits);
}

/// The objects of a ragged list of bytes, one of each rank.
template <class T>
[[nodiscard]] std::vector<T> decoded_list(call& c, const ragged<object_byte>& all, const codec_limits& limits) {
  std::vector<T> objects;
  objects.reserve(static_cast<std::size_t>(all.size()));
  for (int r = 0; r < all.size(); ++r) objects.push_back(decoded<T>(c, std::as_bytes(all[r]), limits));
  return objects;
}

[[nodiscard]] inline const object_byte* as_object(const object_bytes& bytes) noexcept {
  return reinterpret_cast<const object_byte*>(bytes.data());
}

template <transport::message_transport Transport, class T>
operation<std::vector<T>> gather_objects([[maybe_unused]] cohort::detail::ticket t, object_bytes bytes,
                                         codec_limits limits) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  auto gathered = collective::gather_ragged<object_byte>(ch, c.signature().root, as_object(bytes), bytes.size());
  const ragged<object_byte> all = co_await gathered;
  co_return decoded_list<T>(c, all, limits);
}

template <transport::message_transport Transport, class T>
operation<std::vector<T>> all_gather_objects([[maybe_unused]] cohort::detail::ticket t, object_bytes bytes,
                                             codec_limits limits) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  auto gathered =
      collective::all_gather_ragged<object_byte>(ch, collective::algorithm::circulant, as_object(bytes), bytes.size());
  const ragged<object_byte> all = co_await gathered;
  co_return decoded_list<T>(c, all, limits);
}

/// `bytes` has the objects of all ranks on the root, one after the other; `sizes` says how many bytes each has.
template <transport::message_transport Transport, class T>
operation<T> scatter_objects([[maybe_unused]] cohort::detail::ticket t, object_bytes bytes,
                             collective::detail::short_vector<std::uint64_t> sizes, codec_limits limits) {
  call& c = co_await collective::current_call{};
  const transport::channel<Transport> ch(c);
  auto mine = collective::scatter_ragged<object_byte>(ch, c.signature().root, as_object(bytes), std::move(sizes));
  const std::vector<object_byte> own = co_await mine;
  co_return decoded<T>(c, std::as_bytes(std::span(own)), limits);
}

}  // namespace cohort::messages

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/messages/impl/objects.hpp>
#endif
