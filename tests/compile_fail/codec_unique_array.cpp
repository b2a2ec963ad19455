// expect: cohort: this unique_ptr has no codec: one of an array does not know its size .use std::vector.
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <memory>
#include <vector>

#ifdef COHORT_FAIL
std::unique_ptr<int[]> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::unique_ptr<int[]>>(bytes); }
#else
std::vector<int> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::vector<int>>(bytes); }
#endif
