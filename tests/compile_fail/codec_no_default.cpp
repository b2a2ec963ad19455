// expect: cohort: a described class is made by its default constructor and then filled: give it one, or write codec<T>
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>
#include <boost/describe/class.hpp>

#ifdef COHORT_FAIL
struct sample {
  explicit sample(int v) : value(v) {}
  int value;
};
BOOST_DESCRIBE_STRUCT(sample, (), (value))
sample decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<sample>(bytes); }
#else
struct sample {
  sample() = default;
  explicit sample(int v) : value(v) {}
  int value = 0;
};
BOOST_DESCRIBE_STRUCT(sample, (), (value))
sample decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<sample>(bytes); }
#endif
