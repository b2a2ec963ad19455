// expect: cohort: say what to decode: decode_objects<T>.bytes.
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>

#ifdef COHORT_FAIL
void decode(const std::vector<std::byte>& bytes) { static_cast<void>(cohort::decode_objects<>(bytes)); }
#else
void decode(const std::vector<std::byte>& bytes) { static_cast<void>(cohort::decode_objects<int>(bytes)); }
#endif
