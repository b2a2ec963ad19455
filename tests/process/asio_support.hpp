// SPDX-License-Identifier: BSL-1.0
// What tests on the caller's own io_context share.
#pragma once

#include "../support/processes.hpp"
#include "../support/rank_checks.hpp"

#include <cohort/asio.hpp>
#include <cohort/connect.hpp>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include <doctest/doctest.h>

#include <future>
#include <utility>
#include <vector>

namespace harness {

inline void check_all(const std::vector<rank_result>& results) {
  for (const auto& r : results) {
    INFO(describe(r));
    CHECK(r.ok());
  }
}

/// Runs one coroutine to its end on an io_context of its own.
template <class Main>
int on_io_context(Main rank_main) {
  boost::asio::io_context io;
  std::future<int> code;
  {
    cohort::communicator<cohort::cpu> world = cohort::connect<cohort::cpu>(io);
    code = boost::asio::co_spawn(io, rank_main(std::move(world)), boost::asio::use_future);
  }
  io.run();
  return code.get();
}

}  // namespace harness
