// SPDX-License-Identifier: BSL-1.0
// Two liveness threads in one process: ranks with more communicators than one frame of a heartbeat can tell of are not
// taken for dead, and a timeout still says who has not arrived; and nobody waits for who has left without having formed a
// communicator.
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
  member(const std::shared_ptr<inproc_hub>& hub, int rank, std::chrono::nanoseconds peer_timeout = 60s)
      : engine_(std::make_shared<inproc_endpoint>(hub, rank)) {
    tcp_monitor::settings s;
    s.rank = rank;
    s.size = 2;
    s.peer_timeout = peer_timeout;
    s.introduction.role = connection_role::control;
    s.introduction.world_size = 2;
    s.introduction.rank = rank;
    tcp_monitor::listener l;
    l.on_verdict = [this](std::shared_ptr<const fault> f) { hear(f->text); };
    l.on_departed = [](int) {};
    l.on_dismissed = [] {};
    monitor_ = std::make_unique<tcp_monitor>(std::move(s), std::move(l));
  }

  /// As no member: the engine, which none of this is about, is not told of it.
  group& forms(std::uint64_t context) {
    groups_.push_back(std::make_unique<group>(engine_, context, "g", std::vector<int>{0, 1}, -1));
    monitor_->add(*groups_.back());
    return *groups_.back();
  }
  /// All of them called as often as a heartbeat tells of; in the last one rank 0 waits for rank 1.
  void calls_on_many(int rank) {
    for (std::uint64_t context = 1; context <= communicators; ++context) {
      group& g = forms(context);
      const bool last = context == communicators;
      for (std::int64_t n = 0; n < calls - (last && rank == 1 ? 1 : 0); ++n) {
        g.note_entered(n, barrier());
        if (!last || n + 1 < calls) g.note_completed(n);
      }
    }
  }
  void completes_all() {
    for (const auto& each : groups_) each->note_completed(0);
  }
  [[nodiscard]] static signature barrier() {
    signature s;
    s.kind = operation_kind::barrier;
    return s;
  }

  [[nodiscard]] tcp_monitor& monitor() { return *monitor_; }
  /// The first verdict, or a later one.
  [[nodiscard]] std::string verdict(std::size_t number = 0) {
    std::unique_lock lock(mutex_);
    (void)heard_.wait_for(lock, 60s, [&] { return verdicts_.size() > number; });
    return verdicts_.size() > number ? verdicts_[number] : "none";
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

/// Both meet, on a port of the first one's.
std::string meet(member& zero, member& one) {
  const auto loopback = boost::asio::ip::make_address("127.0.0.1");
  const tcp_endpoint where(loopback, zero.monitor().host(loopback));
  const auto soon = std::chrono::steady_clock::now() + 60s;
  std::string refusal;
  std::thread joining([&] {
    try {
      one.monitor().join(where, soon);
    } catch (const error& e) {
      refusal = e.what();
    }
  });
  CHECK_NOTHROW(zero.monitor().join(where, soon));
  joining.join();
  return refusal;
}

}  // namespace

TEST_CASE("monitor: more communicators than one frame can tell of") {
  const auto hub = std::make_shared<inproc_hub>(2, inproc_hub::threading::one_thread);
  member zero(hub, 0);
  member one(hub, 1);
  zero.calls_on_many(0);
  one.calls_on_many(1);
  CHECK(meet(zero, one) == "");

  // The monitor has heard of all that rank 1 has called when it hears this.
  fault first;
  first.code = errc::aborted;
  first.culprit = first.reporter = 1;
  first.context = 1;
  first.text = "rank 1 has had enough";
  one.monitor().report(first, {0, 1});
  CHECK(zero.verdict() == first.text);
  fault late;
  late.code = errc::timed_out;
  late.reporter = 0;
  late.context = communicators;
  late.sequence = calls - 1;
  late.text = "barrier timed out";
  zero.monitor().report(late, {0, 1});
  const std::string expected = "barrier timed out; not arrived: world rank 1 last called barrier() #14";
  CHECK(zero.verdict(1) == expected);
  CHECK(one.verdict(1) == expected);

  one.monitor().goodbye();
  zero.monitor().goodbye();
  const auto soon = std::chrono::steady_clock::now() + 60s;
  CHECK(zero.monitor().wait_until_all_left(soon));
  CHECK(one.monitor().wait_until_all_left(soon));
  CHECK(zero.verdicts() == 2);
  CHECK(one.verdicts() == 2);
}

TEST_CASE("monitor: who leaves the world without having formed a communicator is not waited for there") {
  const auto hub = std::make_shared<inproc_hub>(2, inproc_hub::threading::one_thread);
  member zero(hub, 0, 1s);
  member one(hub, 1, 1s);
  // What rank 1 has had its part in goes on without it; the other one it has never formed.
  for (member* each : {&zero, &one}) each->forms(7).note_entered(0, member::barrier());
  group& unformed = zero.forms(8);
  CHECK(meet(zero, one) == "");
  unformed.note_entered(0, member::barrier());
  one.completes_all();
  one.monitor().goodbye();
  CHECK(zero.verdict() == "world rank 1 exited early: it has not called anything yet and left the world");
  zero.monitor().goodbye();
  CHECK(zero.monitor().wait_until_all_left(std::chrono::steady_clock::now() + 60s));
  CHECK(zero.verdicts() == 1);
}
