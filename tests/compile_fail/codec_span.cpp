// expect: cohort: an address .* a span.* means nothing in another process
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <span>
#include <vector>

#ifdef COHORT_FAIL
std::span<int> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::span<int>>(bytes); }
#else
std::vector<int> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::vector<int>>(bytes); }
#endif
