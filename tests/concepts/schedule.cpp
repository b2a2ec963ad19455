// SPDX-License-Identifier: BSL-1.0
// schedule and schedule_sink: a schedule says four things about itself, to a sink that takes five kinds of action.
#include <cohort/collective/schedule.hpp>

namespace {

using cohort::collective::region;
using cohort::collective::schedule;
using cohort::collective::schedule_sink;
using cohort::collective::side;

struct sink {
  void send(int peer, region r);
  void receive(int peer, region r);
  void receive_reduce(int peer, region r, side s);
  void copy(region from, region to);
  void reduce(region from, region into, side s);
};
static_assert(schedule_sink<sink>);

struct sink_without_copy {
  void send(int peer, region r);
  void receive(int peer, region r);
  void receive_reduce(int peer, region r, side s);
  void reduce(region from, region into, side s);
};
struct sink_without_sides {
  void send(int peer, region r);
  void receive(int peer, region r);
  void receive_reduce(int peer, region r);
  void copy(region from, region to);
  void reduce(region from, region into);
};
static_assert(!schedule_sink<int>);
static_assert(!schedule_sink<sink_without_copy>);
static_assert(!schedule_sink<sink_without_sides>);

struct minimal {
  [[nodiscard]] int rounds() const;
  [[nodiscard]] int blocks() const;
  [[nodiscard]] int work_blocks() const;
  template <schedule_sink Sink>
  void round(int k, Sink& to) const;
};
static_assert(schedule<minimal>);

struct changes_as_it_goes {
  [[nodiscard]] int rounds() const;
  [[nodiscard]] int blocks() const;
  [[nodiscard]] int work_blocks() const;
  template <schedule_sink Sink>
  void round(int k, Sink& to);
};
struct without_scratch {
  [[nodiscard]] int rounds() const;
  [[nodiscard]] int blocks() const;
  template <schedule_sink Sink>
  void round(int k, Sink& to) const;
};
struct counts_in_another_type {
  [[nodiscard]] unsigned rounds() const;
  [[nodiscard]] int blocks() const;
  [[nodiscard]] int work_blocks() const;
  template <schedule_sink Sink>
  void round(int k, Sink& to) const;
};
static_assert(!schedule<int>);
static_assert(!schedule<changes_as_it_goes>);
static_assert(!schedule<without_scratch>);
static_assert(!schedule<counts_in_another_type>);

}  // namespace
