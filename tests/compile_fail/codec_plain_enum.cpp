// expect: cohort: an enum without a fixed underlying type has no values besides its enumerators: fix the type
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>

#ifdef COHORT_FAIL
enum color { red, green };
color decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<color>(bytes); }
#else
enum color : int { red, green };
color decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<color>(bytes); }
#endif
