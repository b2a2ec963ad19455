// expect: cohort: this struct cannot be made of the values of its members .is one of them a reference..
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>

#ifdef COHORT_FAIL
struct sample {
  int& value;
};
void encode(std::vector<std::byte>& bytes, const sample& value) { cohort::encode_objects(bytes, value); }
#else
struct sample {
  int value;
};
void encode(std::vector<std::byte>& bytes, const sample& value) { cohort::encode_objects(bytes, value); }
#endif
