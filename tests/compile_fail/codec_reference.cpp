// expect: cohort: an address .* a reference.* means nothing in another process
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <tuple>
#include <vector>

#ifdef COHORT_FAIL
void encode(std::vector<std::byte>& bytes, const std::tuple<int&>& value) { cohort::encode_objects(bytes, value); }
#else
void encode(std::vector<std::byte>& bytes, const std::tuple<int>& value) { cohort::encode_objects(bytes, value); }
#endif
