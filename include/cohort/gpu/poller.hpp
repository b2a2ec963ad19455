// SPDX-License-Identifier: BSL-1.0
// One thread that knows when streams have come somewhere: it reads flags in pinned memory, unless whoever waits reads them
// himself, and beside that, slowly, asks for errors, looks at deadlines and oversees who asked for it. Never a callback of the
// driver, which is not called after an error. Started by the first on_host() of a communicator; used by on_host.hpp and by
// timeout{}.
#pragma once

#include <cohort/gpu/device.hpp>
#include <cohort/gpu/event.hpp>
#include <cohort/gpu/flag_ring.hpp>
#include <cohort/gpu/flag_writer.hpp>
#include <cohort/gpu/guardian.hpp>
#include <cohort/gpu/milestone.hpp>
#include <cohort/gpu/stream.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sched.h>
#include <sys/prctl.h>

namespace cohort::detail {

/// What the thread works on. It outlives the poller if the poller's end comes from the thread itself, by the last
/// reference to a communicator.
class poller_core {
 public:
  using clock = std::chrono::steady_clock;

  explicit poller_core(int device) : device_(device) {}

  void follow(const std::shared_ptr<milestone>& m) {
    m->arming.store(true, std::memory_order_relaxed);
    {
      const std::lock_guard lock(mutex_);
      new_.push_back(m);
      has_new_.store(true, std::memory_order_release);
      changed_.notify_one();
    }
    // Without the lock, and when its deadline is looked at already: where the queue of a stream is full, the driver lets this
    // thread wait, and if the stream stands still it is the loop that ends it.
    try {
      arm(*m);
    } catch (...) {
      m->finish(std::current_exception());
      m->arming.store(false, std::memory_order_release);
      throw;
    }
    m->arming.store(false, std::memory_order_release);
  }
  void oversee(std::weak_ptr<guardian> whom) {
    const std::lock_guard lock(mutex_);
    overseen_.push_back(std::move(whom));
    changed_.notify_one();
  }
  [[nodiscard]] std::string way() { return writer_.available() ? "flags" : "events, because " + writer_.missing(); }
  void end() {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }

