// expect: cohort: a struct with a base class has no codec by itself: describe it with BOOST_DESCRIBE_STRUCT
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>
#include <boost/describe/class.hpp>

struct base {
  int value;
};
#ifdef COHORT_FAIL
struct derived : base {
  int more;
};
derived decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<derived>(bytes); }
#else
struct derived : base {
  int more;
};
BOOST_DESCRIBE_STRUCT(derived, (base), (more))
derived decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<derived>(bytes); }
#endif
