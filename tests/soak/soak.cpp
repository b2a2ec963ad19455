// SPDX-License-Identifier: BSL-1.0
// Random groups, tags, sizes and calls over all ranks for a given time: every rank draws the same plan from the same
// seed, checks all that it receives, and at the end that no message is lost, no file descriptor is left open and memory
// has not grown.
//
// Usage: cohort run -n 8 -- soak [SECONDS [SEED]]
#include <cohort/cohort.hpp>

#include <dirent.h>
#include <unistd.h>
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COHORT_SOAK_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COHORT_SOAK_SANITIZED
#endif

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#ifdef COHORT_SOAK_SANITIZED
// Of <sanitizer/allocator_interface.h>, which g++ does not bring.
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

using namespace cohort;

namespace {

using world_type = communicator<cpu>;
using clock_type = std::chrono::steady_clock;

struct totals {
  std::uint64_t rounds = 0;
  std::uint64_t groups = 0;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wrong = 0;
};

long open_descriptors() {
  long count = 0;
  if (DIR* const all = ::opendir("/proc/self/fd")) {
    while (::readdir(all) != nullptr) ++count;
    ::closedir(all);
  }
  return count;
}

/// KiB that this process holds: what is in memory; under a sanitizer, which keeps what was freed (AddressSanitizer 256 MiB
/// of it) and shadows the rest, what is allocated and not freed.
long memory_in_use() {
#ifdef COHORT_SOAK_SANITIZED
  return static_cast<long>(__sanitizer_get_current_allocated_bytes() / 1024);
#else
  long total = 0;
  long pages = 0;
  if (std::FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%ld %ld", &total, &pages) != 2) pages = 0;
    std::fclose(f);
  }
  return pages * (::sysconf(_SC_PAGESIZE) / 1024);
#endif
}

/// What a message of this number holds at this place.
std::uint32_t element_of(std::uint64_t message, std::size_t i) {
  return static_cast<std::uint32_t>(message * 2654435761U + i * 40503U);
}

/// One rank's part of the soak. `plan_` is drawn alike on every rank, and by nothing that differs between them.
class soak {
 public:
  soak(const world_type& world, std::uint64_t seed) : world_(world), plan_(seed) {}

  [[nodiscard]] const totals& result() const noexcept { return totals_; }

  task<> round() {
    ++totals_.rounds;
    switch (draw(8)) {
      case 0: co_await new_group(); break;
      case 1: co_await new_split(); break;
      case 2: co_await objects(); break;
      case 3: co_await wildcards(); break;
      case 4: co_await long_and_short(); break;
      default: co_await messages(); break;
    }
    if (!groups_.empty()) co_await collectives(groups_[draw(groups_.size())]);
    if (totals_.rounds % 16 == 0) co_await collectives(world_);
    while (groups_.size() > 24) groups_.pop_front();
  }

  /// Nobody is left with a message that another counted as sent.
  task<> settle() {
    groups_.clear();
    const std::uint64_t sent = co_await world_.all_reduce(totals_.sent, sum{});
    const std::uint64_t received = co_await world_.all_reduce(totals_.received, sum{});
    check(sent == received, "messages were lost");
    check(!world_.try_probe(from_any, any_tag).has_value(), "a message is left that nobody asked for");
  }

 private:
  void check(bool good, const char* what) {
    if (good) return;
    ++totals_.wrong;
    std::printf("round %llu: %s\n", static_cast<unsigned long long>(totals_.rounds), what);
  }
  std::size_t draw(std::size_t below) { return static_cast<std::size_t>(plan_() % below); }
  std::size_t draw_size() {
    // Mostly short, some around the length that is announced first, a few long.
    const std::size_t kind = draw(16);
    if (kind == 0) return 0;
    if (kind < 11) return draw(300);
    if (kind < 15) return 60000 + draw(12000);
    return draw(400000);
  }
  int draw_rank() { return static_cast<int>(draw(static_cast<std::size_t>(world_.size()))); }

  static std::vector<std::uint32_t> filled(std::uint64_t message, std::size_t count) {
    std::vector<std::uint32_t> v(count);
    for (std::size_t i = 0; i < count; ++i) v[i] = element_of(message, i);
    return v;
  }
  void check_message(std::uint64_t message, const std::vector<std::uint32_t>& v, std::size_t count) {
    ++totals_.received;
    totals_.bytes += v.size() * 4;
    bool good = v.size() == count;
    for (std::size_t i = 0; good && i < count; i += 1 + i / 64) good = v[i] == element_of(message, i);
    check(good, "a message came with other elements");
  }

