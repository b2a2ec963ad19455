// SPDX-License-Identifier: BSL-1.0
#include "port_holder.hpp"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

namespace cohort::tool {
namespace {

// The sockets that listen there: /proc/net/tcp has "sl local:port remote:port state ... inode".
std::set<std::string> sockets_at(std::uint16_t port) {
  std::set<std::string> inodes;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      std::istringstream fields(line);
      std::vector<std::string> field;
      for (std::string each; fields >> each;) field.push_back(each);
      if (field.size() < 10 || field[3] != "0A") continue;
      const std::size_t colon = field[1].rfind(':');
      if (std::stoul(field[1].substr(colon + 1), nullptr, 16) == port) inodes.insert(field[9]);
    }
  }
  return inodes;
}

bool has_one_of(const std::filesystem::path& process, const std::set<std::string>& inodes) {
  std::error_code failure;
  for (std::filesystem::directory_iterator at(process / "fd", failure), end; !failure && at != end;
       at.increment(failure)) {
    const std::string target = std::filesystem::read_symlink(at->path(), failure).string();
    failure.clear();
    if (target.rfind("socket:[", 0) == 0 && inodes.count(target.substr(8, target.size() - 9)) > 0) return true;
  }
  return false;
}

}  // namespace

std::string holder_of_port(std::uint16_t port) {
  const std::set<std::string> inodes = sockets_at(port);
  std::error_code failure;
  for (std::filesystem::directory_iterator at("/proc", failure), end; !failure && at != end; at.increment(failure)) {
    const std::string number = at->path().filename().string();
    if (number.find_first_not_of("0123456789") != std::string::npos || !has_one_of(at->path(), inodes)) continue;
    std::string called;
    std::ifstream name(at->path() / "comm");
    std::getline(name, called);
    return "process " + number + (called.empty() ? "" : " (" + called + ")");
  }
  return {};
}

}  // namespace cohort::tool
