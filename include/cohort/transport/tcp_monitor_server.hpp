// SPDX-License-Identifier: BSL-1.0
// The half of the liveness service that rank 0 hosts: hears every rank's heartbeat, notices who died or fell
// silent, and gives one verdict to all. Runs on the liveness thread only.
#pragma once

#include <cohort/transport/tcp_calls.hpp>
#include <cohort/transport/tcp_control_link.hpp>
#include <cohort/transport/tcp_doorway.hpp>
#include <cohort/transport/verdict.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace cohort::transport {

class tcp_monitor_server {
 public:
  using clock = std::chrono::steady_clock;
  using tcp = boost::asio::ip::tcp;

  tcp_monitor_server(boost::asio::io_context& io, tcp::acceptor acceptor, const hello_expectation& mine,
                     std::string secret, int size, std::chrono::nanoseconds peer_timeout, tcp_link::context_pointer tls)
      : door_(std::make_shared<tcp_doorway>(std::move(acceptor), mine, std::move(secret),
                                            static_cast<std::size_t>(size), std::move(tls))),
        timer_(io),
        peer_timeout_(peer_timeout),
        ranks_(static_cast<std::size_t>(size)) {
    standings_.resize(ranks_.size());
    for (int r = 0; r < size; ++r) standings_[static_cast<std::size_t>(r)].rank = r;
  }

  void start() {
    door_->open(
        [this](const hello& h) {
          const bool known = h.rank >= 0 && !ranks_[static_cast<std::size_t>(h.rank)].link;
          return known ? hello_verdict{} : hello_verdict{hello_field::rank, 0, h.rank};
        },
        [this](tcp_link link, const hello& h) { admit(std::move(link), h.rank); });
    last_tick_ = clock::now();
    tick();
  }

  /// Who is where, for the text of verdicts.
  void describe(int rank, std::string host, long pid) {
    standing& s = standings_[static_cast<std::size_t>(rank)];
    s.host = std::move(host);
    s.pid = pid;
  }

  /// Who was turned away last because of TLS. Any thread.
  [[nodiscard]] std::string last_refusal() const { return door_->refused().text(); }

  /// Tells everybody that nobody watches any more, and closes.
  void stop() {
    stopped_ = true;
    door_->close();
    timer_.cancel();
    for (client& c : ranks_) {
      if (!c.link || c.link->closed()) continue;
      c.link->send(monitor_message::closing, {});
      c.link->close_after_sending();
    }
  }
  /// Nothing is left to send.
  [[nodiscard]] bool drained() const {
    for (const client& c : ranks_) {
      if (c.link && !c.link->closed() && !c.link->idle()) return false;
    }
    return true;
  }

 private:
  struct client {
    std::shared_ptr<tcp_control_link> link{};
    clock::time_point last_seen{};
    bool lost = false;
    bool silent = false;
  };
  struct open_question {
    fault_report report{};
    clock::time_point decide_at{};
    std::vector<bool> answered{};
  };

  void admit(tcp_link link, int rank) {
    client& c = ranks_[static_cast<std::size_t>(rank)];
    if (c.link) return;
    c.link = std::make_shared<tcp_control_link>(std::move(link));
    c.last_seen = clock::now();
    c.link->start([this, rank](monitor_message m, std::string_view p) { on_frame(rank, m, p); },
                  [this, rank](const boost::system::error_code&) { on_end(rank); });
    // Somebody who came has died before everybody was there.
    if (!first_loss_.empty()) c.link->send(monitor_message::verdict, first_loss_);
    if (++connected_ < ranks_.size()) return;
    broadcast(monitor_message::welcome, {});
  }

  void broadcast(monitor_message m, const std::string& payload) {
    for (client& c : ranks_) {
      if (c.link && !c.link->closed()) c.link->send(m, payload);
    }
  }

  void on_frame(int rank, monitor_message m, std::string_view payload) {
    const auto index = static_cast<std::size_t>(rank);
    ranks_[index].last_seen = clock::now();
    switch (m) {
      case monitor_message::part:
        if (auto arrivals = decode_arrivals(payload)) merge(index, *arrivals);
        break;
      case monitor_message::heartbeat:
        if (auto arrivals = decode_arrivals(payload)) merge(index, *arrivals);
        answered(index);
        break;
      case monitor_message::goodbye:
        if (auto arrivals = decode_arrivals(payload)) merge(index, *arrivals);
        standings_[index].left = true;
        answered(index);
        check_departures();
        dismiss_if_over();
        if (newly_left_.empty()) tell_departures_at_ = clock::now() + std::chrono::milliseconds{20};
        newly_left_.push_back(rank);
        schedule(tell_departures_at_);
        break;
      case monitor_message::report:
        if (auto report = decode_report(payload)) on_report(std::move(*report));
        break;
      case monitor_message::unformed:
        if (auto report = decode_report(payload)) judge_unformed(std::move(report->what));
        break;
      default: break;
    }
  }

