// SPDX-License-Identifier: BSL-1.0
// What this machine allows, without any library: the time of a flag between two processes, the rate at which one of them hands
// bytes to the other, the time of 8 bytes over a raw socket, and the rate at which one core copies and adds, alone and while
// all the others do. No transport can be faster.
//   floors [--json]
#include <cohort/detail/stream_store.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;

struct figure {
  const char* name;
  const char* unit;
  double median, best;
};

double seconds_since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "floors: %s: %s\n", what, std::strerror(errno));
  std::exit(1);
}

/// 0 in a child, which whoever ends this program ends too.
pid_t start_child() {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) give_up("fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(1);  // it has ended before it could be asked for
  }
  return child;
}

/// Median and best of 15 rounds of about 20 ms.
figure measure(const char* name, const char* unit, const std::function<double(int calls)>& seconds_of,
               const std::function<double(double)>& value) {
  int calls = 1;
  while (seconds_of(calls) < 0.01 && calls < (1 << 24)) calls *= 2;
  std::vector<double> times;
  for (int round = 0; round < 15; ++round) times.push_back(seconds_of(2 * calls) / (2 * calls));
  std::sort(times.begin(), times.end());
  return {name, unit, value(times[times.size() / 2]), value(times.front())};
}

// ---- a flag between two processes ------------------------------------------------------------------------------

struct alignas(64) flag_line {
  std::atomic<std::uint64_t> value{0};
};
struct flags {
  flag_line ping, pong, stop;
};

void relax(int& polls) {
  if (++polls % 100000 == 0) std::this_thread::yield();  // lest nothing moves where both share one core
}

