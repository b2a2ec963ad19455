// SPDX-License-Identifier: BSL-1.0
// Processes call a store at random and write down what they called, when, and what it gave, while some of them are
// killed; then each key's history is judged: linearizable or not. COHORT_SOAK_SECONDS says how long (2 if unset).
#include <doctest/doctest.h>

#include <cohort/store/file_store.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_server.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../support/child_process.hpp"
#include "../support/free_port.hpp"
#include "../support/linearizability.hpp"
#include "../support/store_model.hpp"

namespace {

using namespace std::chrono_literals;
using harness::store_action;
using history = std::vector<harness::recorded<harness::store_operation>>;

std::int64_t now() {
  timespec t{};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return std::int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

void rest(std::chrono::microseconds time) {
  const timespec nap{0, static_cast<long>(time.count() * 1000)};
  ::nanosleep(&nap, nullptr);
}

/// Waits for the first line of a diary; there is nothing else to wait on.
bool has_begun(const std::string& path) {
  struct stat about {};
  for (int i = 0; i < 300000; ++i) {
    if (::stat(path.c_str(), &about) == 0 && about.st_size > 0) return true;
    rest(200us);
  }
  return false;
}

/// What one client writes down. Each line goes to the kernel at once, so that nothing is lost with the process.
class diary {
 public:
  explicit diary(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw std::runtime_error("cannot write " + path);
  }
  diary(const diary&) = delete;
  diary& operator=(const diary&) = delete;
  ~diary() { ::close(file_); }

  void calls(store_action action, const std::string& key, const std::string& first, const std::string& second) {
    const std::int64_t at = now();
    write("call " + std::to_string(at) + " " + std::to_string(static_cast<int>(action)) + " " + key + " <" + first +
          " <" + second + "\n");
  }
  void got(const std::optional<std::string>& result) {
    const std::int64_t at = now();
    write("got " + std::to_string(at) + (result ? " <" + *result : " none") + "\n");
  }

 private:
  void write(const std::string& line) const {
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error("a line of the diary could not be written");
    }
  }
  int file_;
};

/// Everything that one client wrote, by key. What it was doing when it died is pending.
void read_diary(const std::string& path, int client, std::map<std::string, history>& keys) {
  std::ifstream file(path);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  std::istringstream lines(all.substr(0, all.rfind('\n') + 1));  // half a line: it had not yet called
  std::string line;
  harness::recorded<harness::store_operation>* open = nullptr;
  std::string open_key;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    std::string kind;
    std::int64_t at = 0;
    words >> kind >> at;
    if (kind == "call") {
      int action = 0;
      std::string key;
      std::string first;
      std::string second;
      words >> action >> key >> first >> second;
      harness::store_operation op{
          static_cast<store_action>(action), client, first.substr(1), second.substr(1), true, std::nullopt};
      keys[key].push_back({at, harness::never, op});
      open = &keys[key].back();
      open_key = key;
      continue;
    }
    REQUIRE(kind == "got");
    REQUIRE(open != nullptr);
    std::string result;
    words >> result;
    open->returned = at;
    open->what.pending = false;
    if (result != "none") open->what.result = result.substr(1);
    open = nullptr;
  }
  if (open == nullptr) return;
  const bool pops = open->what.action == store_action::pop || open->what.action == store_action::try_pop;
  if (!pops) return;
  harness::store_operation back{store_action::give_back, client, {}, {}, true, std::nullopt};
  keys[open_key].push_back({open->called, harness::never, back});
}

constexpr int keys_of_a_kind = 3;

/// One client: a random call for a random key, again and again.
template <cohort::store Store>
class caller {
 public:
  caller(Store& store, diary& out, int client, const std::string& round, unsigned seed)
      : store_(store), out_(out), client_(client), round_(round), random_(seed) {}

  void call() {
    static constexpr const char* kinds[] = {"v", "n", "q"};
    const unsigned kind = pick(3);
    const std::string key = round_ + kinds[kind] + std::to_string(pick(keys_of_a_kind));
    const std::string mine = std::to_string(client_ * 100000 + ++count_);
    if (kind == 0) return call_value(key, mine);
    if (kind == 1) return call_number(key, mine);
    call_queue(key, mine);
  }

  /// What is left at the end, without changing more than it must.
  void look_at_everything() {
    for (int i = 0; i < keys_of_a_kind; ++i) {
      try_get(round_ + "v" + std::to_string(i));
      try_get(round_ + "n" + std::to_string(i));
      for (bool more = true; more;) more = try_pop(round_ + "q" + std::to_string(i));
    }
  }