  // What a rank did on a communicator that it has destroyed stays on record.
  void merge(std::size_t index, const std::vector<arrival>& news) {
    for (const arrival& a : news) {
      const arrival* const known = find_arrival(standings_[index], a.context);
      if (known != nullptr && known->entered == a.entered && known->completed == a.completed &&
          known->retired == a.retired)
        continue;
      changed_.insert(a.context);
      standings_[index].note(a);
      if (a.retired) forget_if_retired(a);
    }
  }

  // A communicator that its last member has destroyed; the world stays, for what its ranks did last.
  void forget_if_retired(const arrival& a) {
    if (a.context == 0) return;
    const auto has_retired = [&a](const standing& s) {
      const arrival* const known = find_arrival(s, a.context);
      return known != nullptr && known->retired;
    };
    const auto retired = std::count_if(standings_.begin(), standings_.end(), has_retired);
    if (retired < static_cast<std::ptrdiff_t>(a.members)) return;
    for (standing& s : standings_) s.arrivals.erase(a.context);
    changed_.erase(a.context);
    verdicts_.erase(a.context);
  }

  void on_end(int rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (stopped_ || standings_[index].left) return;
    ranks_[index].lost = true;
    const std::vector<int> all = lost_ranks();
    fault f;
    f.code = errc::peer_lost;
    f.culprit = rank;
    f.text = place_of(standings_[index]) + " died: its connections closed without a goodbye; when last heard it " +
             had_called(find_arrival(standings_[index], 0));
    if (all.size() > 1) {
      f.text += "; lost so far:";
      for (const int r : all) f.text += " " + std::to_string(r);
    }
    if (connected_ < ranks_.size() && first_loss_.empty()) first_loss_ = encode_report(f, {});
    decide(std::move(f));
    dismiss_if_over();
  }

  // For several at once: at the end of a large world everybody leaves in the same moment.
  void tell_departures() {
    std::string who;
    for (const int rank : std::exchange(newly_left_, {})) {
      detail::byte_writer(who).number(static_cast<std::uint32_t>(rank));
    }
    broadcast(monitor_message::departed, who);
  }

