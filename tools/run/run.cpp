// SPDX-License-Identifier: BSL-1.0
// `cohort run`: reads its options, then either tells what it would do or does it.
#include "../command.hpp"
#include "environment.hpp"
#include "host_setup.hpp"
#include "job.hpp"
#include "options.hpp"
#include "supervisor.hpp"

#include <cstdio>
#include <exception>

namespace cohort::tool {

int run_command(const std::vector<std::string>& words) {
  run_options options;
  if (const std::optional<int> ended = parse_run_options(words, options)) return *ended;
  try {
    ensure_standard_descriptors();
    job shared = make_job(options);
    if (options.print_environment) {
      std::fputs(variables_text(options, shared, *options.print_environment, "").c_str(), stdout);
      return 0;
    }
    if (options.dry_run) {
      std::fputs(plan_text(options, shared).c_str(), stdout);
      return 0;
    }
    return supervisor(options, std::move(shared)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort run: %s\n", error.what());
    return exit_code::cannot_execute;
  }
}

}  // namespace cohort::tool
