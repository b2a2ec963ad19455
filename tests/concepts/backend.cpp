// SPDX-License-Identifier: BSL-1.0
#include <cohort/backend/inproc.hpp>
#include <cohort/bfloat16.hpp>
#include <cohort/float8.hpp>
#include <cohort/ops.hpp>

#include <memory>
#include <string>
#include <vector>

namespace {

using namespace cohort;

// The smallest backend: an engine that can start a request.
struct minimal_transport : transport::engine {
  minimal_transport() : engine(0, 1) {}
  void start(transport::request&) {}
  void withdraw(transport::request&) override {}
  std::shared_ptr<const transport::fault> report(transport::fault, const group&) override { return nullptr; }
  void entered(const call&) override {}
  bool progress() override { return false; }
  void sleep_until(clock::time_point) override {}
  void wake() noexcept override {}
  void collect_faults(std::vector<std::shared_ptr<const transport::fault>>&) override {}
};
struct minimal_backend {
  using transport_type = minimal_transport;
  static constexpr std::string_view name = "minimal";
};
static_assert(backend<minimal_backend> && backend<inproc>);

// Near misses.
struct no_engine {
  void start(transport::request&) {}
};
struct cannot_start : transport::engine {};
struct starts_with_an_answer : minimal_transport {
  bool start(transport::request&) { return true; }
};
struct unnamed {
  using transport_type = minimal_transport;
};
static_assert(!transport::message_transport<no_engine>);
static_assert(!transport::message_transport<cannot_start>);
static_assert(!transport::message_transport<starts_with_an_answer>);
static_assert(!backend<unnamed> && !backend<int>);

// What is asked at compile time.
struct sample {
  double mean;
};
struct merge {
  sample operator()(const sample& a, const sample& b) const noexcept { return {a.mean + b.mean}; }
};
struct not_a_functor {};
static_assert(supports<inproc, function::all_reduce, float, sum>() == support::generic);
static_assert(supports<inproc, function::all_reduce, bfloat16, sum>() == support::generic);
static_assert(supports<inproc, function::all_reduce, float8_e4m3, sum>() == support::none);
static_assert(supports<inproc, function::all_gather, float8_e4m3>() == support::generic);
static_assert(supports<inproc, function::reduce_scatter, sample, merge>() == support::generic);
static_assert(supports<inproc, function::reduce_scatter, sample, not_a_functor>() == support::none);
static_assert(supports<inproc, function::broadcast, std::string>() == support::none);
static_assert(supports<int, function::broadcast, float>() == support::none);

// A backend's own collective is seen where it has one, and nowhere else.
struct adds_floats : minimal_backend {
  template <class T, class Op>
  static constexpr bool native_all_reduce = std::is_same_v<T, float> && std::is_same_v<Op, sum>;
};
static_assert(supports<adds_floats, function::all_reduce, float, sum>() == support::native);
static_assert(supports<adds_floats, function::all_reduce, double, sum>() == support::generic);
static_assert(supports<adds_floats, function::reduce, float, sum>() == support::generic);

}  // namespace
