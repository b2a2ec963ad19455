// expect: cohort: an address .* means nothing in another process: send what it points to, as a value, a std::string
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <memory>
#include <vector>

#ifdef COHORT_FAIL
struct node {
  int value;
  node* next;
};
void encode(std::vector<std::byte>& bytes, const node& value) { cohort::encode_objects(bytes, value); }
#else
struct node {
  int value;
  std::unique_ptr<node> next;
};
void encode(std::vector<std::byte>& bytes, const node& value) { cohort::encode_objects(bytes, value); }
#endif