  [[nodiscard]] std::vector<int> lost_ranks() const {
    std::vector<int> all;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (ranks_[r].lost) all.push_back(static_cast<int>(r));
    }
    return all;
  }
  // A silent rank may be stopped for ever: nobody waits for it.
  void dismiss_if_over() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (!standings_[r].left && !ranks_[r].lost && !ranks_[r].silent) return;
    }
    broadcast(monitor_message::dismissed, {});
  }

  void on_report(fault_report r) {
    // The first cause has been told already.
    if (verdicts_.contains(r.what.context)) return;
    const bool suspicion = r.what.code == errc::peer_lost && r.what.context == every_context;
    if (suspicion || (r.what.code == errc::timed_out && r.what.sequence >= 0)) {
      // Who is suspected may be about to say goodbye; who has not arrived is asked now, not at the last heartbeat.
      open_question q;
      q.report = std::move(r);
      q.decide_at = clock::now() + std::chrono::milliseconds{100};
      q.answered.resize(ranks_.size(), false);
      questions_.push_back(std::move(q));
      broadcast(monitor_message::ask, {});
      schedule(questions_.back().decide_at);
      return;
    }
    decide(std::move(r.what));
  }

  /// A rank waits on a communicator for one that has left the world. If that never told of it, it never formed it.
  void judge_unformed(fault f) {
    const auto gone = static_cast<std::size_t>(f.culprit);
    if (verdicts_.contains(f.context) || gone >= ranks_.size() || !never_formed(standings_[gone], f.context)) return;
    f.code = errc::peer_lost;
    f.text = departure_text(standings_[gone], f.context, f.sequence);
    decide(std::move(f));
  }

  void answered(std::size_t index) {
    for (open_question& q : questions_) {
      q.answered[index] = true;
      bool all = q.report.what.code == errc::timed_out;
      for (std::size_t r = 0; r < ranks_.size() && all; ++r)
        all = q.answered[r] || standings_[r].left || ranks_[r].lost;
      if (all) q.decide_at = clock::now();
    }
    settle_questions(clock::now());
  }

  void settle_questions(clock::time_point now) {
    for (std::size_t i = 0; i < questions_.size();) {
      if (questions_[i].decide_at > now) {
        ++i;
        continue;
      }
      fault_report r = std::move(questions_[i].report);
      questions_.erase(questions_.begin() + static_cast<std::ptrdiff_t>(i));
      if (verdicts_.contains(r.what.context)) continue;
      if (r.what.code == errc::timed_out) {
        auto disagreement = judge_agreement(standings_, r.what.context);
        decide(disagreement ? std::move(*disagreement)
                            : judge_timeout(std::move(r.what), standings_, members_or_all(r.members)));
        continue;
      }
      const auto suspect = static_cast<std::size_t>(r.what.culprit);
      if (suspect >= ranks_.size() || ranks_[suspect].lost) continue;
      if (standings_[suspect].left) {
        std::string who;
        detail::byte_writer(who).number(static_cast<std::uint32_t>(suspect));
        const auto reporter = static_cast<std::size_t>(r.what.reporter);
        if (reporter < ranks_.size() && ranks_[reporter].link)
          ranks_[reporter].link->send(monitor_message::departed, who);
        continue;
      }
      decide(std::move(r.what));
    }
  }

  [[nodiscard]] std::vector<int> members_or_all(const std::vector<int>& members) const {
    std::vector<int> valid;
    for (const int m : members) {
      if (m >= 0 && static_cast<std::size_t>(m) < ranks_.size()) valid.push_back(m);
    }
    return valid;
  }

  void check_departures() {
    const auto judged = [this](std::uint64_t context) { return verdicts_.contains(context); };
    while (auto f = judge_departures(standings_, judged)) decide(std::move(*f));
  }

  void decide(fault f) {
    const std::uint64_t context = f.context;
    broadcast(monitor_message::verdict, encode_report(f, {}));
    if (context != every_context) verdicts_.emplace(context, true);
  }

  void schedule(clock::time_point at) {
    if (at < timer_.expiry()) {
      timer_.expires_at(at);
      wait();
    }
  }
  void wait() {
    detail::when_expired(timer_, [this](const boost::system::error_code& cancelled) {
      if (!cancelled && !stopped_) tick();
    });
  }

  void tick() {
    const auto now = clock::now();
    const auto beat = peer_timeout_ / 10;
    // If this thread itself was stopped, nobody was heard: everybody gets a fresh start.
    if (now - last_tick_ > 4 * beat) {
      for (client& c : ranks_) c.last_seen = now;
    }
    last_tick_ = now;
    settle_questions(now);
    if (!newly_left_.empty() && now >= tell_departures_at_) tell_departures();
    if (now >= next_beat_) {
      next_beat_ = now + beat;
      broadcast(monitor_message::beat, {});
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        client& c = ranks_[r];
        if (!c.link || c.lost || c.silent || standings_[r].left || now - c.last_seen <= peer_timeout_) continue;
        c.silent = true;
        fault f;
        f.code = errc::peer_unresponsive;
        f.culprit = static_cast<int>(r);
        f.text = place_of(standings_[r]) + " has sent no heartbeat for " +
                 std::to_string(std::chrono::duration<double>(now - c.last_seen).count()).substr(0, 4) +
                 " s: it is stopped or cut off; when last heard it " + had_called(find_arrival(standings_[r], 0));
        decide(std::move(f));
        dismiss_if_over();
      }
      for (const std::uint64_t context : std::exchange(changed_, {})) {
        if (verdicts_.contains(context)) continue;
        if (auto f = judge_agreement(standings_, context)) decide(std::move(*f));
      }
      check_departures();
    }
    auto next = newly_left_.empty() ? next_beat_ : std::min(next_beat_, tell_departures_at_);
    for (const open_question& q : questions_) next = std::min(next, q.decide_at);
    timer_.expires_at(next);
    wait();
  }

  std::shared_ptr<tcp_doorway> door_;
  boost::asio::steady_timer timer_;
  std::chrono::nanoseconds peer_timeout_;
  std::vector<client> ranks_;
  std::vector<standing> standings_{};
  std::vector<open_question> questions_{};
  std::unordered_map<std::uint64_t, bool> verdicts_{};
  std::set<std::uint64_t> changed_{};  // communicators on which somebody has moved since they were compared
  std::size_t connected_ = 0;
  std::string first_loss_{};  // a verdict, encoded
  std::vector<int> newly_left_{};
  clock::time_point tell_departures_at_{};
  clock::time_point last_tick_{};
  clock::time_point next_beat_{};
  bool stopped_ = false;
};

}  // namespace cohort::transport
