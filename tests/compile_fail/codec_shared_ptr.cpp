// expect: cohort: a shared_ptr would arrive as so many separate copies: hold the object by value or in a std::unique_ptr
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <memory>
#include <vector>

#ifdef COHORT_FAIL
std::shared_ptr<int> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::shared_ptr<int>>(bytes); }
#else
std::unique_ptr<int> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::unique_ptr<int>>(bytes); }
#endif
