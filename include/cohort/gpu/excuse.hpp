// SPDX-License-Identifier: BSL-1.0
// Why a rank cannot take part, as a part of what ranks tell each other before they begin: so that what one of them lacks
// is an error on all. Used by nccl/introduction.hpp and ipc_ranks.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace cohort::detail {

struct excuse {
  std::array<char, 384> trouble{};  ///< "" when it can

  void cannot(std::string_view why) noexcept {
    const std::size_t n = std::min(why.size(), trouble.size() - 1);
    std::memcpy(trouble.data(), why.data(), n);
    trouble[n] = '\0';
  }
  [[nodiscard]] std::string_view reason() const noexcept {
    return {trouble.data(),
            static_cast<std::size_t>(std::find(trouble.begin(), trouble.end(), '\0') - trouble.begin())};
  }
};

}  // namespace cohort::detail