  /// Random pairs, random tags; the receives are posted in another order than the sends.
  task<> messages() {
    struct planned {
      int from;
      int to;
      int tag;
      std::size_t count;
      std::uint64_t number;
    };
    std::vector<planned> all(1 + draw(40));
    for (planned& p : all) p = {draw_rank(), draw_rank(), static_cast<int>(draw(3)), draw_size(), next_message_++};
    std::deque<std::vector<std::uint32_t>> data;
    std::vector<operation<>> sends;
    for (const planned& p : all) {
      if (p.from != world_.rank()) continue;
      data.push_back(filled(p.number, p.count));
      sends.push_back(world_.send(data.back(), to{p.to}, tag{p.tag}));
      ++totals_.sent;
    }
    // By tag from the highest down, in the order of each stream.
    std::sort(all.begin(), all.end(),
              [](const planned& a, const planned& b) { return a.tag != b.tag ? a.tag > b.tag : a.number < b.number; });
    for (const planned& p : all) {
      if (p.to != world_.rank()) continue;
      std::vector<std::uint32_t> v;
      co_await world_.recv(growing(v), from{p.from}, tag{p.tag});
      check_message(p.number, v, p.count);
    }
    for (auto& s : sends) co_await s;
  }

  /// One rank takes a message from every other, in whatever order they come.
  task<> wildcards() {
    const int collector = draw_rank();
    const std::size_t count = draw_size();
    const std::uint64_t first = next_message_;
    next_message_ += static_cast<std::uint64_t>(world_.size());
    constexpr tag label{100};
    if (world_.rank() != collector) {
      const auto v = filled(first + static_cast<std::uint64_t>(world_.rank()), count);
      co_await world_.send(v, to{collector}, label);
      ++totals_.sent;
    } else {
      for (int n = 1; n < world_.size(); ++n) {
        const received next = co_await world_.probe(from_any, label);
        std::vector<std::uint32_t> v(next.count);
        co_await world_.recv(v, from{next.source}, label);
        check_message(first + static_cast<std::uint64_t>(next.source), v, count);
      }
    }
    // The next round may ask by wildcard again: nobody's message may be early for it.
    co_await world_.barrier();
  }

  /// A ring of long messages, and short ones that overtake them under another tag.
  task<> long_and_short() {
    const int n = world_.size();
    const int right = (world_.rank() + 1) % n;
    const int left = (world_.rank() + n - 1) % n;
    const std::size_t count = 100000 + draw(200000);
    const std::uint64_t first = next_message_;
    next_message_ += 2 * static_cast<std::uint64_t>(n);
    const auto long_out = filled(first + static_cast<std::uint64_t>(world_.rank()), count);
    const auto short_out = filled(first + static_cast<std::uint64_t>(n + world_.rank()), 5);
    std::vector<std::uint32_t> long_in(count);
    std::vector<std::uint32_t> short_in(5);
    auto b = world_.batch(sending(long_out, to{right}, tag{200}), sending(short_out, to{right}, tag{201}));
    co_await world_.recv(short_in, from{left}, tag{201});
    check_message(first + static_cast<std::uint64_t>(n + left), short_in, 5);
    co_await world_.recv(long_in, from{left}, tag{200});
    check_message(first + static_cast<std::uint64_t>(left), long_in, count);
    co_await b.all();
    totals_.sent += 2;
  }

  task<> objects() {
    const int source = draw_rank();
    const std::size_t length = draw_size();
    const std::string mine(length, static_cast<char>('a' + world_.rank()));
    const std::string one = co_await world_.broadcast_object(mine, root{source});
    check(one == std::string(length, static_cast<char>('a' + source)), "an object came as another");
    const std::vector<std::string> all = co_await world_.all_gather_object(mine.substr(0, length % 100));
    for (int r = 0; r < world_.size(); ++r) {
      check(all[static_cast<std::size_t>(r)] == std::string(length % 100, static_cast<char>('a' + r)),
            "an object of a list came as another");
    }
  }

  task<> new_group() {
    std::vector<int> list(static_cast<std::size_t>(world_.size()));
    std::iota(list.begin(), list.end(), 0);
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[draw(i)]);
    list.resize(1 + draw(list.size()));
    ++totals_.groups;
    auto formed = co_await world_.subgroup(list);
    groups_.push_back(std::move(formed));
  }
  task<> new_split() {
    // Drawn for every rank by all ranks, so that the plan stays the same.
    int mine = 0;
    for (int r = 0; r < world_.size(); ++r) {
      const int drawn = static_cast<int>(draw(4)) - 1;
      if (r == world_.rank()) mine = drawn;
    }
    ++totals_.groups;
    auto formed = co_await world_.split(mine < 0 ? no_color : color{mine}, key{-world_.rank()});
    groups_.push_back(std::move(formed));
  }

