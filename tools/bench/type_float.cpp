// SPDX-License-Identifier: BSL-1.0
// The measurements of elements of float. One source for each type: together they would take minutes to compile.
#include "workload.hpp"

namespace cohort::tool {
template std::vector<workload> workloads_of<float>(world_type&, const bench_options&, std::size_t);
}  // namespace cohort::tool
