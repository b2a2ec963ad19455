// SPDX-License-Identifier: BSL-1.0
// The liveness thread of one process: sends heartbeats beside the user's executor, hears verdicts, and on rank
// 0 hosts the service that gives them. A rank that computes for minutes is slow; one that is stopped is not heard.
#pragma once

#include <cohort/transport/engine.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_monitor_server.hpp>

#include <boost/asio/executor_work_guard.hpp>

#include <signal.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace cohort::transport {

class tcp_monitor {
 public:
  using clock = std::chrono::steady_clock;
  using tcp = boost::asio::ip::tcp;

  struct settings {
    int rank = 0;
    int size = 1;
    std::chrono::nanoseconds peer_timeout = std::chrono::seconds{10};
    hello introduction{};  ///< with role `control`
    std::string secret{};
    tcp_link::context_pointer tls{};
  };
  /// Called on the liveness thread.
  struct listener {
    std::function<void(std::shared_ptr<const fault>)> on_verdict{};
    std::function<void(int)> on_departed{};
    std::function<void()> on_dismissed{};  ///< everybody has left, or nobody judges any more
  };

  tcp_monitor(settings s, listener l)
      : settings_(std::move(s)), listener_(std::move(l)), timer_(io_), work_(boost::asio::make_work_guard(io_)) {}
  tcp_monitor(const tcp_monitor&) = delete;
  tcp_monitor& operator=(const tcp_monitor&) = delete;
  ~tcp_monitor() { stop(); }

  /// Rank 0: hosts the service on a free port of `address`; gives the port.
  unsigned short host(const boost::asio::ip::address& address) {
    tcp::acceptor acceptor(io_);
    const unsigned short port = listen_on(acceptor, tcp::endpoint(address, 0));
    hello_expectation mine;
    mine.role = connection_role::control;
    mine.job = settings_.introduction.job;
    mine.epoch = settings_.introduction.epoch;
    mine.world_size = settings_.size;
    mine.rank = 0;
    server_ = std::make_unique<tcp_monitor_server>(io_, std::move(acceptor), mine, settings_.secret, settings_.size,
                                                   settings_.peer_timeout, settings_.tls);
    return port;
  }
  /// Rank 0, before `join`: who is where.
  void describe(int rank, const std::string& where, long pid) {
    if (rank == 0) {
      host_ = where;
      host_pid_ = pid;
    }
    if (server_) server_->describe(rank, where, pid);
  }

  /// Connects to the service and waits until every rank has.
  ///
  /// Errors: rendezvous_timeout, or why the service could not be reached
  void join(const tcp::endpoint& where, clock::time_point deadline);

  // --- any thread
  void add(const group& g) {
    const std::lock_guard lock(mutex_);
    groups_.push_back(&g);
  }
  void remove(const group& g) {
    const std::lock_guard lock(mutex_);
    arrival last = g.arrival();
    last.retired = true;
    groups_.erase(std::remove(groups_.begin(), groups_.end(), &g), groups_.end());
    retired_.push_back(last);  // even if it has called nothing there: others may wait for it
  }
  void report(const fault& f, const std::vector<int>& members) {
    detail::post_to(io_, [this, payload = encode_report(f, members)] {
      if (link_ && !link_->closed()) {
        link_->send(monitor_message::report, payload);
      } else if (auto mine = decode_report(payload)) {
        // Nobody judges: what this rank noticed itself is the best that is known.
        listener_.on_verdict(std::make_shared<const fault>(std::move(mine->what)));
      }
    });
  }
  void goodbye() {
    detail::post_to(io_, [this] {
      if (left_) return;
      left_ = true;
      tell_arrivals(monitor_message::goodbye);
    });
  }
  /// Whether every rank has said goodbye, or has died.
  [[nodiscard]] bool dismissed() {
    const std::lock_guard lock(mutex_);
    return dismissed_;
  }
  /// Waits for that.
  bool wait_until_all_left(clock::time_point deadline) {
    std::unique_lock lock(mutex_);
    return changed_.wait_until(lock, deadline, [this] { return dismissed_; });
  }

 private:
  enum class joining : unsigned char { waiting, welcome, failed };

  void run() {
    // Signals are the user's: none is handled on this thread.
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    for (;;) {
      try {
        io_.run();
        return;
      } catch (const std::exception&) {
        // Out of memory while one frame was handled: the next one may fare better, and nothing may end the process.
        continue;
      }
    }
  }

