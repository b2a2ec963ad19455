// SPDX-License-Identifier: BSL-1.0
// The rows of the nccl backend in the support table of the README: the example that prints it, asked for this backend. The
// core comes before the backend, which no other test does.
#include <cohort/cohort.hpp>

#include <cohort/backend/nccl.hpp>

#include <complex>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#define cpu nccl
#include "../../examples/19_support_table.cpp"
#undef cpu

static_assert(supports<nccl, cohort::function::all_reduce, float, average>() == support::native);
static_assert(supports<nccl, cohort::function::all_reduce, bfloat16, average>() == support::generic);
static_assert(supports<nccl, cohort::function::exclusive_scan, sample, merge>() == support::generic);  // initial{value}
static_assert(supports<nccl, cohort::function::exclusive_scan, float, average>() == support::none);
static_assert(supports<nccl, cohort::function::broadcast, float8_e5m2>() == support::native);
static_assert(supports<nccl, cohort::function::reduce, float8_e5m2, sum>() == support::none);
static_assert(supports<nccl, cohort::function::send, float>() == support::generic);
static_assert(supports<nccl, cohort::function::batch, sample>() == support::generic);
static_assert(supports<nccl, cohort::function::probe, float>() == support::none);
