// SPDX-License-Identifier: BSL-1.0
// element and reduction: what travels, and what combines it.
#include <cohort/element.hpp>
#include <cohort/reduction.hpp>

#include <functional>
#include <memory>
#include <string>

namespace {

struct point {
  float x;
  float y;
};
struct without_default {
  explicit without_default(int v) : value(v) {}
  int value;
};
struct constant_inside {
  const int value;
};
struct owner {
  std::unique_ptr<int> value;
};

static_assert(cohort::element<point>);
static_assert(cohort::element<without_default>);
static_assert(cohort::element<bool>);
static_assert(!cohort::element<const int>);
static_assert(!cohort::element<int[2]>);
static_assert(!cohort::element<int*>);
static_assert(!cohort::element<std::string>);
static_assert(!cohort::element<owner>);

struct add_points {
  point operator()(const point& a, const point& b) const;
};
struct changes_itself {
  point operator()(const point& a, const point& b);
};
struct changes_operands {
  point operator()(point& a, point& b) const;
};
struct compares {
  std::string operator()(const point& a, const point& b) const;
};
struct takes_one {
  point operator()(const point& a) const;
};
struct add_constants {
  constant_inside operator()(const constant_inside& a, const constant_inside& b) const;
};

static_assert(cohort::reduction<add_points, point>);
static_assert(cohort::reduction<std::plus<>, int>);
static_assert(cohort::reduction<cohort::sum, float>);
static_assert(!cohort::reduction<add_points, int>);
static_assert(!cohort::reduction<changes_itself, point>);
static_assert(!cohort::reduction<changes_operands, point>);
static_assert(!cohort::reduction<compares, point>);
static_assert(!cohort::reduction<takes_one, point>);
static_assert(!cohort::reduction<add_constants, constant_inside>);
static_assert(!cohort::reduction<std::plus<>, std::string>);

static_assert(cohort::is_commutative<cohort::sum, int>);
static_assert(!cohort::is_commutative<add_points, point>);

}  // namespace
