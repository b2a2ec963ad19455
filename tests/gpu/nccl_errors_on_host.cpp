// SPDX-License-Identifier: BSL-1.0
// What communicator<nccl> refuses while it runs, and what becomes of a failure, on every rank: with NCCL's functions of
// host_nccl.cpp and CUDA's of host_runtime.cpp, on machines of one GPU or none.
#include <cohort/backend/nccl.hpp>

#include "fold_by_host.hpp"
#include "host_nccl.hpp"
#include "nccl_ranks.hpp"
#include "support.hpp"
#include "values.hpp"

#include <barrier>
#include <chrono>
#include <latch>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace cohort;
using namespace std::chrono_literals;
using gpu_test::largest_magnitude;
using gpu_test::place;
using gpu_test::throws;

void refused(const place& p) {
  device_buffer<float> v(6);
  const int n = p.world.size();
  const std::string who = "on 'world', rank " + std::to_string(p.world.rank()) + " of " + std::to_string(n);
  const auto wrong = [&](const auto& f, const auto&... parts) {
    return throws(errc::invalid_argument, f, who, parts...);
  };
  CHECK(wrong([&] { (void)p.world.send(v, to{p.world.rank()}, p.here); }, "send", "this rank itself", "exchange"));
  CHECK(wrong([&] { (void)p.world.batch(receiving(v, from{n}), p.here); }, "batch", "source " + std::to_string(n),
              "expected 0.." + std::to_string(n - 1)));
  CHECK(wrong([&] { (void)p.world.batch(sending(v, to{p.world.rank()}, tag{7}), p.here); },
              "sends itself 24 bytes under tag 7 and receives nothing", "into one batch"));
  CHECK(wrong([&] { (void)p.world.batch(sending(v, to{0}, tag{-7}), p.here); }, "tag -7: expected 0 or more"));
  const std::vector<device_span<float>> list(p.n + 1, v.device_view());
  CHECK(wrong([&] { (void)p.world.all_gather(v, list, p.here); }, "all_gather", "out has " + std::to_string(n + 1),
              "expected " + std::to_string(n) + ", one for each rank"));
  std::vector<device_span<float>> shorter(p.n, v.device_view());
  shorter.back() = v.device_view().first(5);
  CHECK(
      wrong([&] { (void)p.world.all_gather(v, shorter, p.here); }, "out has 5 elements, expected 6 = the size of in"));
  CHECK(wrong([&] { (void)p.world.subgroup(std::vector<int>{0, 0}); }, "subgroup", "rank 0 is twice in the list"));
  CHECK(wrong([&] { (void)p.world.subgroup(std::vector<int>()); }, "the list of members is empty"));
  CHECK(wrong([&] { (void)p.world.reduce_scatter(list, v, sum{}, p.here); }, "in has " + std::to_string(n + 1)));
  // A buffer of another device, by the rank that it belongs to.
  if (n > 1) {
    const int other = (p.world.rank() + 1) % n;
    const device_scope there(device{other});
    device_buffer<float> foreign(3);
    CHECK(wrong([&] { (void)p.world.all_reduce(foreign, sum{}, p.here); },
                "the memory of device " + std::to_string(other),
                "expected the memory of device " + std::to_string(p.world.rank())));
  }
  CHECK(!p.world.failed());
}

// A rank that does not come: the others are told at the deadline, by name, and every later call says why.
void without_one(communicator<nccl>& world, on here, std::latch& told) {
  if (world.rank() == 1) return told.wait();
  device_buffer<float> v(100);
  CHECK(throws(
      errc::timed_out, [&] { on_host(world.all_reduce(v, sum{}, here), timeout{100ms}).wait(); },
      "all_reduce on rank " + std::to_string(world.rank()) + " of 3", "after 100 ms", "a rank has not come"));
  CHECK(world.failed());
  CHECK(throws(
      errc::timed_out, [&] { (void)world.barrier(here); }, "barrier on 'world'", "first cause", "all_reduce"));
  told.count_down();
}

// A stream that is captured has no host that waits for it, and no memory is made there.
void captured(communicator<nccl>& world, on here) {
  device_buffer<float> v(1000);
  gpu_test::set_capturing(here.stream, true);
  CHECK(throws(
      errc::invalid_argument, [&] { (void)on_host(world.all_reduce(v, sum{}, here)); },
      "on_host after all_reduce on rank " + std::to_string(world.rank()), "captured into a graph",
      "await the launch of the graph"));
  CHECK(throws(
      errc::invalid_argument, [&] { (void)world.all_reduce(v, sum{}, here, timeout{1s}); }, "timeout{}", "captured"));
  CHECK(throws(
      errc::invalid_argument, [&] { (void)world.all_reduce(v, largest_magnitude{}, here); },
      "all_reduce on 'world', rank " + std::to_string(world.rank()), "bytes of scratch memory",
      "make the same call once on this stream before the capture"));
  gpu_test::set_capturing(here.stream, false);
  on_host(world.all_reduce(v, largest_magnitude{}, here)).wait();
  gpu_test::set_capturing(here.stream, true);
  (void)world.all_reduce(v, largest_magnitude{}, here);
  gpu_test::set_capturing(here.stream, false);
  on_host(world.enqueued(here)).wait();
  CHECK(!world.failed());
}