  void introduce(const tcp::endpoint& where);
  void conclude_join(joining result, std::string text);
  void on_frame(monitor_message m, std::string_view payload);
  void on_end();
  void dismiss();
  void lose_server(errc code, const std::string& how);
  void tick();
  void beat() { tell_arrivals(monitor_message::heartbeat); }
  /// Whoever is asked has answered with the last frame.
  void tell_arrivals(monitor_message last) {
    if (!link_ || link_->closed()) return;
    const std::vector<std::string> parts = encode_arrivals_in_parts(arrivals());
    for (std::size_t i = 0; i < parts.size(); ++i) {
      link_->send(i + 1 < parts.size() ? monitor_message::part : last, parts[i]);
    }
  }
  /// This rank waits on communicators with members that have left the world: those may never have formed them, which the
  /// monitor knows, and not who is a member.
  void ask_about_departed() {
    if (departed_.empty()) return;
    std::vector<fault> questions;
    {
      const std::lock_guard lock(mutex_);
      for (const group* const g : groups_) {
        const arrival mine = g->arrival();
        if (mine.context == 0 || mine.completed >= mine.entered) continue;
        const auto gone = std::find_if(g->members().begin(), g->members().end(),
                                       [this](int member) { return departed_.contains(member); });
        if (gone != g->members().end()) {
          questions.push_back({errc::peer_lost, *gone, settings_.rank, mine.context, mine.entered});
        }
      }
    }
    for (const fault& each : questions) link_->send(monitor_message::unformed, encode_report(each, {}));
  }
  [[nodiscard]] std::vector<arrival> arrivals() {
    const std::lock_guard lock(mutex_);
    // A communicator that is gone is told of once: the monitor keeps it on record.
    std::vector<arrival> all = std::exchange(retired_, {});
    for (const group* const g : groups_) all.push_back(g->arrival());
    return all;
  }
  void stop();

  settings settings_;
  listener listener_;
  boost::asio::io_context io_{1};
  boost::asio::steady_timer timer_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::unique_ptr<tcp_monitor_server> server_{};
  std::shared_ptr<tcp_control_link> link_{};
  std::string host_{};
  long host_pid_ = 0;
  std::thread thread_{};
  clock::time_point last_heard_{};
  clock::time_point last_tick_{};
  bool server_silent_ = false;
  bool left_ = false;
  std::set<int> departed_{};  // who has left the world

  std::mutex mutex_{};
  std::condition_variable changed_{};
  // Below: with mutex_ held.
  std::vector<const group*> groups_{};
  std::vector<arrival> retired_{};
  joining joining_ = joining::waiting;
  std::string joining_text_{};
  bool dismissed_ = false;
};

inline void tcp_monitor::join(const tcp::endpoint& where, clock::time_point deadline) {
  detail::post_to(io_, [this, where] {
    if (server_) server_->start();
    introduce(where);
  });
  thread_ = std::thread([this] { run(); });
  std::unique_lock lock(mutex_);
  const bool decided = changed_.wait_until(lock, deadline, [this] { return joining_ != joining::waiting; });
  if (decided && joining_ == joining::welcome) return;
  std::string text = decided ? joining_text_ : "not every rank connected to the liveness service of rank 0 in time";
  if (const std::string refused = decided || !server_ ? "" : server_->last_refusal(); !refused.empty()) {
    text += "; " + refused;
  }
  lock.unlock();
  throw error(decided ? errc::peer_lost : errc::rendezvous_timeout,
              "rank " + std::to_string(settings_.rank) + " could not join the world: " + text);
}

inline void tcp_monitor::introduce(const tcp::endpoint& where) {
  const auto opening =
      std::make_shared<tcp_introduction>(tcp::socket(io_), settings_.introduction, settings_.secret, settings_.tls);
  opening->start(where, [this](tcp_link link, const tcp_introduction::outcome& o) {
    if (o.why) return conclude_join(joining::failed, "rank 0 does not answer: " + o.why.message());
    if (!o.verdict.accepted())
      return conclude_join(joining::failed, "rank 0 refused this process: " + explain(o.verdict));
    if (!o.genuine) return conclude_join(joining::failed, "the liveness service does not know this job's secret");
    link_ = std::make_shared<tcp_control_link>(std::move(link));
    last_heard_ = last_tick_ = clock::now();
    link_->start([this](monitor_message m, std::string_view p) { on_frame(m, p); },
                 [this](const boost::system::error_code&) { on_end(); });
    beat();
    tick();
  });
}

