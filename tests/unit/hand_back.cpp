// SPDX-License-Identifier: BSL-1.0
// Of bytes that are handed back only whole cache lines are written to, and none beside them; of those that are handed on each line
// is, and all stay what they are.
#include <cohort/detail/hand_back.hpp>

#include <doctest/doctest.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <random>
#include <vector>

using cohort::detail::hand_back;
using cohort::detail::hand_on;
using cohort::detail::leave;
using cohort::detail::lines_are_handed_back;
using cohort::detail::read_block;
using cohort::detail::readers;

TEST_CASE("each whole line is written to, where the processor gains by it, and nothing else is") {
  constexpr std::size_t line = 64;
  constexpr std::byte untouched{0x5a};
  struct alignas(64) lines {
    std::array<std::byte, 8 * line> bytes;
  };
  std::vector<lines> memory(1);
  std::byte* const data = memory[0].bytes.data();
  for (std::size_t from = 0; from <= 2 * line; ++from) {
    for (std::size_t to = from; to <= 6 * line; ++to) {
      memory[0].bytes.fill(untouched);
      hand_back(data + from, to - from);
      bool right = true;
      for (std::size_t at = 0; at < memory[0].bytes.size(); at += line) {
        const bool whole = at >= from && at + line <= to;
        const auto changed = static_cast<std::size_t>(
            std::count_if(data + at, data + at + line, [](std::byte b) { return b != untouched; }));
        right = right && changed == (whole && lines_are_handed_back() ? 1U : 0U);
      }
      CAPTURE(from);
      CAPTURE(to);
      REQUIRE(right);
    }
  }
}

TEST_CASE("what is handed on stays what it is") {
  std::mt19937 any(3);
  std::vector<std::byte> memory(1 << 15);
  for (std::byte& b : memory) b = static_cast<std::byte>(any());
  const std::vector<std::byte> before = memory;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t from = any() % memory.size();
    const std::size_t bytes = any() % (memory.size() - from + 1);
    hand_on(memory.data() + from, bytes);
    leave(memory.data() + from, bytes, readers::on_two_cores);
    leave(memory.data() + from, bytes, readers::many);
  }
  CHECK(memory == before);
}

TEST_CASE("what is handed on is written to, where the processor gains by it: each line") {
  constexpr std::size_t page = 4096;
  void* const fresh = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(fresh != MAP_FAILED);
  auto* const data = static_cast<std::byte*>(fresh);
  REQUIRE(::mprotect(data + page, page, PROT_READ) == 0);
  const auto dies = [&](std::size_t from, std::size_t bytes) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      std::signal(SIGSEGV, SIG_DFL);
      hand_on(data + from, bytes);
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
  };
  CHECK_FALSE(dies(0, page));
  CHECK_FALSE(dies(page - 64, 64));
  CHECK(dies(page - 64, 65) == lines_are_handed_back());
  CHECK(dies(page + 640, 1) == lines_are_handed_back());
  CHECK(::munmap(fresh, 2 * page) == 0);
}

TEST_CASE("what is left as it was read is read in one go") {
  CHECK(read_block(readers::many) == ~std::size_t{0});
  for (const readers who : {readers::one, readers::on_two_cores}) {
    CHECK(read_block(who) == (lines_are_handed_back() ? std::size_t{4096} : ~std::size_t{0}));
  }
}
