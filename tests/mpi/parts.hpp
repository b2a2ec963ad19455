// SPDX-License-Identifier: BSL-1.0
// What the programs of this folder that have parts share: mpirun starts them with the names of some, and each rank checks
// what it sees and says what is wrong.
#pragma once

#include "in_turn.hpp"

#include <cohort/backend/mpi.hpp>
#include <cohort/cohort.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace mpi_test {

using cohort::errc;
using cohort::task;
using world_type = cohort::communicator<cohort::mpi>;

inline void expect(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error("expected " + what);
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// The operation must fail so, with all these words.
template <class Operation>
task<> fails(Operation& op, errc code, std::vector<std::string> words) {
  std::optional<cohort::error> seen;
  try {
    co_await op;
  } catch (const cohort::error& e) {
    seen = e;
  }
  expect(seen.has_value(), "an error");
  expect(seen->condition() == code, cohort::make_error_code(code).message() + ", found: " + seen->what());
  for (const std::string& each : words) expect(contains(seen->what(), each), "\"" + each + "\" in: " + seen->what());
}

/// A rank that has its part in nothing, but answers, until the others have failed.
inline void stand_by(const world_type& world) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{20};
  while (!world.failed()) {
    world.poll();
    expect(std::chrono::steady_clock::now() < until, "the others' failure to be heard of within 20 s");
  }
}

inline int last(const world_type& world) { return world.size() - 1; }

struct part {
  std::string_view name;
  task<> (*check)(world_type);
  int code = 0;  ///< of run on every rank but the last
  int code_of_last = 0;
};

template <std::size_t Parts>
int run_part(std::string_view wanted, const part (&parts)[Parts]) {
  for (const part& p : parts) {
    if (p.name != wanted) continue;
    bool is_last = false;
    auto rank_main = [&](world_type world) -> task<> {
      is_last = world.size() > 1 && world.rank() == last(world);
      if (world.size() == 1) std::printf("one rank has nobody to disagree with\n");
      return p.check(std::move(world));
    };
    const int code = cohort::run(rank_main);
    const int right = is_last ? p.code_of_last : p.code;
    if (code != right) std::fprintf(stderr, "exit code %d, expected %d\n", code, right);
    return code == right ? 0 : 1;
  }
  std::fprintf(stderr, "there is no part \"%s\"; --list names them\n", std::string(wanted).c_str());
  return 2;
}

/// main of such a program.
template <std::size_t Parts>
int run_parts(int argc, char** argv, const part (&parts)[Parts]) {
  if (argc > 1 && std::string_view(argv[1]) == "--list") {
    for (const part& p : parts) std::printf("%s\n", std::string(p.name).c_str());
    return 0;
  }
  return in_turn(argc, argv, [&](std::string_view wanted) { return run_part(wanted, parts); });
}

}  // namespace mpi_test