  void run() {
    on_pollers_thread() = true;
    // Asking for errors must not invalidate a capture that another thread is making.
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    static_cast<void>(cudaThreadExchangeStreamCaptureMode(&mode));
    static_cast<void>(cudaSetDevice(device_));
    // A nap is as long as it says: by default a thread may sleep 50 us longer.
    static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL));
    // An error of the device shows on every stream, and no user's stream may be asked while it is captured.
    std::optional<stream> own;
    try {
      own.emplace();
    } catch (const error&) {
      // The device has failed already: what each milestone meets says how.
    }
    loop(own ? own->get() : nullptr);
  }

 private:
  static constexpr std::chrono::microseconds spinning{20};
  // A core that is free serves whoever waits for some milliseconds within microseconds; longer waits are not worth one.
  static constexpr std::chrono::microseconds yielding{2000};
  static constexpr std::chrono::microseconds nap{50};
  static constexpr std::chrono::milliseconds inquiry{1};
  static constexpr std::chrono::milliseconds oversight{100};

  void arm(milestone& m) {
    if (writer_.available()) {
      flag f = flags_.take();
      if (writer_.write(m.stream, f.place, f.awaited)) {
        m.raised_flag = f;
        return;
      }
      flags_.give(f);
      // A device that has failed refuses everything: say its error, and keep to flags if it was none.
      check_cuda(cudaPeekAtLastError(), "cuStreamWriteValue64");
    }
    event e = events_.take();
    e.record(m.stream);
    m.recorded.emplace(std::move(e));
  }

  void loop(cudaStream_t own) {
    std::vector<std::shared_ptr<milestone>> waiting;
    auto last_event = clock::now();
    auto last_inquiry = last_event;
    auto last_oversight = last_event;
    for (;;) {
      if (has_new_.load(std::memory_order_acquire) || waiting.empty()) {
        std::unique_lock lock(mutex_);
        if (waiting.empty()) wait_for_news(lock);
        if (new_.empty() && ending_) return;
        for (auto& m : new_) waiting.push_back(std::move(m));
        new_.clear();
        has_new_.store(false, std::memory_order_relaxed);
        last_event = clock::now();
      }
      bool moved = look(waiting);
      const auto now = clock::now();
      if (now - last_oversight >= oversight) {
        last_oversight = now;
        oversee_all();
      }
      if (now - last_inquiry >= inquiry) {
        last_inquiry = now;
        moved = ask(waiting, now, own) || moved;
      }
      if (moved) last_event = now;
      else if (all_attended(waiting)) rest();
      else if (now - last_event > yielding) std::this_thread::sleep_for(nap);
      else if (now - last_event > spinning) ::sched_yield();
      if (ending()) return abandon(waiting);
    }
  }

  void wait_for_news(std::unique_lock<std::mutex>& lock) {
    if (overseen_.empty()) changed_.wait(lock, [this] { return has_news() || !overseen_.empty(); });
    else changed_.wait_for(lock, oversight, [this] { return has_news(); });
  }
  /// With the lock held.
  [[nodiscard]] bool has_news() const noexcept { return ending_ || !new_.empty(); }
  void oversee_all() {
    std::vector<std::shared_ptr<guardian>> now;
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(overseen_, [](const auto& each) { return each.expired(); });
      for (const auto& each : overseen_) now.push_back(each.lock());
    }
    for (const auto& each : now) {
      if (each) each->oversee();
    }
  }

  [[nodiscard]] static bool all_attended(const std::vector<std::shared_ptr<milestone>>& waiting) noexcept {
    return std::all_of(waiting.begin(), waiting.end(), [](const auto& m) { return m->attended(); });
  }
  /// Until the next inquiry, or something new.
  void rest() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, inquiry, [this] { return has_news(); });
  }
  [[nodiscard]] bool ending() {
    const std::lock_guard lock(mutex_);
    return ending_;
  }

  /// True if something is done.
  bool look(std::vector<std::shared_ptr<milestone>>& waiting) {
    bool moved = false;
    for (std::size_t i = 0; i < waiting.size();) {
      milestone& m = *waiting[i];
      bool done = false;
      if (m.is_arming()) {
        // Whoever waits has been given nothing yet.
      } else if (m.raised_flag) {
        done = m.raised_flag->raised();
      } else if (!m.recorded) {
        done = true;  // the driver has refused it
      } else {
        const cudaError_t code = m.recorded->query();
        done = code == cudaSuccess;
        if (code != cudaSuccess && code != cudaErrorNotReady) {
          end(waiting, i, failure_of(m, code, "cudaEventQuery"));
          moved = true;
          continue;
        }
      }
      if (!done) {
        ++i;
        continue;
      }
      recycle(m);
      end(waiting, i, nullptr);
      moved = true;
    }
    return moved;
  }

  /// What no flag says: the stream has failed, its guardian has, or it is too late.
  bool ask(std::vector<std::shared_ptr<milestone>>& waiting, clock::time_point now, cudaStream_t own) {
    bool moved = false;
    const cudaError_t code = cudaStreamQuery(own);
    if (code != cudaSuccess) static_cast<void>(cudaGetLastError());
    for (std::size_t i = 0; i < waiting.size();) {
      milestone& m = *waiting[i];
      std::exception_ptr why;
      if (code != cudaSuccess && code != cudaErrorNotReady) {
        why = failure_of(m, code, "cudaStreamQuery");
      } else if (m.behind) {
        why = named_for(m, m.behind->failure());
      }
      if (!why && now >= m.until && !m.done()) why = too_late(m);
      if (why && (m.is_arming() || !m.raised_flag || !m.raised_flag->raised())) {
        // What is in flight would hold the stream for ever. If the guardian is busy, again in a moment. Whoever waits is
        // told first: aborting may have to wait for other work of the device.
        const std::shared_ptr<guardian> behind = m.behind;
        if (behind && !behind->begin_abort(why)) {
          ++i;
          continue;
        }
        end(waiting, i, why);
        if (behind) behind->finish_abort();
        moved = true;
      } else {
        ++i;
      }
    }
    return moved;
  }

  /// What has failed, with the operation that waits where no other is to blame.
  [[nodiscard]] static std::exception_ptr named_for(const milestone& m, const std::exception_ptr& why) {
    if (!why) return why;
    try {
      std::rethrow_exception(why);
    } catch (const error& e) {
      return e.operation().empty() ? m.explain(e.condition(), e.what()) : why;
    } catch (...) {
      return why;
    }
  }
  [[nodiscard]] static std::exception_ptr failure_of(const milestone& m, cudaError_t code, const char* function) {
    return m.explain(cuda_condition(code), cuda_sentence(code, function));
  }
  [[nodiscard]] static std::exception_ptr too_late(const milestone& m) {
    const auto allowed = std::chrono::duration_cast<std::chrono::milliseconds>(m.until - m.started);
    return m.explain(errc::timed_out, "the device has not done it after " + std::to_string(allowed.count()) +
                                          " ms: a rank has not come, or the stream waits for something else");
  }

  void recycle(milestone& m) {
    if (m.raised_flag) flags_.give(*m.raised_flag);
    if (m.recorded) events_.give(std::move(*m.recorded));
    m.recorded.reset();
  }
  static void end(std::vector<std::shared_ptr<milestone>>& waiting, std::size_t i, const std::exception_ptr& why) {
    const std::shared_ptr<milestone> m = std::move(waiting[i]);
    waiting[i] = std::move(waiting.back());
    waiting.pop_back();
    m->finish(why);
  }
  void abandon(std::vector<std::shared_ptr<milestone>>& waiting) {
    while (!waiting.empty()) {
      const std::exception_ptr why = waiting.back()->explain(
          errc::aborted, "the communicator went while the operation was in flight: keep it until the await is over");
      end(waiting, waiting.size() - 1, why);
    }
  }

  int device_;
  std::mutex mutex_{};
  std::condition_variable changed_{};
  bool ending_ = false;
  std::atomic<bool> has_new_{false};
  std::vector<std::shared_ptr<milestone>> new_{};
  std::vector<std::weak_ptr<guardian>> overseen_{};
  flag_writer writer_{};
  flag_ring flags_{};
  event_pool events_{};
};

class poller {
 public:
  /// Needs: the device to be there
  explicit poller(int device) : core_(std::make_shared<poller_core>(device)) {}
  poller(const poller&) = delete;
  poller& operator=(const poller&) = delete;
  ~poller() {
    core_->end();
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id()) thread_.detach();
    else thread_.join();
  }

  /// Follows what is on the stream now until it is done. Enqueues the flag; the device must be current. Any thread: all
  /// communicators that are made of one another share a poller.
  ///
  /// Errors: what CUDA says; std::system_error where there is no thread
  void follow(const std::shared_ptr<milestone>& m) {
    begin();
    core_->follow(m);
  }
  /// Calls its oversee() from now on, for as long as it is there.
  void oversee(std::weak_ptr<guardian> whom) {
    begin();
    core_->oversee(std::move(whom));
  }

  /// How completion is seen here: "flags", or "events, because ...".
  [[nodiscard]] std::string way() const { return core_->way(); }

 private:
  void begin() {
    const std::lock_guard lock(beginning_);
    if (!thread_.joinable()) thread_ = std::thread([core = core_] { core->run(); });
  }

  std::shared_ptr<poller_core> core_;
  std::mutex beginning_{};
  std::thread thread_{};
};

}  // namespace cohort::detail
