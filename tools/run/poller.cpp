// SPDX-License-Identifier: BSL-1.0
#include "poller.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace cohort::tool {

poller::poller() : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!epoll_) throw_errno("cannot make an epoll");
}

void poller::add(int fd, source kind, int rank, bool for_writing) {
  epoll_event event{};
  event.events = for_writing ? EPOLLOUT : EPOLLIN;
  event.data.u64 = (static_cast<std::uint64_t>(kind) << 32) | static_cast<std::uint32_t>(rank);
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw_errno("cannot watch a descriptor");
}

void poller::remove(int fd) noexcept { ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr); }

std::vector<ready_source> poller::wait(std::optional<std::chrono::steady_clock::time_point> deadline) {
  int milliseconds = -1;
  if (deadline) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - std::chrono::steady_clock::now());
    milliseconds = static_cast<int>(std::clamp<long long>(left.count(), 0, 1000 * 3600));
  }
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), milliseconds);
  if (count < 0 && errno != EINTR) throw_errno("cannot wait for the ranks");
  std::vector<ready_source> ready;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t data = events[static_cast<std::size_t>(i)].data.u64;
    ready.push_back({static_cast<source>(data >> 32), static_cast<int>(data & 0xffffffffU)});
  }
  return ready;
}

}  // namespace cohort::tool
