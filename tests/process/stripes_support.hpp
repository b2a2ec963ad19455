// SPDX-License-Identifier: BSL-1.0
// What the tests of several connections for one message share: their environment, the connections of a process that carry
// chunks, and a long message both ways.
#pragma once

#include "fault_support.hpp"

#include <cohort/transport/stripes.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace stripes {

using namespace cohort;

using world_type = communicator<cpu>;

[[nodiscard]] inline harness::variables over_stripes(const char* number) {
  return {{"COHORT_SHM", "0"}, {"COHORT_TCP_STRIPES", number}, {"COHORT_PEER_TIMEOUT", "60"}};
}

[[nodiscard]] inline harness::rank_options options_for(const char* number) {
  harness::rank_options options;
  options.environment = over_stripes(number);
  options.deadline = std::chrono::minutes(2);
  return options;
}

/// A connection of this process that carries chunks, by what it alone is told of the kernel's buffers.
struct carrier {
  int fd;
  std::uint64_t sent;
  std::uint64_t received;
};

[[nodiscard]] inline std::vector<carrier> carriers() {
  std::vector<carrier> found;
  for (int fd = 3; fd < 256; ++fd) {
    sockaddr_storage other{};
    socklen_t length = sizeof other;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&other), &length) != 0) continue;
    std::uint32_t unsent = 0;
    socklen_t size = sizeof unsent;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, &size) != 0 || unsent != transport::longest_chunk)
      continue;
    // tcpi_bytes_acked and tcpi_bytes_received, which the C library's tcp_info lacks.
    std::array<unsigned char, 136> info{};
    size = info.size();
    harness::expect(::getsockopt(fd, IPPROTO_TCP, TCP_INFO, info.data(), &size) == 0 && size == info.size(),
                    "a count of bytes");
    carrier c{fd, 0, 0};
    std::memcpy(&c.sent, info.data() + 120, sizeof c.sent);
    std::memcpy(&c.received, info.data() + 128, sizeof c.received);
    found.push_back(c);
  }
  return found;
}

/// That long messages have gone over so many connections to each peer, or more where the kernel gives each its turn.
inline void expect_carried(std::size_t each, int peers) {
  const std::vector<carrier> all = carriers();
  harness::expect(
      all.size() == each * static_cast<std::size_t>(peers),
      std::to_string(each) + " connections for long messages to each peer, not " + std::to_string(all.size()));
  std::size_t used = 0;
  std::uint64_t bytes = 0;
  for (const carrier& c : all) {
    const std::uint64_t both = c.sent + c.received;
    if (both >= transport::shortest_chunk) ++used;
    bytes += both;
  }
  harness::expect(used >= 2, "chunks on several of them");
  harness::expect(bytes >= transport::shortest_striped, "a message on them");
}

[[nodiscard]] inline std::vector<std::uint32_t> values(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint32_t> v(count);
  std::uint32_t* const at = v.data();  // millions of them, without optimisation
  for (std::size_t i = 0; i < count; ++i) at[i] = (static_cast<std::uint32_t>(i) + seed) * 2654435761U;
  return v;
}

inline task<> exchange_long(world_type& world, std::uint32_t seed) {
  const auto mine = values(2000003, seed + static_cast<std::uint32_t>(world.rank()));
  std::vector<std::uint32_t> theirs(mine.size());
  const int other = 1 - world.rank();
  auto op = world.exchange(mine, to{other}, theirs, from{other});
  co_await op;
  harness::expect(theirs == values(mine.size(), seed + static_cast<std::uint32_t>(other)), "what the other sent");
}

inline void expect_all_well(const std::vector<harness::rank_result>& ranks) {
  INFO(harness::describe(ranks));
  for (const auto& r : ranks) CHECK(r.ok());
}

/// Says what a rank of this job says first, and what comes then. Any connection that is let in stays open.

}  // namespace stripes
