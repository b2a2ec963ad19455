// SPDX-License-Identifier: BSL-1.0
#include "examine.hpp"

#include <cohort/impl/connect_address.hpp>
#include <cohort/uri.hpp>

#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

namespace cohort::tool {
namespace {

using boost::asio::ip::address;

int mtu_of(const std::string& name) {
  int mtu = 0;
  std::ifstream("/sys/class/net/" + name + "/mtu") >> mtu;
  if (mtu > 0) return mtu;
  ifreq request{};  // /sys shows the interfaces of the network in which it was mounted
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return 0;
  std::strncpy(request.ifr_name, name.c_str(), IFNAMSIZ - 1);
  if (::ioctl(socket, SIOCGIFMTU, &request) == 0) mtu = request.ifr_mtu;
  ::close(socket);
  return mtu;
}

std::vector<network_interface> list_interfaces() {
  std::vector<network_interface> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || (at->ifa_flags & IFF_UP) == 0) continue;
    const int family = at->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    char text[NI_MAXHOST] = {};
    const socklen_t length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    if (::getnameinfo(at->ifa_addr, length, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    if (std::string_view(text).rfind("fe80:", 0) == 0) continue;  // of one cable: nobody can be told to come there
    found.push_back({at->ifa_name, text, mtu_of(at->ifa_name), (at->ifa_flags & IFF_LOOPBACK) != 0, false});
  }
  ::freeifaddrs(list);
  return found;
}

}  // namespace

bool on_several_hosts(const launch_info& info) { return info.local_world_size < info.world_size; }

std::string outward_address(const std::vector<network_interface>& interfaces) {
  try {
    // An address of documentation (RFC 5737): nothing is sent there, the routing table is asked.
    const address towards = detail::address_towards({boost::asio::ip::make_address("192.0.2.1"), 9});
    if (!towards.is_loopback() && !towards.is_unspecified()) return towards.to_string();
  } catch (const error&) {
    // No default route: an address of an interface is the best there is.
  }
  for (const network_interface& each : interfaces) {
    if (!each.loopback) return each.address;
  }
  return {};
}

void examine_network(const connect_options& o, deadline until, rank_record& mine) {
  mine.interfaces = list_interfaces();
  std::string shown;
  for (const network_interface& each : mine.interfaces) {
    shown += (shown.empty() ? "" : ", ") + each.name + " " + each.address + " mtu " + std::to_string(each.mtu);
  }
  mine.add({severity::ok, "interfaces", mine.host + ": " + shown, {}, {}, {}});
  try {
    mine.address = detail::listen_address(o.launch, o.bind_address, until).to_string();
  } catch (const error& e) {
    const bool unsafe = e.condition() == errc::insecure_network;
    mine.add({severity::problem,
              unsafe ? "secret" : "address",
              e.what(),
              unsafe ? "give every rank the same secret"
                     : "is there a route to rank 0's host? COHORT_BIND_ADDRESS names "
                       "the address to listen on",
              unsafe ? "export COHORT_SECRET=$(openssl rand -hex 32)  # once, and the same value for every rank" : "",
              {}});
    return;
  }
  std::string on;
  for (network_interface& each : mine.interfaces) {
    each.chosen = each.address == mine.address;
    if (each.chosen) on = each.name;
  }
  if (o.launch.world_size == 1) return;
  const std::string why = o.bind_address.empty() ? "from which rank 0 is reached" : "as COHORT_BIND_ADDRESS says";
  const bool loopback = boost::asio::ip::make_address(mine.address).is_loopback();
  if (loopback && on_several_hosts(o.launch) && !o.bind_address.empty()) {
    mine.add({severity::problem,
              "address",
              "COHORT_BIND_ADDRESS=" + o.bind_address + " is reached by this host alone, and the ranks are on several",
              "leave it out: the address from which rank 0 is reached is taken then",
              "unset COHORT_BIND_ADDRESS",
              {}});
  } else if (on.empty() && !loopback) {
    mine.add({severity::problem,
              "address",
              mine.address + ", " + why + ", is not an address of this host (" + mine.host + ")",
              "name one of the interfaces",
              "export COHORT_BIND_ADDRESS=" + outward_address(mine.interfaces),
              {}});
  } else {
    mine.add({severity::ok,
              "address",
              "listens on " + mine.address + (on.empty() ? "" : " (" + on + ")") + ", " + why,
              {},
              {},
              {}});
  }
}

}  // namespace cohort::tool
