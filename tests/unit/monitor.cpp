// SPDX-License-Identifier: BSL-1.0
// Two liveness threads in one process: ranks with more communicators than one frame of a heartbeat can tell of are not
// taken for dead, and a timeout still says who has not arrived.
#include <doctest/doctest.h>

#include <cohort/transport/inproc.hpp>
#include <cohort/transport/tcp_monitor.hpp>

#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace cohort;
using namespace cohort::transport;
using namespace std::chrono_literals;

/// Each with as many calls as a heartbeat tells of: 3628 fill a frame.
constexpr std::uint64_t communicators = 3700;
constexpr auto calls = static_cast<std::int64_t>(most_calls_told);

/// A rank: its communicators, and its liveness thread.
class member {
 public:
  member(const std::shared_ptr<inproc_hub>& hub, int rank) : engine_(std::make_shared<inproc_endpoint>(hub, rank)) {
    signature barrier;
    barrier.kind = operation_kind::barrier;
    for (std::uint64_t context = 1; context <= communicators; ++context) {
      // As no member: the engine, which none of this is about, is not told of them.
      groups_.push_back(std::make_unique<group>(engine_, context, "g", std::vector<int>{0, 1}, -1));
      // In the last one rank 0 waits for rank 1.
      const bool last = context == communicators;
      for (std::int64_t n = 0; n < calls - (last && rank == 1 ? 1 : 0); ++n) {
        groups_.back()->note_entered(n, barrier);
        if (!last || n + 1 < calls) groups_.back()->note_completed(n);
      }
    }
    tcp_monitor::settings s;
    s.rank = rank;
    s.size = 2;
    s.peer_timeout = 60s;
    s.introduction.role = connection_role::control;
    s.introduction.world_size = 2;
    s.introduction.rank = rank;
    tcp_monitor::listener l;
    l.on_verdict = [this](std::shared_ptr<const fault> f) { hear(f->text); };
    l.on_departed = [](int) {};
    l.on_dismissed = [] {};
    monitor_ = std::make_unique<tcp_monitor>(std::move(s), std::move(l));
    for (const auto& each : groups_) monitor_->add(*each);
  }

  [[nodiscard]] tcp_monitor& monitor() { return *monitor_; }
  /// The first verdict.
  [[nodiscard]] std::string verdict() {
    std::unique_lock lock(mutex_);
    (void)heard_.wait_for(lock, 60s, [this] { return !verdicts_.empty(); });
    return verdicts_.empty() ? "none" : verdicts_.front();
  }
  [[nodiscard]] std::size_t verdicts() {
    const std::lock_guard lock(mutex_);
    return verdicts_.size();
  }

 private:
  void hear(const std::string& text) {
    const std::lock_guard lock(mutex_);
    verdicts_.push_back(text);
    heard_.notify_all();
  }

  std::mutex mutex_{};
  std::condition_variable heard_{};
  std::vector<std::string> verdicts_{};
  std::shared_ptr<inproc_endpoint> engine_;
  std::vector<std::unique_ptr<group>> groups_{};
  std::unique_ptr<tcp_monitor> monitor_{};
};

}  // namespace

TEST_CASE("monitor: more communicators than one frame can tell of") {
  const auto hub = std::make_shared<inproc_hub>(2, inproc_hub::threading::one_thread);
  member zero(hub, 0);
  member one(hub, 1);
  const auto loopback = boost::asio::ip::make_address("127.0.0.1");
  const tcp_endpoint where(loopback, zero.monitor().host(loopback));
  const auto soon = std::chrono::steady_clock::now() + 60s;
  std::string refusal = "none";
  std::thread joining([&] {
    try {
      one.monitor().join(where, soon);
    } catch (const error& e) {
      refusal = e.what();
    }
  });
  CHECK_NOTHROW(zero.monitor().join(where, soon));
  joining.join();
  CHECK(refusal == "none");

  fault late;
  late.code = errc::timed_out;
  late.reporter = 0;
  late.context = communicators;
  late.sequence = calls - 1;
  late.text = "barrier timed out";
  zero.monitor().report(late, {0, 1});
  const std::string expected = "barrier timed out; not arrived: world rank 1 last called barrier() #14";
  CHECK(zero.verdict() == expected);
  CHECK(one.verdict() == expected);

  one.monitor().goodbye();
  zero.monitor().goodbye();
  CHECK(zero.monitor().wait_until_all_left(soon));
  CHECK(one.monitor().wait_until_all_left(soon));
  CHECK(zero.verdicts() == 1);
  CHECK(one.verdicts() == 1);
}