// What NCCL notices by itself is an error where somebody waits, and of every later call.
void lost_rank(communicator<nccl>& world, on here, std::latch& told) {
  if (world.rank() == 1) return told.wait();
  device_buffer<float> v(100);
  const auto op = world.all_reduce(v, sum{}, here);
  gpu_test::set_asynchronous_error(world.native_handle(), ncclRemoteError);
  CHECK(throws(
      errc::peer_lost, [&] { on_host(op).wait(); }, "all_reduce on rank " + std::to_string(world.rank()) + " of 3",
      "NCCL's own thread"));
  CHECK(world.failed());
  CHECK(throws(
      errc::peer_lost, [&] { (void)world.send(v, to{1}, here); }, "send on 'world'", "first cause",
      "NCCL's own thread"));
  told.count_down();
}

// An exception in a group ends the communicator: what had been asked of NCCL before it would wait for what was not.
void thrown_in_group(communicator<nccl>& world, on here) {
  device_buffer<float> v(100);
  const auto body = [&](const communicator<nccl>& g) {
    (void)g.send(v, to{(g.rank() + 1) % g.size()}, here);
    (void)g.all_reduce(v, largest_magnitude{}, here);
  };
  CHECK(throws(
      errc::invalid_argument, [&] { (void)world.group(body, here); }, "all_reduce on 'world'",
      "make this call outside of the group"));
  CHECK(world.failed());
  CHECK(throws(
      errc::invalid_argument, [&] { (void)world.barrier(here); }, "barrier on 'world'", "first cause",
      "outside of the group"));
}

// A subgroup on which its members do not agree is an error on all of them, and the world goes on.
void subgroups(communicator<nccl>& world, on here, std::barrier<>& all) {
  const int mine = world.rank();
  const std::string who = "subgroup on 'world', rank " + std::to_string(mine) + " of 3";
  CHECK(throws(
      errc::invalid_argument,
      [&] {
        (void)world.subgroup(mine == 1 ? ranks{0, 2, 1} : ranks{0, 1, 2});
      },
      who, "ranks 0 and 1 have called it with different lists of members", "in the same order"));
  all.arrive_and_wait();
  if (mine == 0) gpu_test::unique_id_result = ncclSystemError;
  all.arrive_and_wait();
  CHECK(throws(
      errc::io_error,
      [&] {
        (void)world.subgroup(ranks{2, 0, 1});
      },
      who, "ncclGetUniqueId on rank 0", "an error of host_nccl.cpp"));
  all.arrive_and_wait();
  if (mine == 0) gpu_test::unique_id_result = ncclSuccess;
  all.arrive_and_wait();
  gpu_test::set_capturing(here.stream, true);
  CHECK(throws(
      errc::invalid_argument,
      [&] {
        (void)world.subgroup(ranks{0, 1, 2});
      },
      who, "captured into a graph", "make it before the capture"));
  gpu_test::set_capturing(here.stream, false);
  CHECK(!world.failed());
  const communicator<nccl> whole = world.subgroup(ranks{0, 1, 2});
  CHECK(whole.size() == 3 && whole.rank() == mine);
  CHECK(throws(
      errc::invalid_argument,
      [&] {
        (void)world.group([](const communicator<nccl>& g) { (void)g.subgroup(ranks{0, 1, 2}); }, here);
      },
      who, "make it outside of the group"));
}

// A member that does not come to a subgroup.
void subgroup_without_one(communicator<nccl>& world, on here, std::latch& told) {
  if (world.rank() == 1) return told.wait();
  world.set_timeout(100ms);
  CHECK(world.timeout_after() == 100ms && !world.poll());
  CHECK(throws(
      errc::timed_out,
      [&] {
        (void)world.subgroup(ranks{0, 1, 2});
      },
      "subgroup on rank " + std::to_string(world.rank()) + " of 3", "after 100 ms", "a rank has not come"));
  CHECK(world.failed());
  CHECK(throws(
      errc::timed_out, [&] { (void)world.barrier(here); }, "barrier on 'world'", "first cause", "subgroup"));
  told.count_down();
}

