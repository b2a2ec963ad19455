// SPDX-License-Identifier: BSL-1.0
// More bytes than an int can count, by messages and by MPI's own collectives. mpirun -n 2; needs 12 GiB free.
#include <cohort/backend/mpi.hpp>
#include <cohort/cohort.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using cohort::task;

constexpr std::size_t many = (std::size_t{1} << 31) + 12345;

std::uint64_t available_kib() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  std::uint64_t kib = 0;
  while (info >> name >> kib) {
    if (name == "MemAvailable:") return kib;
    info.ignore(1000, '\n');
  }
  return 0;
}

void expect(bool condition, const char* what) {
  if (!condition) throw std::runtime_error(std::string("expected ") + what);
}

/// One value for each 64 KiB, so that filling takes no longer than touching.
constexpr std::size_t stretch = 65536;
std::uint8_t value_at(std::size_t i, int seed) {
  return static_cast<std::uint8_t>(i / stretch * 37 + i / stretch / 256 + static_cast<std::size_t>(seed));
}

void fill(std::vector<std::uint8_t>& v, int seed) {
  for (std::size_t at = 0; at < v.size(); at += stretch) {
    std::fill_n(v.begin() + static_cast<std::ptrdiff_t>(at), std::min(stretch, v.size() - at), value_at(at, seed));
  }
}
/// Every stretch at both ends and inside, and the end.
void check(const std::vector<std::uint8_t>& v, int seed, const char* what) {
  for (std::size_t at = 0; at < v.size(); at += stretch) {
    for (const std::size_t i : {at, at + 4097, std::min(at + stretch, v.size()) - 1}) {
      if (i < v.size()) expect(v[i] == value_at(i, seed), what);
    }
  }
  expect(v.back() == value_at(v.size() - 1, seed), what);
}

task<> large(cohort::communicator<cohort::mpi> world) {
  std::vector<std::uint8_t> v(many);
  if (world.rank() == 0) fill(v, 5);
  if (world.rank() == 0) {
    auto op = world.send(v, cohort::to{1});
    co_await op;
  } else if (world.rank() == 1) {
    auto op = world.recv(v, cohort::from{0});
    const cohort::received got = co_await op;
    expect(got.count == many, "the whole message");
    check(v, 5, "the bytes that were sent");
    v.assign(many, 0);
  }
  for (const char* how : {"broadcast=binomial", "broadcast=native"}) {
    world.algorithms().override_with(how);
    if (world.rank() == 1) v.assign(many, 0);
    auto op = world.broadcast(v, cohort::root{0});
    co_await op;
    check(v, 5, how);
  }
  world.algorithms().override_with("all_reduce=native");
  auto op = world.all_reduce(v, cohort::bit_xor{});
  co_await op;
  for (std::size_t i = 0; i < v.size(); i += 509) expect(v[i] == 0, "x xor x");
  expect(v.back() == 0, "x xor x at the end");
}

}  // namespace

int main() {
  constexpr std::uint64_t needed_kib = std::uint64_t{12} << 20;
  if (available_kib() < needed_kib) {
    std::printf("SKIPPED: %llu MiB of memory are available, and messages over 2 GiB need 12288\n",
                static_cast<unsigned long long>(available_kib() / 1024));
    return 77;
  }
  return cohort::run(large);
}
