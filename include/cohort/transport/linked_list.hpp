// SPDX-License-Identifier: BSL-1.0
// A doubly linked list of elements through their own hooks, `previous` and `next`: no allocation, removal in O(1). For
// requests (request.hpp) and for messages that came early (early_messages.hpp); owns nothing.
#pragma once

namespace cohort::transport {

template <class T>
class linked_list {
 public:
  [[nodiscard]] bool empty() const noexcept { return head_ == nullptr; }
  [[nodiscard]] T* front() const noexcept { return head_; }
  void push_back(T& item) noexcept {
    item.previous = tail_;
    item.next = nullptr;
    (tail_ != nullptr ? tail_->next : head_) = &item;
    tail_ = &item;
  }
  void remove(T& item) noexcept {
    (item.previous != nullptr ? item.previous->next : head_) = item.next;
    (item.next != nullptr ? item.next->previous : tail_) = item.previous;
    item.previous = item.next = nullptr;
  }
  T* pop_front() noexcept {
    T* const first = head_;
    if (first != nullptr) remove(*first);
    return first;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace cohort::transport
