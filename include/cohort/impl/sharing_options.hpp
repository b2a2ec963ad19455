// SPDX-License-Identifier: BSL-1.0
// The variables about the memory of one host, which the options of every backend with processes have alike.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>
#include <cohort/launch.hpp>
#include <cohort/transport/shm/copy_choice.hpp>

#include <optional>
#include <string>

namespace cohort::detail {

/// Errors: errc::bad_environment naming the variable
template <class Options>
void read_sharing(Options& o, const environment& env) {
  o.host_id = env.get("COHORT_HOST_ID").value_or("");
  if (o.host_id.size() > 64) {
    throw error(errc::bad_environment,
                "COHORT_HOST_ID has " + std::to_string(o.host_id.size()) + " characters: expected at most 64");
  }
  if (const std::optional<std::string> shared = env.get("COHORT_SHM")) {
    if (*shared != "0" && *shared != "1") {
      throw error(errc::bad_environment, "COHORT_SHM=" + detail::quoted(*shared) +
                                             ": expected 1, to share memory with the ranks of this host, or 0");
    }
    o.shared_memory = *shared == "1";
  }
  if (const std::optional<std::string> once = env.get("COHORT_SINGLE_COPY"); once && *once != "auto") {
    if (*once != "0" && *once != "1" && *once != "both") {
      throw error(errc::bad_environment,
                  "COHORT_SINGLE_COPY=" + detail::quoted(*once) +
                      ": expected 1, to have long messages copied once by their receivers, both, by either end "
                      "a share, 0, through a ring, or auto, as is faster");
    }
    using transport::copying;
    o.copies = *once == "0" ? copying::through_ring : *once == "1" ? copying::single_copy : copying::by_both;
  }
}

}  // namespace cohort::detail
