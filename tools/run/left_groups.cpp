// SPDX-License-Identifier: BSL-1.0
#include "left_groups.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

namespace cohort::tool {
namespace {

struct relations {
  char state = 'X';
  pid_t parent = -1;
  pid_t group = -1;
  pid_t session = -1;
};

relations relations_of(const std::string& pid) {
  std::ifstream file("/proc/" + pid + "/stat");
  std::string text;
  std::getline(file, text);
  relations found;
  // The name of the program stands in parentheses before the rest, and may contain any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  const int read = std::sscanf(text.c_str() + name_end + 1, " %c %d %d %d", &found.state, &found.parent, &found.group,
                               &found.session);
  return read == 4 ? found : relations{};
}

}  // namespace

std::vector<pid_t> groups_of_children() {
  siginfo_t unused{};
  if (::waitid(P_ALL, 0, &unused, WEXITED | WNOHANG | WNOWAIT) != 0) return {};  // no children at all
  const pid_t self = ::getpid();
  const pid_t own_group = ::getpgrp();
  const pid_t own_session = ::getsid(0);
  std::vector<pid_t> groups;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc", failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const relations each = relations_of(name);
    // One that has ended is waited for elsewhere, and its group is empty if nobody else is in it.
    const bool runs = each.state != 'Z' && each.state != 'X';
    if (runs && each.parent == self && each.group != own_group && each.session == own_session) {
      groups.push_back(each.group);
    }
  }
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

}  // namespace cohort::tool
