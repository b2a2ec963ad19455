// SPDX-License-Identifier: BSL-1.0
// How an awaiting coroutine is woken: through its own executor if it has one, else by the engine that
// completed what it waits for. Part of the awaiter of operation.hpp.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

namespace cohort::detail {

struct resumption {
  void (*resume)(void*) = nullptr;
  void* argument = nullptr;
};

template <class Promise>
concept has_executor = requires(Promise& p) {
  p.get_executor().execute([] {});
};

/// Lives in the awaiter, so in the frame that is resumed: the executor needs no allocation.
class resume_slot {
 public:
  resume_slot() = default;
  resume_slot(const resume_slot&) = delete;
  resume_slot& operator=(const resume_slot&) = delete;
  ~resume_slot() {
    if (destroy_ != nullptr) destroy_(this);
  }

  template <class Promise>
  [[nodiscard]] resumption bind(std::coroutine_handle<Promise> h) {
    frame_ = h;
    if constexpr (has_executor<Promise>) {
      using executor = std::remove_cvref_t<decltype(h.promise().get_executor())>;
      if constexpr (sizeof(executor) <= sizeof storage_ && alignof(executor) <= alignof(std::max_align_t)) {
        ::new (static_cast<void*>(storage_)) executor(h.promise().get_executor());
        destroy_ = [](resume_slot* self) { self->template stored<executor>().~executor(); };
        return {[](void* p) {
                  auto& self = *static_cast<resume_slot*>(p);
                  const std::coroutine_handle<> frame = self.frame_;
                  self.template stored<executor>().execute([frame] { frame.resume(); });
                },
                this};
      } else {
        static_assert(sizeof(executor) <= sizeof storage_, "the promise's executor is larger than cohort allows for");
      }
    } else {
      return {[](void* p) { std::coroutine_handle<>::from_address(p).resume(); }, h.address()};
    }
  }

 private:
  template <class Executor>
  Executor& stored() noexcept {
    return *std::launder(reinterpret_cast<Executor*>(storage_));
  }

  std::coroutine_handle<> frame_{};
  void (*destroy_)(resume_slot*) = nullptr;
  alignas(std::max_align_t) unsigned char storage_[64]{};
};

}  // namespace cohort::detail
