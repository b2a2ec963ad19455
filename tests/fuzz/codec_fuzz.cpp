// SPDX-License-Identifier: BSL-1.0
// The decoder of objects under libFuzzer: tests/fuzz/run.sh builds and runs it.
#include "fuzz/codec_target.hpp"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::codec_input({data, size});
  return 0;
}
