// SPDX-License-Identifier: BSL-1.0
// main of every doctest program. Beyond doctest's own: a filter that selects nothing is a failure, and a hang names the
// test case it is in: COHORT_TEST_LIMIT is the number of seconds that the program may take.
#define DOCTEST_CONFIG_IMPLEMENT
#include "support/sanitizer.hpp"
#if COHORT_TEST_SANITIZED
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS  // the sanitizers' own handlers tell more
#endif
#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace {

constexpr int exit_nothing_selected = 3;
constexpr int exit_time_limit = 124;

// Written by the listener and read by a signal handler of the same thread.
const char* volatile running_name = "none";
const char* volatile running_file = "before the first test";
unsigned selected = 0;

struct watcher : doctest::IReporter {
  explicit watcher(const doctest::ContextOptions& /*unused*/) {}
  void test_case_start(const doctest::TestCaseData& test) override {
    running_name = test.m_name;
    running_file = test.m_file.c_str();
  }
  void test_run_end(const doctest::TestRunStats& stats) override { selected = stats.numTestCasesPassingFilters; }

  void report_query(const doctest::QueryData& /*unused*/) override {}
  void test_run_start() override {}
  void test_case_reenter(const doctest::TestCaseData& /*unused*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*unused*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*unused*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*unused*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*unused*/) override {}
  void log_message(const doctest::MessageData& /*unused*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*unused*/) override {}
};

REGISTER_LISTENER("watcher", 1, watcher);

void write_text(const char* text) {
  if (::write(STDERR_FILENO, text, std::strlen(text)) < 0) ::_exit(exit_time_limit);
}

void time_limit_reached(int /*signal*/) {
  write_text("\nThe time limit was reached in the test case \"");
  write_text(running_name);
  write_text("\" of ");
  write_text(running_file);
  write_text("\n");
  ::_exit(exit_time_limit);
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* limit = std::getenv("COHORT_TEST_LIMIT")) {
    std::signal(SIGALRM, time_limit_reached);
    ::alarm(static_cast<unsigned>(std::atoi(limit)));
  }
  doctest::Context context(argc, argv);
  const int code = context.run();
  if (context.shouldExit() || code != 0) return code;
  if (selected == 0) {
    std::fputs("No test case was selected: a run of nothing is not a pass\n", stderr);
    return exit_nothing_selected;
  }
  return 0;
}
