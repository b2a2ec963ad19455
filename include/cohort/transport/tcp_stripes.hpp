// SPDX-License-Identifier: BSL-1.0
// Over how many connections a long message between two ranks goes: what the user says, or as many as a fast link needs,
// since one flow is limited by one core, and by what clouds let one flow have. Beside tcp_congestion.hpp.
#pragma once

#include <cohort/error.hpp>
#include <cohort/transport/stripes.hpp>

#include <boost/asio/ip/address.hpp>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

namespace cohort::transport {

/// A peer that opens more than so many is refused.
inline constexpr int most_stripes = 32;
/// What the speed of a link alone asks for.
inline constexpr int most_stripes_unasked = 8;

/// Errors: invalid_argument; 0 stands for what the link needs
inline void require_stripes(int number) {
  if (number >= 0 && number <= most_stripes) return;
  throw error(errc::invalid_argument, "stripes: " + std::to_string(number) + ": expected 1 to " +
                                          std::to_string(most_stripes) + ", or 0 for what the link needs");
}

/// One for each 5 Gb/s that have begun; one where the speed is not known.
[[nodiscard]] constexpr int stripes_for(long megabits) noexcept {
  constexpr long of_one = 5000;
  if (megabits <= of_one) return 1;
  return static_cast<int>(std::min<long>((megabits - 1) / of_one + 1, most_stripes_unasked));
}

/// Result: Mb/s, as the driver of this address's interface says; -1 where it does not, or none has the address
[[nodiscard]] inline long link_speed_of(const boost::asio::ip::address& own) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return -1;
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> all(list, &::freeifaddrs);
  for (const ifaddrs* i = all.get(); i != nullptr; i = i->ifa_next) {
    if (i->ifa_addr == nullptr) continue;
    bool same = false;
    if (own.is_v4() && i->ifa_addr->sa_family == AF_INET) {
      sockaddr_in a{};
      std::memcpy(&a, i->ifa_addr, sizeof a);
      same = own.to_v4().to_uint() == ntohl(a.sin_addr.s_addr);
    } else if (own.is_v6() && i->ifa_addr->sa_family == AF_INET6) {
      sockaddr_in6 a{};
      std::memcpy(&a, i->ifa_addr, sizeof a);
      const auto bytes = own.to_v6().to_bytes();
      same = std::memcmp(bytes.data(), &a.sin6_addr, bytes.size()) == 0;
    }
    if (!same) continue;
    long speed = -1;
    std::ifstream file("/sys/class/net/" + std::string(i->ifa_name) + "/speed");
    return file >> speed ? speed : -1;
  }
  return -1;
}

}  // namespace cohort::transport
