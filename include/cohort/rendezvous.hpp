// SPDX-License-Identifier: BSL-1.0
// All ranks of a job meet at a store and leave with the same table of addresses, or all with the same error. Between
// launch.hpp, which says who this process is, and the transports, which connect to what the table says.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/detail/host_name.hpp>
#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>
#include <cohort/store.hpp>
#include <cohort/store/prefix_store.hpp>
#include <cohort/uri.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cohort {

/// One rank as the others see it.
struct peer_address {
  int rank = -1;
  std::string host{};     ///< the name of its host, for messages and for telling hosts apart
  std::string address{};  ///< where it listens; "" when it does not
  std::uint16_t port = 0;
  long pid = 0;
  std::string blob{};  ///< whatever its transport wants the others to know, at most 1 MiB
  friend bool operator==(const peer_address&, const peer_address&) = default;
};

/// This process as `rank`, with its host and its pid.
[[nodiscard]] inline peer_address this_process(int rank) {
  peer_address self;
  self.rank = rank;
  self.host = detail::host_name();
  self.pid = static_cast<long>(::getpid());
  return self;
}

struct rendezvous_options {
  int world_size = 1;
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);
  std::string run_id{};        ///< tells jobs apart that share a store
  std::uint32_t epoch = 0;     ///< tells the meetings of one job apart, before and after a restart
  std::string name = "world";  ///< tells several meetings of one epoch apart
  /// Called on rank 0 whenever a rank has joined, with the number of ranks that have and a list of those that have
  /// not, in ascending order.
  std::function<void(int joined, const std::vector<int>& missing)> on_progress{};
};

namespace detail {

struct rendezvous_record {
  peer_address peer{};
  int world_size = 0;
  std::uint64_t nonce = 0;  ///< makes two claims of one rank differ, even in one process
};

inline void write_peer(byte_writer& to, const peer_address& p) {
  to.number(static_cast<std::uint32_t>(p.rank)).number(p.port).number(static_cast<std::uint64_t>(p.pid));
  to.text(p.host).text(p.address).text(p.blob);
}
[[nodiscard]] inline peer_address read_peer(byte_reader& from) {
  peer_address p;
  p.rank = static_cast<int>(from.number<std::uint32_t>());
  p.port = from.number<std::uint16_t>();
  p.pid = static_cast<long>(from.number<std::uint64_t>());
  p.host = from.text(1024);
  p.address = from.text(1024);
  p.blob = from.text(std::size_t{1} << 20);
  return p;
}

[[nodiscard]] inline std::string encode_record(const rendezvous_record& r) {
  std::string bytes;
  byte_writer to(bytes);
  to.number(static_cast<std::uint32_t>(r.world_size)).number(r.nonce);
  write_peer(to, r.peer);
  return bytes;
}

/// One rank's part in one meeting.
///
/// Keys, under a prefix of job, epoch and name: `size` holds the record of the first rank, `rank/R` the record of
/// rank R, `table/I` the pieces of the table. `outcome` is written once, by compare_set: whoever succeeds first or
/// fails first decides for all, so that no rank leaves with a table while another leaves with an error.
class meeting {
 public:
  meeting(any_store& s, const peer_address& self, const rendezvous_options& options)
      : options_(options),
        keys_(prefix_of(options), s),
        started_(std::chrono::steady_clock::now()),
        until_(deadline_after(options.timeout)) {
    std::random_device entropy;
    mine_.peer = self;
    mine_.world_size = options.world_size;
    mine_.nonce = (std::uint64_t{entropy()} << 32) | entropy();
  }

  [[nodiscard]] std::vector<peer_address> meet() {
    join();
    return self() == 0 ? follow(lead()) : follow(await());
  }

 private:
  static constexpr std::size_t most_text = 4096;
  static constexpr std::size_t piece = std::size_t{4} << 20;
  static constexpr std::chrono::milliseconds look_up_every{100};
  static constexpr std::chrono::milliseconds farewell{1000};

