// SPDX-License-Identifier: BSL-1.0
// Where a rank is to be found by the others of its host, and which ranks these can be.
// The transport of backend cpu makes it when a rank joins; the rendezvous tells it to all others.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/detail/core_set.hpp>

#include <cstdint>
#include <string>

namespace cohort::transport {

/// Where a rank of this host is to be found, as the rendezvous tells.
struct host_address {
  std::string host{};  ///< the same for two processes that may share memory
  std::string mail{};
  std::uint64_t word = 0;
  detail::core_set cores{};  ///< that it may use

  [[nodiscard]] std::string encode() const {
    std::string bytes;
    detail::byte_writer to(bytes);
    to.text(host).text(mail).number(word).text(cores.encode());
    return bytes;
  }
  [[nodiscard]] static host_address decode(detail::byte_reader& from) {
    host_address a;
    a.host = from.text(256);
    a.mail = from.text(100);
    a.word = from.number<std::uint64_t>();
    a.cores = detail::core_set::decode(from.text(detail::core_set::most / 8));
    return a;
  }
};

}  // namespace cohort::transport
