// SPDX-License-Identifier: BSL-1.0
// Fills the folder that it is given with the authorities and certificates of tests/support/tls_files.hpp, for tests that
// are run with TLS from the environment.
#include "../support/tls_files.hpp"

#include <exception>

int main(int count, char** arguments) try {
  if (count != 2) throw std::runtime_error("usage: tls_make_files FOLDER");
  harness::make_tls_files(arguments[1]);
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
