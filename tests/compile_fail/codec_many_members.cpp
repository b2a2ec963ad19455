// expect: cohort: a struct of more than 12 members that has built-in arrays among them: use std::array
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <array>
#include <vector>

#ifdef COHORT_FAIL
struct sample {
  int a, b, c, d, e, f, g, h, i, j, k, l;
  int values[3];
};
void encode(std::vector<std::byte>& bytes, const sample& value) { cohort::encode_objects(bytes, value); }
#else
struct sample {
  int a, b, c, d, e, f, g, h, i, j, k, l;
  std::array<int, 3> values;
};
void encode(std::vector<std::byte>& bytes, const sample& value) { cohort::encode_objects(bytes, value); }
#endif
