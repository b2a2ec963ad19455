// SPDX-License-Identifier: BSL-1.0
// Who answers for work on a stream: it can be asked whether the work has failed, and told to end it. Implemented by the
// state of a communicator; asked by poller.hpp.
#pragma once

#include <exception>

namespace cohort::detail {

class guardian {
 public:
  guardian() = default;
  guardian(const guardian&) = delete;
  guardian& operator=(const guardian&) = delete;
  virtual ~guardian() = default;

  /// What has failed, if something has. Any thread; does not wait.
  [[nodiscard]] virtual std::exception_ptr failure() noexcept = 0;
  /// Notes that what is in flight is to be ended, for this reason. Any thread; does not wait.
  ///
  /// Result: false if the guardian's own thread is inside a call: to be tried again. After true, finish_abort() is due
  [[nodiscard]] virtual bool begin_abort(std::exception_ptr why) noexcept = 0;
  /// Ends it. The same thread; may wait for the device.
  virtual void finish_abort() noexcept = 0;
  /// For those that asked the poller to be overseen: some times a second, on the poller's thread.
  virtual void oversee() noexcept {}
};

}  // namespace cohort::detail