  [[nodiscard]] int self() const noexcept { return mine_.peer.rank; }
  [[nodiscard]] static std::string prefix_of(const rendezvous_options& o) {
    return "cohort/meet/" + std::to_string(fnv1a(o.run_id)) + "/" + std::to_string(o.epoch) + "/" + o.name + "/";
  }
  [[nodiscard]] static std::string rank_key(int rank) { return "rank/" + std::to_string(rank); }

  [[nodiscard]] static std::string who(const peer_address& p) {
    return "rank " + std::to_string(p.rank) + " (host " + p.host + ", pid " + std::to_string(p.pid) + ")";
  }

  [[nodiscard]] rendezvous_record decode_record(std::string_view bytes) const {
    byte_reader from(bytes);
    rendezvous_record r;
    r.world_size = static_cast<int>(from.number<std::uint32_t>());
    r.nonce = from.number<std::uint64_t>();
    r.peer = read_peer(from);
    if (!from.complete()) throw failure(errc::protocol_error, -1, "a record in " + keys_.describe() + " is malformed");
    if (r.world_size < 1 || r.world_size > max_world_size) {
      throw failure(errc::protocol_error, -1,
                    "a record in " + keys_.describe() + " has a world size of " + std::to_string(r.world_size) +
                        ", expected 1.." + std::to_string(max_world_size));
    }
    return r;
  }

  [[nodiscard]] error failure(errc code, int culprit, const std::string& text) const {
    error_details details;
    details.rank = self();
    details.peer = culprit;
    details.host = mine_.peer.host;
    details.operation = "rendezvous";
    details.elapsed = std::chrono::steady_clock::now() - started_;
    return error(code, "rendezvous: " + text, details);
  }

  /// Writes the outcome unless there is one, and returns the one that stands.
  [[nodiscard]] std::string decide(const std::string& outcome) {
    return keys_.compare_set("outcome", "", outcome, deadline_after(farewell));
  }
  [[nodiscard]] std::string decide_failure(errc code, int culprit, const std::string& text) {
    std::string outcome = "F";
    byte_writer to(outcome);
    to.number(static_cast<std::uint32_t>(code))
        .number(static_cast<std::uint32_t>(culprit))
        .text(text.substr(0, most_text));
    return decide(outcome);
  }

  void join() {
    const std::string record = encode_record(mine_);
    const std::string first = keys_.compare_set("size", "", record, until_);
    const rendezvous_record other = decode_record(first);
    if (other.world_size != options_.world_size) {
      const std::string text = "world sizes differ: " + who(mine_.peer) + " was started with " +
                               std::to_string(options_.world_size) + ", " + who(other.peer) + " with " +
                               std::to_string(other.world_size);
      (void)decide_failure(errc::world_size_mismatch, self(), text);
      wait_for_readers(std::max(options_.world_size, other.world_size), other.peer.rank);
      throw failure(errc::world_size_mismatch, other.peer.rank, text);
    }
    const std::string held = keys_.compare_set(rank_key(self()), "", record, until_);
    if (held == record) return;
    const peer_address rival = decode_record(held).peer;
    std::string text = "rank " + std::to_string(self()) + " is claimed twice: by host " + rival.host + ", pid " +
                       std::to_string(rival.pid) + " and by host " + mine_.peer.host + ", pid " +
                       std::to_string(mine_.peer.pid);
    if (rival.host == mine_.peer.host && ::kill(static_cast<pid_t>(rival.pid), 0) != 0 && errno == ESRCH) {
      text += "; the first of them no longer runs: if " + keys_.describe() +
              " is left over from an earlier run, remove it or give this run another id";
    }
    (void)decide_failure(errc::duplicate_rank, self(), text);
    throw failure(errc::duplicate_rank, self(), text);
  }

  /// Rank 0: returns the outcome. A failure of its own is everybody's, as nobody else makes the table.
  [[nodiscard]] std::string lead() {
    try {
      return collect();
    } catch (const error& e) {
      constexpr std::string_view in_front = "rendezvous: ";
      std::string_view text = e.what();
      if (text.starts_with(in_front)) text.remove_prefix(in_front.size());
      std::string outcome;
      quietly([&] { outcome = decide_failure(e.condition(), 0, std::string(text)); });
      if (outcome.empty()) throw without_store(e, text);
      return outcome;
    }
  }

