// SPDX-License-Identifier: BSL-1.0
// `cohort tune`: measures what messages cost between the ranks of a world and writes it as a tuning.
#include "arguments.hpp"
#include "command.hpp"
#include "own_ranks.hpp"

#include <cohort/backend/cpu.hpp>
#include <cohort/measure_costs.hpp>
#include <cohort/run.hpp>
#include <cohort/tuning.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace cohort::tool {
namespace {

constexpr const char* name_of_tune = "cohort tune";

struct tune_options {
  std::optional<int> ranks;
  std::string file;
  bool table = false;
};

std::string as_file(const tuning& chosen, int ranks) {
  const collective::link_costs& c = chosen.costs.value();
  char text[640];
  std::snprintf(text, sizeof text,
                "# What messages cost between %d ranks, measured by cohort tune; for COHORT_TUNING.\n"
                "# Algorithms by name may follow, such as all_reduce=ring.\n"
                "latency=%.6gus   # from a send to the data at the receiver\n"
                "overhead=%.6gus  # from one message to the next\n"
                "byte=%.6gns      # of a long message: %.3g GB/s each way\n"
                "combine=%.6gns   # of two operands: %.3g GB/s\n",
                ranks, c.latency * 1e6, c.overhead * 1e6, c.byte * 1e9, 1e-9 / c.byte, c.combine * 1e9,
                1e-9 / c.combine);
  return text;
}

void write_to(const std::string& file, const std::string& text) {
  struct closer {
    void operator()(std::FILE* f) const noexcept { std::fclose(f); }
  };
  const std::unique_ptr<std::FILE, closer> out(std::fopen(file.c_str(), "w"));
  if (!out || std::fputs(text.c_str(), out.get()) < 0 || std::fflush(out.get()) != 0) {
    throw std::runtime_error("cannot write " + file + ": " + std::strerror(errno));
  }
}

task<int> measure(communicator<cpu>& world, const tune_options& options) {
  if (world.size() < 2)
    throw std::invalid_argument("there is 1 rank, and no message to measure: expected -n 2 or more");
  tuning chosen;
  chosen.costs = co_await measure_costs(world);
  if (world.rank() != 0) co_return 0;
  const std::string text = as_file(chosen, world.size());
  if (options.file.empty()) std::fputs(text.c_str(), stdout);
  else write_to(options.file, text);
  if (options.table) {
    use_costs(world, *chosen.costs);
    std::printf("\n%s", world.algorithms().to_string().c_str());
  }
  co_return 0;
}

int be_a_rank(const tune_options& options) {
  // Ranks that share memory have no choice to make: what is measured is what they would do without.
  ::setenv("COHORT_SHM", "0", 1);
  ::unsetenv("COHORT_TUNING");
  return cohort::run([&options](communicator<cpu> world) -> task<int> {
    const int code = co_await measure(world, options);
    co_return code;
  });
}

}  // namespace

int tune_command(const std::vector<std::string>& words) {
  CLI::App app{"Measures what messages cost between the ranks of a world, for COHORT_TUNING.", name_of_tune};
  tune_options options;
  int ranks = 0;
  app.add_option("-n,--nproc", ranks,
                 "how many ranks to start here; default: as many as this\nmachine has processors, at least 2. Under a "
                 "launcher:\nthose that it has started")
      ->option_text("N");
  app.add_option("-o,--output", options.file, "the file to write; default: standard output")->option_text("FILE");
  app.add_flag("--table", options.table, "print the algorithms that follow from it, too");
  set_usage(app, "cohort tune [-n N] [-o FILE] [--table]");
  app.footer(
      "Run it where the program will run: under the same launcher, on the same hosts. The tuning holds for any number\n"
      "of ranks: COHORT_TUNING=FILE in the environment of rank 0 is enough. What ranks of one host do in the memory\n"
      "that they share does not depend on it.");
  if (const std::optional<int> ended = parse_words(app, words)) return *ended;
  try {
    if (app.count("-n") > 0) {
      if (ranks < 2 || ranks > 4096) {
        throw std::invalid_argument("-n: " + std::to_string(ranks) + " is not a number of ranks, expected 2..4096");
      }
      options.ranks = ranks;
    }
    if (started_by_a_launcher()) return be_a_rank(options);
    std::vector<std::string> all{"tune"};
    all.insert(all.end(), words.begin(), words.end());
    return start_own_ranks(options.ranks.value_or(ranks_for_this_machine()), all);
  } catch (const std::invalid_argument& mistake) {
    return usage_error(name_of_tune, mistake.what());
  } catch (const std::exception& trouble) {
    std::fprintf(stderr, "%s: %s\n", name_of_tune, trouble.what());
    return exit_code::cannot_execute;
  }
}

}  // namespace cohort::tool