// A rank that does not come where NCCL's calls block: they are ended from another thread, and say so on their own.
void call_without_one(communicator<nccl>& world, on here, std::latch& told) {
  if (world.rank() == 1) return told.wait();
  device_buffer<float> v(100);
  CHECK(throws(
      errc::timed_out, [&] { (void)world.all_reduce(v, sum{}, here); },
      "all_reduce on 'world', rank " + std::to_string(world.rank()) + " of 3", "ncclAllReduce was ended",
      "a rank has not made this call"));
  CHECK(world.failed());
  CHECK(throws(
      errc::timed_out, [&] { (void)world.barrier(here); }, "barrier on 'world'", "first cause",
      "a rank has not made this call"));
  told.count_down();
}
void split_without_one(communicator<nccl>& world, on here, std::latch& told) {
  if (world.rank() == 1) return told.wait();
  CHECK(throws(
      errc::timed_out, [&] { (void)world.split(color{0}); },
      "split on 'world', rank " + std::to_string(world.rank()) + " of 3", "ncclCommSplit was ended"));
  CHECK(world.failed());
  (void)here;
  told.count_down();
}
// A deadline that passes while this rank is in a call that does not come back.
void awaited_without_one(communicator<nccl>& world, on here, std::latch& told) {
  if (world.rank() == 1) return told.wait();
  device_buffer<float> v(100);
  std::latch released(1);
  gpu_test::enqueue_on_host(here.stream, [&] { released.wait(); });
  const auto late = on_host(world.enqueued(here), timeout{50ms});
  CHECK(throws(
      errc::timed_out, [&] { (void)world.all_reduce(v, sum{}, here); }, "ncclAllReduce was ended", "after 50 ms"));
  CHECK(throws(
      errc::timed_out, [&] { late.wait(); }, "enqueued on rank " + std::to_string(world.rank()), "after 50 ms"));
  released.count_down();
  told.count_down();
}

void aborted(communicator<nccl>& world, on here) {
  world.abort();
  CHECK(throws(
      errc::cancelled, [&] { (void)world.barrier(here); }, "barrier on 'world'", "abort() was called"));
}

// Nothing can be waited for within a group, as what NCCL makes must be.
void made_in_group() {
  using body = void (*)(const communicator<nccl>&);
  const std::pair<const char*, body> each[] = {
      {"split", [](const communicator<nccl>& g) { (void)g.split(color{0}); }},
      {"shrink", [](const communicator<nccl>& g) { (void)g.shrink(ranks{1 - g.rank()}); }},
      {"make_window", [](const communicator<nccl>& g) { (void)g.make_window<float>(4); }}};
  for (const auto& [name, made] : each) {
    gpu_test::on_ranks(2, [&](communicator<nccl>& world, on here) {
      CHECK(throws(
          errc::invalid_argument, [&] { (void)world.group(made, here); }, std::string(name) + " on 'world', rank",
          "within group()", "make it outside of the group"));
    });
  }
}

// An operation that is looked at when its communicator has gone, also by one that has come to the same place.
void outlived() {
  std::optional<stream_ordered> left;
  const stream other;  // before the one that ends: that one's handle may be given to a later stream
  gpu_test::on_ranks(1, [&](communicator<nccl>& world, on here) { left = world.barrier(here); });
  const auto gone = [&] {
    return throws(
        errc::aborted, [&] { (void)on_host(*left); }, "the communicator of this operation has gone",
        "keep it until the await is over");
  };
  EXPECT(gone());
  gpu_test::on_ranks(1, [&](communicator<nccl>& world, on here) {
    CHECK(gone());
    CHECK(throws(
        errc::aborted, [&] { left->join(other.get()); }, "has gone"));
    world.barrier(here).join(other.get());
  });
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const int n : {1, 2, 3}) {
    gpu_test::on_ranks(n, [](communicator<nccl>& world, on here) { refused({world, here}); });
  }
  std::latch late(2);
  gpu_test::on_ranks(3, [&](communicator<nccl>& world, on here) { without_one(world, here, late); });
  std::latch lost(2);
  gpu_test::on_ranks(3, [&](communicator<nccl>& world, on here) { lost_rank(world, here, lost); });
  std::latch alone(2);
  gpu_test::on_ranks(3, [&](communicator<nccl>& world, on here) { subgroup_without_one(world, here, alone); });
  std::barrier<> all(3);
  gpu_test::on_ranks(3, [&](communicator<nccl>& world, on here) { subgroups(world, here, all); });
  std::latch call(2);
  gpu_test::on_ranks(
      3, [&](communicator<nccl>& world, on here) { call_without_one(world, here, call); }, true, 300ms);
  std::latch division(2);
  gpu_test::on_ranks(
      3, [&](communicator<nccl>& world, on here) { split_without_one(world, here, division); }, true, 300ms);
  std::latch awaited(2);
  gpu_test::on_ranks(
      3, [&](communicator<nccl>& world, on here) { awaited_without_one(world, here, awaited); }, true);
  gpu_test::on_ranks(2, captured);
  gpu_test::on_ranks(2, thrown_in_group);
  gpu_test::on_ranks(2, aborted);
  made_in_group();
  outlived();
  return gpu_test::conclude("nccl_errors_on_host");
}