  /// The store is gone, and the others hear of that from it. Who was missing while it answered is known all the same.
  [[nodiscard]] error without_store(const error& e, std::string_view text) const {
    if (missing_.empty()) return e;
    const errc code = e.condition() == errc::timed_out ? errc::rendezvous_timeout : e.condition();
    return failure(code, culprit_of(missing_),
                   joined_text(missing_) + " when " + keys_.describe() + " last answered; then " + std::string(text));
  }

  /// Waits for all records, publishes the table, and returns the outcome.
  [[nodiscard]] std::string collect() {
    std::vector<std::string> absent;
    for (int r = 0; r < options_.world_size; ++r) absent.push_back(rank_key(r));
    std::size_t reported = absent.size() + 1;
    for (deadline slice = started_;; slice = std::min(until_, deadline_after(look_up_every))) {
      absent = keys_.wait_until(absent, slice);
      missing_ = ranks_of(absent);
      if (options_.on_progress && absent.size() < reported) {
        reported = absent.size();
        options_.on_progress(options_.world_size - static_cast<int>(reported), missing_);
      }
      if (absent.empty()) return publish();
      if (std::optional<std::string> early = keys_.try_get("outcome", until_)) return *std::move(early);
      if (std::chrono::steady_clock::now() >= until_) return give_up(missing_);
    }
  }

  [[nodiscard]] std::string publish() {
    std::string table;
    byte_writer to(table);
    for (int r = 0; r < options_.world_size; ++r) write_peer(to, decode_record(keys_.get(rank_key(r), until_)).peer);
    std::uint32_t pieces = 0;
    for (std::size_t at = 0; at < table.size(); at += piece) {
      keys_.set("table/" + std::to_string(pieces++), std::string_view(table).substr(at, piece), until_);
    }
    std::string outcome = "T";
    byte_writer(outcome).number(pieces);
    return decide(outcome);
  }

  /// Every other rank: waits for the outcome.
  [[nodiscard]] std::string await() {
    const std::vector<std::string> outcome{"outcome"};
    if (keys_.wait_until(outcome, until_).empty()) return keys_.get("outcome", deadline_after(farewell));
    std::vector<std::string> everyone;
    for (int r = 0; r < options_.world_size; ++r) everyone.push_back(rank_key(r));
    return give_up(ranks_of(keys_.wait_until(everyone, started_)));
  }

  [[nodiscard]] std::string give_up(const std::vector<int>& missing) {
    return decide_failure(errc::rendezvous_timeout, culprit_of(missing),
                          joined_text(missing) + " after " + duration_text(options_.timeout));
  }
  [[nodiscard]] std::string joined_text(const std::vector<int>& missing) const {
    const int size = options_.world_size;
    return std::to_string(size - static_cast<int>(missing.size())) + "/" + std::to_string(size) + " joined, " +
           (missing.empty() ? "but rank 0 has not published their addresses" : "missing " + ranks_text(missing));
  }
  [[nodiscard]] static int culprit_of(const std::vector<int>& missing) noexcept {
    return missing.size() == 1 ? missing.front() : -1;
  }

  /// What the outcome means for this rank.
  [[nodiscard]] std::vector<peer_address> follow(const std::string& outcome) {
    byte_reader from(std::string_view(outcome).substr(std::min<std::size_t>(outcome.size(), 1)));
    if (outcome.starts_with('T')) return read_table(from.number<std::uint32_t>());
    const auto code = static_cast<errc>(from.number<std::uint32_t>());
    const auto culprit = static_cast<int>(from.number<std::uint32_t>());
    const error cause = failure(code, culprit, std::string(from.text(most_text)));
    if (self() == 0) {
      wait_for_readers(options_.world_size);
    } else {
      quietly([&] { keys_.set("read/" + std::to_string(self()), "1", deadline_after(farewell)); });
    }
    throw cause;
  }

