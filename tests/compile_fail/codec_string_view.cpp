// expect: cohort: an address .* a string_view.* means nothing in another process
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#ifdef COHORT_FAIL
void encode(std::vector<std::byte>& bytes, const std::map<int, std::string_view>& value) { cohort::encode_objects(bytes, value); }
#else
void encode(std::vector<std::byte>& bytes, const std::map<int, std::string>& value) { cohort::encode_objects(bytes, value); }
#endif
