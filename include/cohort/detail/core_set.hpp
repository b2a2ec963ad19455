// SPDX-License-Identifier: BSL-1.0
// The cores that a rank may use, in a form that others can be told. Ranks that a launcher has bound to cores of their own
// are not in each other's way, however many there are. Used by transport/shm/host_address.hpp.
#pragma once

#include <sched.h>

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <string>
#include <string_view>

namespace cohort::detail {

class core_set {
 public:
  /// Those of this thread; none where the kernel does not say.
  [[nodiscard]] static core_set usable() noexcept {
    core_set s;
    cpu_set_t told;
    CPU_ZERO(&told);
    if (::sched_getaffinity(0, sizeof told, &told) != 0) return s;
    for (std::size_t i = 0; i < most; ++i) s.cores_[i] = CPU_ISSET(i, &told);
    return s;
  }

  [[nodiscard]] int count() const noexcept { return static_cast<int>(cores_.count()); }
  /// Whether two ranks may meet on a core; also when it is not known of one of them.
  [[nodiscard]] bool may_meet(const core_set& other) const noexcept {
    return cores_.none() || other.cores_.none() || (cores_ & other.cores_).any();
  }
  void add(const core_set& other) noexcept { cores_ |= other.cores_; }
  /// The core that is the i-th of them.
  ///
  /// Needs: 0 <= i < count()
  [[nodiscard]] int at(int i) const noexcept {
    std::size_t core = cores_._Find_first();
    for (; i > 0; --i) core = cores_._Find_next(core);
    return static_cast<int>(core);
  }

  /// One byte for eight cores, up to the last that is set.
  [[nodiscard]] std::string encode() const {
    std::string bytes;
    for (std::size_t i = 0; i < most; ++i) {
      if (!cores_[i]) continue;
      bytes.resize(std::max(bytes.size(), i / 8 + 1));
      bytes[i / 8] = static_cast<char>(static_cast<unsigned char>(bytes[i / 8]) | 1U << i % 8);
    }
    return bytes;
  }
  /// What does not fit is left out.
  [[nodiscard]] static core_set decode(std::string_view bytes) noexcept {
    core_set s;
    for (std::size_t i = 0; i < std::min(most, 8 * bytes.size()); ++i) {
      s.cores_[i] = (static_cast<unsigned char>(bytes[i / 8]) >> i % 8 & 1U) != 0;
    }
    return s;
  }
  static constexpr std::size_t most = CPU_SETSIZE;

  friend bool operator==(const core_set&, const core_set&) = default;

 private:
  std::bitset<most> cores_{};
};

}  // namespace cohort::detail