figure flag_time(bool yields) {
  void* const memory = ::mmap(nullptr, sizeof(flags), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  auto* const shared = new (memory) flags;
  const pid_t child = start_child();
  const auto wait_for = [yields](const std::atomic<std::uint64_t>& flag, std::uint64_t value,
                                 const std::atomic<std::uint64_t>& stop) {
    for (int polls = 0; flag.load(std::memory_order_acquire) != value;) {
      if (stop.load(std::memory_order_relaxed) != 0) return false;
      if (yields) std::this_thread::yield();
      else relax(polls);
    }
    return true;
  };
  if (child == 0) {
    for (std::uint64_t n = 1; wait_for(shared->ping.value, n, shared->stop.value); ++n) {
      shared->pong.value.store(n, std::memory_order_release);
    }
    ::_exit(0);
  }
  std::uint64_t n = 0;
  const std::atomic<std::uint64_t> never{0};
  const figure found = measure(
      yields ? "flag between processes that yield, one way" : "flag between processes, one way", "us",
      [&](int calls) {
        const auto start = steady::now();
        for (int c = 0; c < calls; ++c) {
          shared->ping.value.store(++n, std::memory_order_release);
          wait_for(shared->pong.value, n, never);
        }
        return seconds_since(start);
      },
      [](double s) { return s * 1e6 / 2; });
  shared->stop.value.store(1);
  ::waitpid(child, nullptr, 0);
  ::munmap(memory, sizeof(flags));
  return found;
}

// ---- a raw socket ------------------------------------------------------------------------------------------------

void connect_pair(int& mine, int& theirs) {
  const int listener = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (listener < 0 || ::bind(listener, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener, 1) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    give_up("listening on loopback");
  }
  mine = ::socket(AF_INET, SOCK_STREAM, 0);
  if (::connect(mine, reinterpret_cast<sockaddr*>(&address), size) != 0) give_up("connecting over loopback");
  theirs = ::accept(listener, nullptr, nullptr);
  if (theirs < 0) give_up("accepting over loopback");
  ::close(listener);
  const int on = 1;
  for (const int each : {mine, theirs}) ::setsockopt(each, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// False at the end of the stream.
bool move_all(int socket, char* data, std::size_t bytes, bool sending) {
  while (bytes > 0) {
    const ssize_t moved =
        sending ? ::send(socket, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL) : ::recv(socket, data, bytes, MSG_DONTWAIT);
    if (moved == 0 || (moved < 0 && errno != EAGAIN)) return false;
    if (moved > 0) data += moved, bytes -= static_cast<std::size_t>(moved);
  }
  return true;
}

figure socket_time(const char* name, std::size_t bytes) {
  int mine = -1, theirs = -1;
  connect_pair(mine, theirs);
  std::vector<char> data(bytes);
  const pid_t child = start_child();
  if (child == 0) {
    ::close(mine);
    while (move_all(theirs, data.data(), bytes, false) && move_all(theirs, data.data(), bytes, true)) {}
    ::_exit(0);
  }
  ::close(theirs);
  const figure found = measure(
      name, "us",
      [&](int calls) {
        const auto start = steady::now();
        for (int c = 0; c < calls; ++c) {
          if (!move_all(mine, data.data(), bytes, true) || !move_all(mine, data.data(), bytes, false)) {
            give_up("the other end of the socket has gone");
          }
        }
        return seconds_since(start);
      },
      [](double s) { return s * 1e6 / 2; });
  ::close(mine);
  ::waitpid(child, nullptr, 0);
  return found;
}

// ---- from one process to another through memory ------------------------------------------------------------------

constexpr std::size_t part_bytes = std::size_t{64} << 10;

struct passage {
  flag_line filled, emptied, stop;
  alignas(4096) std::byte parts[2][part_bytes];
};

/// One fills either part in turn while the other copies the one before it; `writes` says whether that one also writes to each
/// line that it has read, so that it is modified in its cache when the first comes to fill it again.
figure passage_rate(const char* name, bool writes) {
  void* const memory = ::mmap(nullptr, sizeof(passage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) give_up("mmap");
  auto* const shared = new (memory) passage;
  const pid_t child = start_child();
  std::vector<std::byte> own(part_bytes, std::byte{1});
  if (child == 0) {
    for (std::uint64_t n = 1;; ++n) {
      for (int polls = 0; shared->filled.value.load(std::memory_order_acquire) < n; relax(polls)) {
        if (shared->stop.value.load(std::memory_order_relaxed) != 0) ::_exit(0);
      }
      std::byte* const part = shared->parts[n % 2];
      std::memcpy(own.data(), part, part_bytes);
      for (std::size_t at = 0; writes && at < part_bytes; at += 64) *static_cast<volatile std::byte*>(part + at) = {};
      shared->emptied.value.store(n, std::memory_order_release);
    }
  }
  std::uint64_t n = 0;
  const figure found = measure(
      name, "GB/s",
      [&](int calls) {
        const auto start = steady::now();
        for (int c = 0; c < calls; ++c) {
          ++n;
          for (int polls = 0; shared->emptied.value.load(std::memory_order_acquire) + 2 < n;) relax(polls);
          std::memcpy(shared->parts[n % 2], own.data(), part_bytes);
          shared->filled.value.store(n, std::memory_order_release);
        }
        return seconds_since(start);
      },
      [](double s) { return static_cast<double>(part_bytes) / s / 1e9; });
  shared->stop.value.store(1);
  ::waitpid(child, nullptr, 0);
  ::munmap(memory, sizeof(passage));
  return found;
}

// ---- one core's memory -------------------------------------------------------------------------------------------

constexpr std::size_t stream_bytes = std::size_t{16} << 20;

struct arrays {
  std::vector<float> a, b, c;
  arrays() : a(stream_bytes / 4, 1.0f), b(stream_bytes / 4, 2.0f), c(stream_bytes / 4, 0.0f) {}
};

figure stream_rate(const char* name, double bytes, const std::function<void()>& once) {
  return measure(
      name, "GB/s",
      [&](int calls) {
        const auto start = steady::now();
        for (int k = 0; k < calls; ++k) {
          once();
          asm volatile("" ::: "memory");
        }
        return seconds_since(start);
      },
      [bytes](double s) { return bytes / s / 1e9; });
}

/// The same while a process on every other core does it too: they share caches, memory, and on some machines a core.
figure crowded_rate(const char* name, double bytes, arrays& m, const std::function<void()>& once) {
  std::vector<pid_t> others;
  int begun[2];
  if (::pipe(begun) != 0) give_up("pipe");
  for (unsigned i = 1; i < std::thread::hardware_concurrency(); ++i) {
    const pid_t child = start_child();
    if (child == 0) {
      // Pages of its own, also of what is only read: what two cores read from one place comes from their common cache.
      for (std::vector<float>* const each : {&m.a, &m.b, &m.c}) {
        for (float& value : *each) *const_cast<volatile float*>(&value) = value;
      }
      once();
      if (::write(begun[1], "", 1) != 1) ::_exit(1);
      for (;;) once();
    }
    others.push_back(child);
  }
  // What is measured before all of them have begun is the rate of fewer.
  ::close(begun[1]);
  for (std::size_t i = 0; i < others.size(); ++i) {
    char byte;
    if (::read(begun[0], &byte, 1) != 1) give_up("a process beside this one has ended");
  }
  ::close(begun[0]);
  const figure found = stream_rate(name, bytes, once);
  for (const pid_t each : others) {
    ::kill(each, SIGKILL);
    ::waitpid(each, nullptr, 0);
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  const bool json = argc > 1 && std::string(argv[1]) == "--json";
  if (argc > 1 && !json) {
    std::fprintf(stderr, "floors: unknown option '%s'; the only one is --json\n", argv[1]);
    return 2;
  }
  std::vector<figure> all{flag_time(false),
                          flag_time(true),
                          passage_rate("64 KiB to another process, through lines it reads", false),
                          passage_rate("the same, through lines it then writes to", true),
                          socket_time("8 bytes over a raw loopback socket, one way", 8),
                          socket_time("256 KiB over a raw loopback socket, one way", std::size_t{256} << 10)};
  arrays m;
  const std::size_t n = m.a.size();
  const auto bytes = [](int passes) { return static_cast<double>(passes) * static_cast<double>(stream_bytes); };
  const auto copy = [&] { std::memcpy(m.c.data(), m.a.data(), stream_bytes); };
  const auto copy_past = [&] {
    cohort::detail::stream_copy(reinterpret_cast<std::byte*>(m.c.data()),
                                reinterpret_cast<const std::byte*>(m.a.data()), stream_bytes);
    cohort::detail::stream_fence();
  };
  const auto add = [&] {
    float* const a = m.a.data();
    const float* const b = m.b.data();
    for (std::size_t i = 0; i < n; ++i) a[i] += b[i];
  };
  all.push_back(stream_rate("copy of 16 MiB by one core (read + written)", bytes(2), copy));
  all.push_back(stream_rate("the same past the caches", bytes(2), copy_past));
  all.push_back(stream_rate("a += b of 16 MiB by one core (2 read + 1 written)", bytes(3), add));
  all.push_back(crowded_rate("copy of 16 MiB by each core while all do", bytes(2), m, copy));
  all.push_back(crowded_rate("copy of 4 MiB by each core while all do", bytes(2) / 4, m,
                             [&] { std::memcpy(m.c.data(), m.a.data(), stream_bytes / 4); }));
  all.push_back(crowded_rate("the same past the caches, all cores", bytes(2), m, copy_past));
  all.push_back(crowded_rate("a += b of 16 MiB by each core while all do", bytes(3), m, add));
  if (json) {
    std::printf("[");
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::printf("%s\n {\"name\": \"%s\", \"unit\": \"%s\", \"median\": %.4f, \"best\": %.4f}", i == 0 ? "" : ",",
                  all[i].name, all[i].unit, all[i].median, all[i].best);
    }
    std::printf("\n]\n");
    return 0;
  }
  for (const figure& f : all) std::printf("%-56s median %8.3f %s, best %8.3f\n", f.name, f.median, f.unit, f.best);
}
