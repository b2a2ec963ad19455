// SPDX-License-Identifier: BSL-1.0
// The buffers of an operation while other ranks reach them where they are. Used by reduce.hpp and single_copy.hpp of this folder.
#pragma once

#include <cohort/transport/shm/window_use.hpp>

#include <utility>

namespace cohort::collective::detail {

/// From when the others may reach them until they have done so. Where the operation ends before that, with an error or because
/// it is dropped, the others are told, and they are taken back.
template <class TakeBack>
class lent_buffers {
 public:
  /// Lifetime: `use` outlives it
  lent_buffers(transport::window_use& use, TakeBack take_back) noexcept
      : use_(&use), take_back_(std::move(take_back)) {}
  lent_buffers(const lent_buffers&) = delete;
  lent_buffers& operator=(const lent_buffers&) = delete;
  ~lent_buffers() {
    if (!lent_ || use_->transport().forked()) return;
    use_->give_up();
    take_back_();
  }
  void lend() noexcept { lent_ = true; }
  void are_back() noexcept { lent_ = false; }

 private:
  transport::window_use* use_;
  TakeBack take_back_;
  bool lent_ = false;
};

}  // namespace cohort::collective::detail
