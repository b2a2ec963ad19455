// expect: cohort: a class that is neither an aggregate nor described has no codec: write codec<T> or describe it with BOOST_DESCRIBE_STRUCT
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>
#include <boost/describe/class.hpp>

#ifdef COHORT_FAIL
class counter {
 public:
  void add() { ++count_; }

 private:
  int count_ = 0;
};
void encode(std::vector<std::byte>& bytes, const std::vector<counter>& value) { cohort::encode_objects(bytes, value); }
#else
class counter {
 public:
  void add() { ++count_; }

 private:
  int count_ = 0;
  BOOST_DESCRIBE_CLASS(counter, (), (), (), (count_))
};
void encode(std::vector<std::byte>& bytes, const std::vector<counter>& value) { cohort::encode_objects(bytes, value); }
#endif
