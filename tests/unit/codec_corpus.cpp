// SPDX-License-Identifier: BSL-1.0
// What the fuzzer of the decoder has found, as a plain test: each file of its corpus says in its name which type it is
// for, and whether it is one.
#include <doctest/doctest.h>

#include "fuzz/codec_target.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <tuple>
#include <vector>

TEST_CASE("codec: the corpus of the fuzzer") {
  const char* const told = std::getenv("COHORT_TEST_CORPUS");  // where a compiler cache has made __FILE__ relative
  const std::filesystem::path folder =
      told != nullptr ? std::filesystem::path(told)
                      : std::filesystem::path(__FILE__).parent_path().parent_path() / "fuzz/corpus/codec";
  std::set<unsigned> types;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<std::uint8_t> input{std::istreambuf_iterator<char>(file), {}};
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    REQUIRE_FALSE(input.empty());
    CHECK(std::stoul(name) == input[0]);
    CHECK(fuzz::codec_input(input) == name.ends_with("_taken"));
    types.insert(input[0]);
  }
  // Each type, and two kinds of whole messages.
  CHECK(types.size() == std::tuple_size_v<fuzz::codec_types> + 2);
}
