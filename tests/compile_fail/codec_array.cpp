// expect: cohort: a built-in array cannot be returned from a function: use std::array, or std::string for a string literal
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <string>
#include <vector>

#ifdef COHORT_FAIL
void encode(std::vector<std::byte>& bytes) { cohort::encode_objects(bytes, "text"); }
#else
void encode(std::vector<std::byte>& bytes) { cohort::encode_objects(bytes, std::string("text")); }
#endif
