// expect: cohort: a value takes at least one byte: codec<T>::min_size is 1 or more
// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>

#include <vector>

struct unit {};
#ifdef COHORT_FAIL
template <>
struct cohort::codec<unit> {
  static constexpr std::size_t min_size = 0;
  static void encode(writer& /*to*/, const unit& /*value*/) {}
  static unit decode(reader& /*from*/) { return {}; }
};
std::vector<unit> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::vector<unit>>(bytes); }
#else
template <>
struct cohort::codec<unit> {
  static constexpr std::size_t min_size = 1;
  static void encode(writer& to, const unit& /*value*/) { to.write(true); }
  static unit decode(reader& from) { return from.read<bool>() ? unit() : unit(); }
};
std::vector<unit> decode(const std::vector<std::byte>& bytes) { return cohort::decode_objects<std::vector<unit>>(bytes); }
#endif