 private:
  [[nodiscard]] unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  [[nodiscard]] static cohort::deadline soon() { return cohort::deadline_after(60s); }
  // Long enough that some waits are served, short enough that some are not.
  [[nodiscard]] cohort::deadline shortly() { return cohort::deadline_after(std::chrono::microseconds(pick(3000))); }

  template <class Call>
  void record(store_action action, const std::string& key, const std::string& first, const std::string& second,
              const Call& run) {
    out_.calls(action, key, first, second);
    std::optional<std::string> result;
    try {
      result = run();
    } catch (const cohort::error& e) {
      // A wait that is over gives nothing; of anything else, like a server that is late, nothing is known.
      const std::string_view text = e.what();
      const bool waited = text.find("missing: ") != std::string_view::npos || text.find("no item") != std::string::npos;
      if (e.condition() != cohort::errc::timed_out || !waited) throw;
    }
    out_.got(result);
    if (result && action != store_action::set) seen_[key] = *result;
  }

  void try_get(const std::string& key) {
    record(store_action::try_get, key, "", "", [&] { return store_.try_get(key, soon()); });
  }
  bool try_pop(const std::string& key) {
    bool there = false;
    record(store_action::try_pop, key, "", "", [&] {
      auto item = store_.try_queue_pop(key, soon());
      there = item.has_value();
      return item;
    });
    return there;
  }
  void set(const std::string& key, const std::string& value) {
    record(store_action::set, key, value, "", [&] {
      store_.set(key, value, soon());
      return std::string();
    });
  }
  void erase(const std::string& key) {
    record(store_action::erase, key, "", "", [&] { return std::string(store_.delete_key(key, soon()) ? "1" : "0"); });
  }
  void check(const std::string& key) {
    record(store_action::check, key, "", "",
           [&] { return std::string(store_.check(std::vector<std::string>{key}, soon()) ? "1" : "0"); });
  }
  void compare_set(const std::string& key, const std::string& mine) {
    const std::string expected = seen_[key];  // often right, as others write too
    record(store_action::compare_set, key, expected, mine,
           [&] { return store_.compare_set(key, expected, mine, soon()); });
  }
  void get(const std::string& key) {
    record(store_action::get, key, "", "", [&] { return store_.get(key, shortly()); });
  }

  void call_value(const std::string& key, const std::string& mine) {
    switch (pick(8)) {
      case 0: return set(key, mine);
      case 1: return get(key);
      case 2:
      case 3: return try_get(key);
      case 4: return compare_set(key, mine);
      case 5: return check(key);
      case 6: return erase(key);
      default:
        record(store_action::append, key, mine, "", [&] { return std::to_string(store_.append(key, mine, soon())); });
    }
  }
  void call_number(const std::string& key, const std::string& mine) {
    switch (pick(6)) {
      case 0: return set(key, mine);
      case 1: return try_get(key);
      case 2: return compare_set(key, mine);
      case 3: return erase(key);
      default: {
        const int amount = static_cast<int>(pick(7)) - 3;
        record(store_action::add, key, std::to_string(amount), "",
               [&] { return std::to_string(store_.add(key, amount, soon())); });
      }
    }
  }
  void call_queue(const std::string& key, const std::string& mine) {
    switch (pick(9)) {
      case 0:
      case 1:
      case 2:
        return record(store_action::push, key, mine, "", [&] {
          store_.queue_push(key, mine, soon());
          return std::string();
        });
      case 3:
      case 4: return record(store_action::pop, key, "", "", [&] { return store_.queue_pop(key, shortly()); });
      case 5: return static_cast<void>(try_pop(key));
      case 6: return pick(4) == 0 ? erase(key) : check(key);
      default: record(store_action::length, key, "", "", [&] { return std::to_string(store_.queue_len(key, soon())); });
    }
  }

  Store& store_;
  diary& out_;
  int client_;
  std::string round_;
  std::mt19937 random_;
  int count_ = 0;
  std::map<std::string, std::string> seen_{};
};

