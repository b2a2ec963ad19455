// SPDX-License-Identifier: BSL-1.0
// Memory of a device in the hands of a transport: which transports move it themselves, and how they copy what they must
// copy. Known to gpu/staging.hpp, which stages for all others; includes nothing of a device.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <functional>
#include <vector>

namespace cohort::transport {

/// Bytes that the host cannot read, with what copies them: either side may lie on the host.
struct device_range {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  void (*copy)(void* to, const void* from, std::size_t bytes) = nullptr;

  [[nodiscard]] bool holds(const void* place) const noexcept {
    const std::less<const void*> before;  // pointers into different objects
    return !before(place, data) && before(place, data + bytes);
  }
};

/// What is lent to a transport while calls use it.
class device_ranges {
 public:
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  void add(const device_range& r) { all_.push_back(r); }
  void remove(const device_range& r) noexcept {
    const auto at = std::find_if(all_.begin(), all_.end(), [&r](const device_range& each) {
      return each.data == r.data && each.bytes == r.bytes;
    });
    if (at != all_.end()) all_.erase(at);
  }
  /// As memcpy, where one side or both may be among these.
  void copy(void* to, const void* from, std::size_t bytes) const {
    for (const device_range& r : all_) {
      if (r.holds(to) || r.holds(from)) return r.copy(to, from, bytes);
    }
    std::memcpy(to, from, bytes);
  }

 private:
  std::vector<device_range> all_{};
};

/// A transport whose messages may begin and end in memory of a device, if it says so.
template <class T>
concept moves_device_memory = requires(T& t, const device_range& r) {
  { t.takes_device_memory() } -> std::same_as<bool>;
  t.device_memory().add(r);
  t.device_memory().remove(r);
};

}  // namespace cohort::transport
