// SPDX-License-Identifier: BSL-1.0
// The measurements of elements of int8; see type_float.cpp.
#include "workload.hpp"

namespace cohort::tool {
template std::vector<workload> workloads_of<std::int8_t>(world_type&, const bench_options&, std::size_t);
}  // namespace cohort::tool
