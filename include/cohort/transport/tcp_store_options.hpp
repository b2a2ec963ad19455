// SPDX-License-Identifier: BSL-1.0
// What a client of a tcp_store_server tells and expects.
#pragma once

#include <cohort/store.hpp>
#include <cohort/tls_options.hpp>
#include <cohort/uri.hpp>

#include <cstdint>
#include <string>

namespace cohort {

struct tcp_store_options {
  endpoint where{};
  std::string run_id{};
  std::uint32_t epoch = 0;
  int world_size = 0;  ///< told to the server
  int rank = -1;       ///< told to the server; -1 for a tool that is no rank
  std::string secret{};
  tls_options tls{};
  deadline alive_until = deadline::min();  ///< before then no call takes a server that does not answer for dead
};

}  // namespace cohort