inline void tcp_monitor::conclude_join(joining result, std::string text) {
  const std::lock_guard lock(mutex_);
  if (joining_ != joining::waiting) return;
  joining_ = result;
  joining_text_ = std::move(text);
  changed_.notify_all();
}

inline void tcp_monitor::on_frame(monitor_message m, std::string_view payload) {
  last_heard_ = clock::now();
  switch (m) {
    case monitor_message::welcome: conclude_join(joining::welcome, {}); break;
    case monitor_message::ask: beat(); break;
    case monitor_message::verdict:
      if (auto r = decode_report(payload)) {
        conclude_join(joining::failed, r->what.text);
        listener_.on_verdict(std::make_shared<const fault>(std::move(r->what)));
      }
      break;
    case monitor_message::departed: {
      for (detail::byte_reader r(payload); r.left() > 0;) {
        const auto rank = r.number<std::uint32_t>();
        if (!r.good() || rank >= static_cast<std::uint32_t>(settings_.size)) continue;
        departed_.insert(static_cast<int>(rank));
        listener_.on_departed(static_cast<int>(rank));
      }
      break;
    }
    case monitor_message::closing:
      link_->close();
      dismiss();
      break;
    case monitor_message::dismissed: dismiss(); break;
    default: break;
  }
}

inline void tcp_monitor::on_end() {
  conclude_join(joining::failed, "the liveness service of rank 0 went away");
  if (!server_silent_) lose_server(errc::peer_lost, " died: its connections closed without a goodbye");
}

inline void tcp_monitor::dismiss() {
  {
    const std::lock_guard lock(mutex_);
    dismissed_ = true;
    changed_.notify_all();
  }
  listener_.on_dismissed();
}

// Rank 0 is not waited for, and what it would have judged nobody does.
inline void tcp_monitor::lose_server(errc code, const std::string& how) {
  if (left_) return dismiss();
  fault f;
  f.code = code;
  f.culprit = 0;
  f.reporter = settings_.rank;
  f.text = "rank 0" + (host_.empty() ? std::string{} : " (" + host_ + ", pid " + std::to_string(host_pid_) + ")") + how;
  // Should rank 0 only have been stopped, it tells those who have not noticed, and itself, before this rank leaves.
  if (link_ && !link_->closed()) link_->send(monitor_message::report, encode_report(f, {}));
  listener_.on_verdict(std::make_shared<const fault>(std::move(f)));
  // Not before: without a judge a rank tells what it sees itself, and others may have left for the same reason.
  dismiss();
}

inline void tcp_monitor::tick() {
  const auto now = clock::now();
  const auto beat_every = settings_.peer_timeout / 10;
  // If this process itself was stopped, the silence was its own.
  if (now - last_tick_ > 4 * beat_every) last_heard_ = now;
  last_tick_ = now;
  if (!link_ || link_->closed()) return;
  beat();
  ask_about_departed();
  if (now - last_heard_ > settings_.peer_timeout && !server_silent_) {
    server_silent_ = true;
    const auto silence = std::chrono::duration<double>(now - last_heard_).count();
    lose_server(errc::peer_unresponsive,
                " has sent no heartbeat for " + std::to_string(silence).substr(0, 4) + " s: it is stopped or cut off");
  }
  timer_.expires_after(beat_every);
  detail::when_expired(timer_, [this](const boost::system::error_code& cancelled) {
    if (!cancelled) tick();
  });
}

inline void tcp_monitor::stop() {
  if (thread_.joinable()) {
    detail::post_to(io_, [this] {
      if (server_) server_->stop();
      timer_.cancel();
      // The last words (an abort, a goodbye) leave before the thread does; a peer that reads nothing cannot hold it.
      if (link_) link_->close_after_sending();
      work_.reset();
      const auto last_call = std::make_shared<boost::asio::steady_timer>(io_, std::chrono::milliseconds{500});
      detail::when_expired(*last_call, [this, last_call](const boost::system::error_code&) { io_.stop(); });
      const auto look = std::make_shared<std::function<void()>>();
      *look = [this, last_call, weak = std::weak_ptr<std::function<void()>>(look)] {
        if ((!link_ || link_->closed()) && (!server_ || server_->drained())) {
          io_.stop();
        } else if (const auto again = weak.lock()) {
          const auto pause = std::make_shared<boost::asio::steady_timer>(io_, std::chrono::milliseconds{1});
          detail::when_expired(*pause, [again, pause](const boost::system::error_code&) { (*again)(); });
        }
      };
      (*look)();
    });
    thread_.join();
  }
}

}  // namespace cohort::transport