/// A directory that goes with the test.
class scratch {
 public:
  scratch() {
    path_ = std::filesystem::temp_directory_path().string() + "/cohort-history-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("scratch: mkdtemp failed");
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

constexpr int survivors = 3;
constexpr int victims = 4;
constexpr int calls_of_a_survivor = 150;

struct tally {
  int rounds = 0;
  std::size_t calls = 0;
  std::size_t pending = 0;
};

std::string text_of(const harness::recorded<harness::store_operation>& r) {
  const harness::store_operation& o = r.what;
  return "client " + std::to_string(o.client) + " [" + std::to_string(r.called) + ", " +
         (r.returned == harness::never ? "?" : std::to_string(r.returned)) + "] action " +
         std::to_string(static_cast<int>(o.action)) + " (" + o.first + ", " + o.second + ") -> " +
         (o.pending ? "?" : o.result.value_or("nothing")) + "\n";
}

void judge(const std::map<std::string, history>& keys, tally& sum) {
  for (const auto& entry : keys) {
    const std::string& key = entry.first;
    const history& told = entry.second;
    sum.calls += told.size();
    for (const auto& each : told) sum.pending += each.returned == harness::never ? 1U : 0U;
    const harness::linearization found = harness::find_linearization(harness::store_key_model{}, told);
    std::string all;
    if (!found.exists) {
      for (const auto& each : told) all += text_of(each);
    }
    INFO("key " << key << ", " << found.deepest << " of " << told.size() << " calls could be put in order:\n" << all);
    CHECK_FALSE(found.gave_up);
    CHECK(found.exists);
  }
}

/// The same histories with one value that nobody wrote: if that is accepted, the judge has not looked.
void judge_forgery(std::map<std::string, history> keys) {
  for (auto& [key, told] : keys) {
    for (auto& each : told) {
      if (each.what.pending || !each.what.result || each.what.action != store_action::try_get) continue;
      each.what.result = *each.what.result + "0";
      CHECK_FALSE(harness::find_linearization(harness::store_key_model{}, told).exists);
      return;
    }
  }
}

/// Rounds of clients and kills until the time is over. `open()` gives a store, in whichever process it is called.
template <class Open>
tally play(const Open& open) {
  const char* const asked = std::getenv("COHORT_SOAK_SECONDS");
  const auto length = std::chrono::seconds(asked == nullptr ? 2 : std::max(1, std::atoi(asked)));
  const auto started = std::chrono::steady_clock::now();
  std::mt19937 random(23);
  tally sum;
  for (; sum.rounds == 0 || std::chrono::steady_clock::now() - started < length; ++sum.rounds) {
    const scratch dir;
    const std::string round = std::to_string(sum.rounds) + "/";
    const auto name = [&](int client) { return dir.file(std::to_string(client)); };
    std::vector<harness::child_process> clients;
    for (int c = 0; c < survivors + victims; ++c) {
      const auto seed = static_cast<unsigned>(random());
      clients.emplace_back([&, c, seed] {
        auto store = open();
        diary out(name(c));
        caller<decltype(store)> me(store, out, c, round, seed);
        try {
          for (int i = 0; c >= survivors || i < calls_of_a_survivor; ++i) me.call();
        } catch (const cohort::error& e) {
          // A machine so busy that a wait of 3 ms is not answered within its grace: its outcome is not known.
          if (e.condition() != cohort::errc::timed_out) throw;
          while (c >= survivors) ::pause();
        }
        return 0;
      });
    }
    for (int v = survivors; v < survivors + victims; ++v) {
      REQUIRE(has_begun(name(v)));
      rest(std::chrono::microseconds(random() % 8000));  // the random moment of the kill
      clients[static_cast<std::size_t>(v)].send_signal(SIGKILL);
      CHECK(clients[static_cast<std::size_t>(v)].wait() == 128 + SIGKILL);
    }
    for (int s = 0; s < survivors; ++s) CHECK(clients[static_cast<std::size_t>(s)].wait() == 0);
    const int last = survivors + victims;
    {
      auto store = open();
      diary out(name(last));
      caller<decltype(store)>(store, out, last, round, 0).look_at_everything();
    }
    std::map<std::string, history> keys;
    for (int c = 0; c <= last; ++c) read_diary(name(c), c, keys);
    judge(keys, sum);
    if (sum.rounds == 0) judge_forgery(keys);
  }
  MESSAGE(sum.rounds << " rounds, " << sum.calls << " calls, " << sum.pending << " of them of unknown outcome");
  CHECK(sum.pending > 0);
  return sum;
}

}  // namespace

TEST_CASE("store_history: calls of a TCP store are linearizable while clients are killed") {
  const cohort::endpoint where{"127.0.0.1", static_cast<std::uint16_t>(harness::free_port())};
  // In a process of its own, so that this one has no thread and can fork at any time.
  harness::child_process server([&] {
    cohort::tcp_store_server_options options;
    options.where = where;
    const cohort::tcp_store_server serving(options);
    for (;;) ::pause();
    return 0;
  });
  play([&] {
    cohort::tcp_store_options options;
    options.where = where;
    return cohort::tcp_store(options, cohort::deadline_after(60s));
  });
  server.send_signal(SIGKILL);
  CHECK(server.wait() == 128 + SIGKILL);
}

TEST_CASE("store_history: calls of a file store are linearizable while clients are killed") {
  const scratch dir;
  const std::string path = dir.file("store");
  play([&] { return cohort::file_store(path, 0, cohort::deadline_after(60s)); });
}
