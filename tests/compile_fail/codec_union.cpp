// expect: cohort: a union does not know which of its members it holds: use std::variant
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <variant>
#include <vector>

#ifdef COHORT_FAIL
union number {
  int i;
  float f;
};
struct sample {
  number value;
};
void encode(std::vector<std::byte>& bytes, const sample& value) { cohort::encode_objects(bytes, value); }
#else
struct sample {
  std::variant<int, float> value;
};
void encode(std::vector<std::byte>& bytes, const sample& value) { cohort::encode_objects(bytes, value); }
#endif
