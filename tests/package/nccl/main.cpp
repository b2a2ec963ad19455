// SPDX-License-Identifier: BSL-1.0
#include <nccl.h>

#include <cstdio>
#include <string>

int main() {
  int version = 0;
  if (ncclGetVersion(&version) != ncclSuccess) return 1;
  const std::string found =
      std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
  std::printf("library %s, header %s\n", found.c_str(), EXPECTED_VERSION);
  return found == EXPECTED_VERSION ? 0 : 1;
}
