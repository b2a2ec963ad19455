// SPDX-License-Identifier: BSL-1.0
// How an operation names the communicator that it belongs to without keeping it: a place that is never freed, and the number
// of those that have had it before. To count owners would be the most of what a call costs: each count is an access to
// memory that waits for all before it. Used by device_party.hpp and stream_ordered.hpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace cohort::detail {

class device_party;

class party_ticket {
  struct place {
    std::mutex mutex{};
    device_party* party = nullptr;
    std::uint64_t number = 0;
  };

 public:
  /// Of a party, for as long as it lives: what its tickets are made from.
  class office {
   public:
    explicit office(device_party* whose) : place_(take()) {
      const std::lock_guard lock(place_->mutex);
      place_->party = whose;
      number_ = ++place_->number;
    }
    office(const office&) = delete;
    office& operator=(const office&) = delete;
    ~office() {
      {
        const std::lock_guard lock(place_->mutex);
        place_->party = nullptr;
      }
      const std::lock_guard lock(spare().mutex);
      spare().places.push_back(place_);
    }
    [[nodiscard]] party_ticket ticket() const noexcept { return {place_, number_}; }

   private:
    place* place_;
    std::uint64_t number_ = 0;
  };

  party_ticket() = default;

  /// Any thread.
  ///
  /// Errors: aborted where the party has gone
  [[nodiscard]] std::shared_ptr<device_party> party() const;

 private:
  party_ticket(place* where, std::uint64_t number) noexcept : place_(where), number_(number) {}

  struct spare_places {
    std::mutex mutex{};
    std::vector<place*> places{};
  };
  /// As many as there have been communicators at a time. Not freed at the end either, when tickets may still be about.
  static spare_places& spare() {
    static spare_places* const all = new spare_places;
    return *all;
  }
  static place* take() {
    const std::lock_guard lock(spare().mutex);
    if (spare().places.empty()) return new place;
    place* const last = spare().places.back();
    spare().places.pop_back();
    return last;
  }

  place* place_ = nullptr;
  std::uint64_t number_ = 0;
};

}  // namespace cohort::detail
