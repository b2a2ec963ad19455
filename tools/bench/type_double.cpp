// SPDX-License-Identifier: BSL-1.0
// The measurements of elements of double; see type_float.cpp.
#include "workload.hpp"

namespace cohort::tool {
template std::vector<workload> workloads_of<double>(world_type&, const bench_options&, std::size_t);
}  // namespace cohort::tool
