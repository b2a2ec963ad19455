// expect: cohort: a unique_ptr to a class with virtual functions may hold a derived one
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <memory>
#include <vector>
#include <boost/describe/class.hpp>

#ifdef COHORT_FAIL
struct shape {
  virtual ~shape() = default;
  int color = 0;
};
BOOST_DESCRIBE_STRUCT(shape, (), (color))
std::unique_ptr<shape> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::unique_ptr<shape>>(bytes); }
#else
struct shape final {
  virtual ~shape() = default;
  int color = 0;
};
BOOST_DESCRIBE_STRUCT(shape, (), (color))
std::unique_ptr<shape> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::unique_ptr<shape>>(bytes); }
#endif
