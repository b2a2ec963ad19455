// SPDX-License-Identifier: BSL-1.0
// Bodies of registration.hpp.
#pragma once

#include <cohort/registration.hpp>
#include <cohort/transport/impl/call.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/regions.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>
#include <vector>

namespace cohort {

COHORT_DECL registration::~registration() {
  if (regions_ == nullptr) return;
  if (engine_->forked()) {
    keep_for_ever(std::move(engine_));  // the registration goes on in the parent
    return;
  }
  try {
    regions_->remove(number_, to_);
  } catch (const std::exception&) {
    // The others keep a mapping that nobody names again.
    return;
  }
}

COHORT_DECL registration registration::of_pages(std::shared_ptr<transport::sharing_engine> engine, std::byte* data,
                                                std::size_t bytes) {
  transport::regions& all = *engine->shared_buffers();
  std::vector<int> to = engine->host_ranks()->sharing();
  const std::uint64_t number = all.promote(data, bytes, to);
  if (number == 0) return {};
  return registration(std::move(engine), all, number, std::move(to));
}

COHORT_DECL registration registration::of_segment(std::shared_ptr<transport::sharing_engine> engine,
                                                  transport::shared_segment& memory) {
  transport::regions& all = *engine->shared_buffers();
  std::vector<int> to = engine->host_ranks()->sharing();
  const std::uint64_t number = all.add(memory, to);
  return registration(std::move(engine), all, number, std::move(to));
}

}  // namespace cohort
