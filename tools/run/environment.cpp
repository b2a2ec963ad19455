// SPDX-License-Identifier: BSL-1.0
#include "environment.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

namespace cohort::tool {
namespace {

// Inherited ones would contradict what is set here: cohort's own names are read before torchrun's, and with an agent
// store PyTorch would wait for a torchrun that does not exist.
constexpr std::array<std::string_view, 10> never_inherited{"COHORT_RANK",
                                                           "COHORT_WORLD_SIZE",
                                                           "COHORT_LOCAL_RANK",
                                                           "COHORT_LOCAL_WORLD_SIZE",
                                                           "COHORT_LOCAL_SIZE",
                                                           "COHORT_MASTER_ADDR",
                                                           "COHORT_MASTER_PORT",
                                                           "COHORT_ERROR_FILE",
                                                           "TORCHELASTIC_ERROR_FILE",
                                                           "TORCHELASTIC_USE_AGENT_STORE"};

void assign(std::vector<variable>& all, const std::string& name, const std::string& value) {
  const auto same = std::find_if(all.begin(), all.end(), [&](const variable& each) { return each.first == name; });
  if (same != all.end()) {
    same->second = value;
  } else {
    all.emplace_back(name, value);
  }
}

std::string shell_word(const std::string& word) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./=:,+%@*";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char each : word) quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return quoted + "'";
}

}  // namespace

std::vector<variable> rank_variables(const run_options& options, const job& shared, int place,
                                     const std::string& status) {
  const std::string own = std::to_string(options.world_rank(place));
  const std::string all = std::to_string(options.world_size());
  const std::string attempt = std::to_string(options.attempt);
  std::vector<variable> set{
      {"RANK", own},
      {"LOCAL_RANK", std::to_string(place)},
      {"GROUP_RANK", std::to_string(options.node_rank)},
      {"ROLE_RANK", own},
      {"ROLE_NAME", "default"},
      {"WORLD_SIZE", all},
      {"LOCAL_WORLD_SIZE", std::to_string(options.ranks)},
      {"GROUP_WORLD_SIZE", std::to_string(options.nodes)},
      {"ROLE_WORLD_SIZE", all},
      {"MASTER_ADDR", options.master_addr},
      {"MASTER_PORT", std::to_string(shared.master_port)},
      {"TORCHELASTIC_RESTART_COUNT", attempt},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts)},
      {"TORCHELASTIC_RUN_ID", shared.run_id},
      {"COHORT_RUN_ID", shared.run_id},
      {"COHORT_RESTART_COUNT", attempt},
  };
  if (!status.empty()) set.emplace_back("COHORT_STATUS_FD", status);
  if (!shared.secret.empty()) set.emplace_back("COHORT_SECRET", shared.secret);
  // Each rank would otherwise start a thread per processor, N times too many.
  if (options.ranks > 1 && std::getenv("OMP_NUM_THREADS") == nullptr) set.emplace_back("OMP_NUM_THREADS", "1");
  for (const auto& [name, value] : options.exported) assign(set, name, value);
  return set;
}

std::vector<std::string> with_inherited(const std::vector<variable>& set) {
  std::vector<std::string> all;
  for (char** each = ::environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view text(*each);
    const std::string_view name = text.substr(0, text.find('='));
    const bool dropped = std::find(never_inherited.begin(), never_inherited.end(), name) != never_inherited.end();
    const bool replaced = std::any_of(set.begin(), set.end(), [&](const variable& one) { return one.first == name; });
    if (!dropped && !replaced) all.emplace_back(text);
  }
  for (const auto& [name, value] : set) all.push_back(name + "=" + value);
  return all;
}

std::string shell_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + shell_word(word);
  return text;
}

std::string variables_text(const run_options& options, const job& shared, int place, const std::string& indent) {
  std::string text;
  for (const auto& [name, value] : rank_variables(options, shared, place)) {
    text += indent + name + "=" + (name == "COHORT_SECRET" ? std::string("***") : shell_word(value)) + "\n";
  }
  return text;
}

std::string plan_text(const run_options& options, const job& shared) {
  std::string text;
  for (int place = 0; place < options.ranks; ++place) {
    text += "rank " + std::to_string(options.world_rank(place)) + ": " + shell_text(options.program) + "\n";
    text += variables_text(options, shared, place, "  ");
  }
  return text;
}

}  // namespace cohort::tool
