// expect: cohort: this struct cannot be made of the values of its members .is one of them a reference..
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>

#ifdef COHORT_FAIL
struct sample {
  int& value;
};
sample decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<sample>(bytes); }
#else
struct sample {
  int value;
};
sample decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<sample>(bytes); }
#endif
