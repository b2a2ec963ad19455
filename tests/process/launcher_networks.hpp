// SPDX-License-Identifier: BSL-1.0
// Two hosts, as far as networks go: namespaces with a cable between them, where this user may make such.
#pragma once

#include "launcher_support.hpp"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace launcher_test {

/// Two ends of a cable, each in a network of its own; gone with the object.
class two_networks {
 public:
  two_networks() : a_("cohort-a-" + std::to_string(::getpid())), b_("cohort-b-" + std::to_string(::getpid())) {
    const std::string link = "c" + std::to_string(::getpid());
    made_ = run("ip netns add " + a_) && run("ip netns add " + b_) &&
            run("ip link add " + link + "a netns " + a_ + " type veth peer name " + link + "b netns " + b_) &&
            run("ip -n " + a_ + " addr add 10.213.0.1/24 dev " + link + "a") &&
            run("ip -n " + b_ + " addr add 10.213.0.2/24 dev " + link + "b") &&
            run("ip -n " + a_ + " link set " + link + "a up") && run("ip -n " + b_ + " link set " + link + "b up") &&
            run("ip -n " + a_ + " link set lo up") && run("ip -n " + b_ + " link set lo up");
  }
  two_networks(const two_networks&) = delete;
  two_networks& operator=(const two_networks&) = delete;
  ~two_networks() {
    run("ip netns del " + a_);
    run("ip netns del " + b_);
  }
  [[nodiscard]] bool made() const { return made_; }
  /// Address of a node on the cable.
  [[nodiscard]] static std::string address(int node) { return node == 0 ? "10.213.0.1" : "10.213.0.2"; }
  [[nodiscard]] bool set_mtu(int node, int bytes) const {
    return run("ip -n " + (node == 0 ? a_ : b_) + " link set c" + std::to_string(::getpid()) + (node == 0 ? "a" : "b") +
               " mtu " + std::to_string(bytes));
  }
  /// Nothing gets through any more, and nobody is told.
  [[nodiscard]] bool cut() const {
    return run("ip -n " + a_ + " route add blackhole " + address(1) + "/32") &&
           run("ip -n " + b_ + " route add blackhole " + address(0) + "/32");
  }
  [[nodiscard]] setup in(int node) const {
    setup how;
    const std::string path = "/var/run/netns/" + (node == 0 ? a_ : b_);
    how.before_start = [path] {
      const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0 || ::setns(fd, CLONE_NEWNET) != 0) ::_exit(95);
    };
    return how;
  }

 private:
  static bool run(const std::string& command) { return std::system((command + " >/dev/null 2>&1").c_str()) == 0; }

  std::string a_;
  std::string b_;
  bool made_ = false;
};

}  // namespace launcher_test
