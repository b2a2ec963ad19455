// SPDX-License-Identifier: BSL-1.0
// Bodies of run_local.hpp that are no templates.
#pragma once

#include <cohort/error.hpp>
#include <cohort/run_local.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cohort {

COHORT_DECL communicator<inproc> make_local_world(const std::shared_ptr<transport::inproc_hub>& hub, int rank) {
  std::vector<int> members(static_cast<std::size_t>(hub->size()));
  for (int r = 0; r < hub->size(); ++r) members[static_cast<std::size_t>(r)] = r;
  auto endpoint = std::make_shared<transport::inproc_endpoint>(hub, rank);
  return communicator<inproc>(std::make_shared<group>(std::move(endpoint), 0, "world", std::move(members), rank));
}

namespace detail {

COHORT_DECL std::vector<communicator<inproc>> make_local_worlds(int n) {
  if (n < 1) throw error(errc::invalid_argument, "run_local: " + std::to_string(n) + " ranks: expected at least 1");
  const auto hub = std::make_shared<transport::inproc_hub>(n, transport::inproc_hub::threading::one_thread);
  std::vector<communicator<inproc>> worlds;
  for (int r = 0; r < n; ++r) worlds.push_back(make_local_world(hub, r));
  return worlds;
}

COHORT_DECL void abort_world(const group& world, const std::exception_ptr& failure) {
  if (world.failure()) return;
  std::string text = "rank " + std::to_string(world.rank()) + " ended with an exception";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    text += std::string{": "} + e.what();
  } catch (...) {
    text += " that is not a std::exception";
  }
  world.engine().report_mismatch(world, -1, world.engine().rank(), errc::aborted, std::move(text));
}

}  // namespace detail
}  // namespace cohort
