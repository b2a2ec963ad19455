// SPDX-License-Identifier: BSL-1.0
// The group of NCCL's that this thread has open. A group belongs to a thread and not to a communicator: what is asked of any of
// them before it ends goes to no stream until then. Used by party.hpp and front.hpp.
#pragma once

#include <memory>
#include <vector>

namespace cohort::detail {

class nccl_party;

struct open_group {
  nccl_party* opener;
  std::vector<std::shared_ptr<nccl_party>> others{};  ///< that have calls in it; each is inside its gate until it ends

  /// Null where there is none.
  [[nodiscard]] static open_group*& of_this_thread() noexcept {
    static thread_local open_group* now = nullptr;
    return now;
  }
};

[[nodiscard]] inline bool in_open_group() noexcept { return open_group::of_this_thread() != nullptr; }

}  // namespace cohort::detail
