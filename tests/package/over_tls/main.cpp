// SPDX-License-Identifier: BSL-1.0
// A consumer of the component tls: two ranks that talk TLS, with the certificates of the folder that it is given.
#include <cohort/cohort.hpp>
#include <cohort/connect.hpp>
#include <cohort/sync_wait.hpp>

#include <openssl/crypto.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>

#ifndef COHORT_WITH_TLS
#error "cohort::tls is to define this"
#endif

int meet(int rank, const std::string& folder) try {
  cohort::connect_options o;
  o.launch.rank = rank;
  o.launch.world_size = 2;
  o.launch.file_path = folder + "/meeting";
  o.launch.tls = {folder + "/rank.pem", folder + "/rank.key", folder + "/authority.pem"};
  o.shared_memory = false;
  auto world = cohort::connect<cohort::cpu>(o);
  auto adding = world.all_reduce(rank + 1, cohort::sum{});
  return cohort::sync_wait(adding) == 3 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "rank %d: %s\n", rank, e.what());
  return 1;
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::array<int, 2> codes{1, 1};
  std::thread other([&] { codes[1] = meet(1, arguments[1]); });
  codes[0] = meet(0, arguments[1]);
  other.join();
  const bool well = codes[0] == 0 && codes[1] == 0;
  std::printf("cohort %s: %s\n", cohort::version_string.data(), well ? "2 ranks agree" : "WRONG");
  return well ? 0 : 1;
}