  [[nodiscard]] std::vector<peer_address> read_table(std::uint32_t pieces) {
    std::string table;
    for (std::uint32_t i = 0; i < pieces; ++i) table += keys_.get("table/" + std::to_string(i), until_);
    std::vector<peer_address> peers;
    byte_reader from(table);
    for (int r = 0; r < options_.world_size; ++r) {
      peers.push_back(read_peer(from));
      if (peers.back().rank != r) break;
    }
    if (!from.complete() || peers.back().rank != options_.world_size - 1) {
      throw failure(errc::protocol_error, 0, "the table in " + keys_.describe() + " is malformed");
    }
    return peers;
  }

  /// Rank 0 usually serves the store: were it to leave at once, the others would learn that the store went away
  /// instead of why. It waits for those who have joined; `here` is there too, though it may not have said so yet.
  void wait_for_readers(int world_size, int here = -1) {
    if (self() != 0) return;
    quietly([&] {
      const deadline last = deadline_after(farewell);
      std::vector<std::string> readers;
      for (int r = 1; r < world_size; ++r) readers.push_back(rank_key(r));
      const std::vector<int> absent = ranks_of(keys_.wait_until(readers, started_));
      readers.clear();
      for (int r = 1; r < world_size; ++r) {
        const bool joined = r == here || !std::binary_search(absent.begin(), absent.end(), r);
        if (joined) readers.push_back("read/" + std::to_string(r));
      }
      (void)keys_.wait_until(readers, last);
    });
  }

  /// The first failure is the one to report; what fails while it is being handed on is not.
  template <class F>
  static void quietly(const F& f) noexcept {
    try {
      f();
    } catch (...) {}
  }

  [[nodiscard]] static std::vector<int> ranks_of(const std::vector<std::string>& rank_keys) {
    std::vector<int> ranks;
    for (const std::string& key : rank_keys) {
      ranks.push_back(static_cast<int>(whole_integer(std::string_view(key).substr(5)).value_or(-1)));
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  const rendezvous_options& options_;
  prefix_store<any_store&> keys_;
  rendezvous_record mine_{};
  std::vector<int> missing_{};  ///< rank 0: when the store last said
  std::chrono::steady_clock::time_point started_;
  deadline until_;
};

}  // namespace detail

/// Meets the other ranks of the job at `s` and returns all of them, by rank.
///
/// Result:    the same table on every rank, or an exception with the same text on every rank that is present
/// Needs:     `self.rank` in 0..world_size-1; every rank comes with the same run id, epoch and name
/// Completes: when all ranks have joined
/// Errors:    rendezvous_timeout "3/4 joined, missing rank 3 after 5 s"; duplicate_rank naming both processes;
///            world_size_mismatch naming both sizes and who has them; those of the store, which name its address, on rank
///            0 with who was missing when it last answered (rendezvous_timeout, if it then did not)
/// Lifetime:  whoever serves the store keeps it until the ranks have connected to each other; after an error the
///            function itself stays up to a second on rank 0, so that the others can read the reason
/// Cost:      rank 0 reads one record per rank; every rank reads one table
[[nodiscard]] inline std::vector<peer_address> rendezvous(any_store& s, const peer_address& self,
                                                          const rendezvous_options& options) {
  const auto refuse = [](const std::string& what) { throw error(errc::invalid_argument, "rendezvous: " + what); };
  if (options.world_size < 1 || options.world_size > max_world_size) {
    refuse("world size " + std::to_string(options.world_size) + ", expected 1.." + std::to_string(max_world_size));
  }
  if (self.rank < 0 || self.rank >= options.world_size) {
    refuse("rank " + std::to_string(self.rank) + ", expected 0.." + std::to_string(options.world_size - 1));
  }
  if (options.timeout <= std::chrono::nanoseconds(0)) refuse("the timeout is not positive");
  if (self.blob.size() > (std::size_t{1} << 20)) {
    refuse("a blob of " + std::to_string(self.blob.size()) + " bytes, the limit is 1 MiB");
  }
  if (self.host.size() > 1024 || self.address.size() > 1024) refuse("a host or an address of more than 1024 bytes");
  if (options.name.size() > 64) refuse("a name of more than 64 bytes");
  return detail::meeting(s, self, options).meet();
}

}  // namespace cohort
