// SPDX-License-Identifier: BSL-1.0
// A thread of the library's own: it takes none of the program's signals, and it may be told to end from itself. What
// serves the TCP store and the calls of an async_store.
#pragma once

#include <cohort/error.hpp>

#include <pthread.h>
#include <signal.h>

#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace cohort::detail {

/// Lifetime: `finish` comes before the destructor
class own_thread {
 public:
  own_thread() = default;
  own_thread(const own_thread&) = delete;
  own_thread& operator=(const own_thread&) = delete;

  /// Errors: io_error, saying what the thread was for
  void start(const char* purpose, std::function<void()> body) {
    auto work = std::make_unique<std::function<void()>>(std::move(body));
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const int code = ::pthread_create(&id_, nullptr, &run, work.get());
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (code != 0) {
      throw error(errc::io_error,
                  std::string("no thread for ") + purpose + ": " + std::generic_category().message(code));
    }
    work.release();
    running_ = true;
  }

  /// Waits for its end; called on the thread itself, lets it go. The body must end by itself.
  void finish() noexcept {
    if (!std::exchange(running_, false)) return;
    if (::pthread_equal(id_, ::pthread_self()) != 0) {
      ::pthread_detach(id_);
    } else {
      ::pthread_join(id_, nullptr);
    }
  }

 private:
  static void* run(void* work) {
    const std::unique_ptr<std::function<void()>> body(static_cast<std::function<void()>*>(work));
    (*body)();
    return nullptr;
  }

  pthread_t id_{};
  bool running_ = false;
};

}  // namespace cohort::detail
