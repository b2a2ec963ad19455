// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <cohort/impl/connect_address.hpp>

#include <algorithm>

namespace cohort::tool {
namespace {

using endpoints = std::vector<transport::tcp_endpoint>;

std::string listed(const endpoints& all) {
  std::string text;
  for (const transport::tcp_endpoint& each : all) {
    text += (text.empty() ? "" : ", ") + each.address().to_string();
  }
  return text;
}

bool is_loopback(const transport::tcp_endpoint& e) { return e.address().is_loopback(); }

void examine_own_name(const connect_options& o, deadline until, rank_record& mine) {
  const bool needed = on_several_hosts(o.launch);
  const severity level = needed ? severity::warning : severity::ok;
  const std::string advice = needed ? "cohort does not need it, but MPI, NCCL and Gloo look it up: give " + mine.host +
                                          " the address of its interface, in /etc/hosts or DNS"
                                    : "";
  try {
    const endpoints found = transport::resolve(mine.host, 0, until);
    const bool useless = std::all_of(found.begin(), found.end(), is_loopback);
    mine.add({useless ? level : severity::ok,
              "own name",
              mine.host + " is " + listed(found) + (useless ? ", which no other host can reach" : ""),
              useless ? advice : "",
              {},
              {}});
  } catch (const error& e) {
    mine.add({level, "own name", e.what(), advice, {}, {}});
  }
}

std::string export_of(const std::string& address) {
  return address.empty() ? "" : "export COHORT_MASTER_ADDR=" + address;
}

void examine_master(const connect_options& o, deadline until, rank_record& mine) {
  const std::string& name = o.launch.master_addr;
  endpoints found;
  try {
    found = transport::resolve(name, o.launch.master_port, until);
  } catch (const error& e) {
    mine.add({severity::problem,
              "rank 0's name",
              e.what(),
              "give every rank an address of rank 0's host, or a name that all hosts can resolve",
              o.launch.rank == 0 ? export_of(outward_address(mine.interfaces)) : "",
              {}});
    return;
  }
  const std::string shown = name == listed(found) ? name : name + " is " + listed(found);
  const transport::tcp_endpoint& first = found.front();
  const bool here = is_loopback(first) ||
                    std::any_of(mine.interfaces.begin(), mine.interfaces.end(), [&first](const network_interface& i) {
                      return i.address == first.address().to_string();
                    });
  if (is_loopback(first) && on_several_hosts(o.launch)) {
    mine.add({severity::problem,
              "rank 0's name",
              shown + ": each host is that to itself, and the ranks are on several",
              "give every rank the address at which the others reach rank 0's host",
              o.launch.rank == 0 ? export_of(outward_address(mine.interfaces)) : "",
              {}});
  } else if (o.launch.rank == 0 && !here) {
    mine.add({severity::problem,
              "rank 0's name",
              shown + ", which is not an address of this host, where rank 0 is",
              "start rank 0 there, or give every rank an address of this host",
              export_of(outward_address(mine.interfaces)),
              {}});
  } else {
    mine.add(
        {severity::ok, "rank 0's name", shown + (is_loopback(first) ? ": ranks of this host only" : ""), {}, {}, {}});
  }
}

}  // namespace

void examine_names(const connect_options& o, deadline until, rank_record& mine) {
  examine_own_name(o, until, mine);
  if (o.launch.world_size > 1 && o.launch.file_path.empty()) examine_master(o, until, mine);
}

}  // namespace cohort::tool
