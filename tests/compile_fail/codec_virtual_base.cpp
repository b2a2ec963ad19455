// expect: cohort: a virtual base class would be sent once for each path to it: write codec<T>
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>
#include <boost/describe/class.hpp>

struct base {
  int value = 0;
};
BOOST_DESCRIBE_STRUCT(base, (), (value))
#ifdef COHORT_FAIL
struct sample : virtual base {
  int more = 0;
};
BOOST_DESCRIBE_STRUCT(sample, (base), (more))
sample decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<sample>(bytes); }
#else
struct sample : base {
  int more = 0;
};
BOOST_DESCRIBE_STRUCT(sample, (base), (more))
sample decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<sample>(bytes); }
#endif