  task<> collectives(const world_type& group) {
    const std::size_t kind = draw(5);
    const std::size_t count = draw_size();
    if (!group.is_member()) co_return;
    const int n = group.size();
    const auto p = static_cast<std::uint32_t>(n);
    switch (kind) {
      case 0: {
        std::vector<std::uint32_t> v(count, static_cast<std::uint32_t>(group.rank() + 1));
        co_await group.all_reduce(v, sum{});
        check(v == std::vector<std::uint32_t>(count, p * (p + 1) / 2), "all_reduce is wrong");
        break;
      }
      case 1: {
        const int from_rank = static_cast<int>(count % static_cast<std::size_t>(n));
        std::vector<std::uint32_t> v(count, group.rank() == from_rank ? 7U : 0U);
        co_await group.broadcast(v, root{from_rank});
        check(v == std::vector<std::uint32_t>(count, 7), "broadcast is wrong");
        break;
      }
      case 2: {
        const std::vector<int> all = co_await group.all_gather(group.world_rank_of(group.rank()));
        for (int r = 0; r < n; ++r)
          check(all[static_cast<std::size_t>(r)] == group.world_rank_of(r), "all_gather is wrong");
        break;
      }
      case 3: {
        const std::size_t block = count / 16;
        const std::vector<std::uint32_t> in(block * p, static_cast<std::uint32_t>(group.rank()));
        std::vector<std::uint32_t> out(block * p);
        co_await group.all_to_all(in, out);
        bool good = true;
        for (std::size_t i = 0; i < out.size(); ++i) good = good && out[i] == i / block;
        check(good, "all_to_all is wrong");
        break;
      }
      default: co_await group.barrier(); break;
    }
  }

  const world_type& world_;
  std::mt19937_64 plan_;
  totals totals_{};
  std::uint64_t next_message_ = 1;
  std::deque<world_type> groups_{};
};

#ifdef COHORT_SOAK_SANITIZED
constexpr long slack = 256;  // KiB
#else
constexpr long slack = 16 * 1024;  // the allocator keeps what it likes
#endif
double seconds = 5;
std::uint64_t seed = 1;

task<int> rank_main(world_type world) {
  soak s(world, seed);
  const auto began = clock_type::now();
  std::vector<long> memory;
  long descriptors = 0;
  for (bool on = true; on;) {
    for (int i = 0; i < 50; ++i) {
      auto one = s.round();
      co_await one;
    }
    memory.push_back(memory_in_use());
    // After the first tenth every connection stands that will ever be needed.
    const double passed = std::chrono::duration<double>(clock_type::now() - began).count();
    if (descriptors == 0 && passed > seconds / 10) descriptors = open_descriptors();
    // One rank's clock decides for all.
    on = co_await world.broadcast(passed < seconds ? 1 : 0, root{0}) == 1;
  }
  auto last = s.settle();
  co_await last;
  int bad = s.result().wrong > 0 ? 1 : 0;
  const long left_open = open_descriptors();
  if (left_open > descriptors) {
    std::printf("%ld file descriptors at the end, %ld after the first tenth\n", left_open, descriptors);
    bad = 1;
  }
  // The buffers that are kept for the next operation grow until each size has been seen; then memory is flat.
  const auto most = [&memory](std::size_t from, std::size_t to) {
    return *std::max_element(memory.begin() + static_cast<std::ptrdiff_t>(from),
                             memory.begin() + static_cast<std::ptrdiff_t>(to));
  };
  const std::size_t n = memory.size();
  if (n >= 8) {
    const long middle = most(n / 4, n / 2 + 1);
    const long end = most(n - n / 4, n);
    if (end > middle + middle / 4 + slack) {
      std::printf("memory grew from %ld KiB in the second quarter to %ld KiB in the last\n", middle, end);
      bad = 1;
    }
    if (world.rank() == 0)
      std::printf("memory of rank 0: %ld KiB in the second quarter, %ld KiB in the last\n", middle, end);
  }
  const totals& t = s.result();
  const std::uint64_t sent = co_await world.all_reduce(t.sent, sum{});
  const std::uint64_t bytes = co_await world.all_reduce(t.bytes, sum{});
  const int failed = co_await world.all_reduce(bad, max{});
  if (world.rank() == 0) {
    std::printf("%llu rounds, %llu groups, %llu messages, %.1f MB in messages, %.0f s, seed %llu: %s\n",
                static_cast<unsigned long long>(t.rounds), static_cast<unsigned long long>(t.groups),
                static_cast<unsigned long long>(sent), static_cast<double>(bytes) / 1e6,
                std::chrono::duration<double>(clock_type::now() - began).count(), static_cast<unsigned long long>(seed),
                failed == 0 ? "nothing lost, nothing left" : "FAILED");
  }
  co_return failed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) seconds = std::atof(argv[1]);
  if (argc > 2) seed = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3 || !(seconds > 0)) {
    std::fputs("usage: cohort run -n 8 -- soak [SECONDS [SEED]]\n", stderr);
    return 2;
  }
  return run(rank_main);
}
