// SPDX-License-Identifier: BSL-1.0
// Groups of NCCL's, which belong to the thread that opens them, with calls of several communicators in them: with NCCL's
// functions of host_nccl.cpp and CUDA's of host_runtime.cpp, on machines of one GPU or none.
#include <cohort/backend/nccl.hpp>

#include "fold_by_host.hpp"
#include "nccl_ranks.hpp"
#include "support.hpp"
#include "values.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace cohort;
using namespace std::chrono_literals;
using gpu_test::largest_magnitude;
using gpu_test::place;
using gpu_test::throws;

using body = void (*)(const communicator<nccl>&, device_buffer<float>&, on);

// What NCCL carries out itself goes into the group, whichever communicator it is of, as do messages to the rank itself.
void of_two(communicator<nccl>& world, on here) {
  const communicator<nccl> other = world.duplicate();
  const place p{world, here};
  const auto mine = static_cast<float>(world.rank() + 1);
  auto x = p.filled(std::vector<float>(5, mine));
  auto y = p.filled(std::vector<float>(3, 10 * mine));
  auto z = p.filled(std::vector<float>(3, 100 * mine));
  device_buffer<float> own(3);
  on_host(world.group(
              [&](const communicator<nccl>& g) {
                (void)g.all_reduce(x, sum{}, here);
                (void)other.all_reduce(y, sum{}, here);
                (void)other.send(z, to{other.rank()}, here);
                (void)other.recv(own, from{other.rank()}, here);
                // Between two calls of a group nobody else is inside of those whose calls it has.
                std::thread([&] {
                  CHECK(throws(
                      errc::concurrent_use, [&] { (void)other.barrier(here); }, "barrier on 'world/copy'"));
                }).join();
              },
              here))
      .wait();
  const auto n = static_cast<float>(world.size());
  p.check(x, std::vector<float>(5, n * (n + 1) / 2), "group: all_reduce");
  p.check(y, std::vector<float>(3, 10 * n * (n + 1) / 2), "group: all_reduce of another communicator");
  p.check(own, std::vector<float>(3, 100 * mine), "group: a message of another communicator to this rank itself");
  on_host(other.all_reduce(y, sum{}, here)).wait();
  CHECK(!world.failed() && !other.failed());
}

// What cannot be within a group is refused on any communicator, and ends those that have calls in it.
void refused_on_another() {
  const std::pair<const char*, body> folds[] = {
      {"all_reduce",
       [](const communicator<nccl>& c, auto& v, on here) { (void)c.all_reduce(v, largest_magnitude{}, here); }},
      {"scan", [](const communicator<nccl>& c, auto& v, on here) { (void)c.scan(v, v, sum{}, here); }}};
  const std::pair<const char*, body> makes[] = {
      {"duplicate", [](const communicator<nccl>& c, auto&, on) { (void)c.duplicate(); }},
      {"split", [](const communicator<nccl>& c, auto&, on) { (void)c.split(color{0}); }},
      {"subgroup",
       [](const communicator<nccl>& c, auto&, on) {
         (void)c.subgroup(ranks{0, 1});
       }},
      {"make_window", [](const communicator<nccl>& c, auto&, on) { (void)c.make_window<float>(4); }}};
  const auto is_refused = [](const char* name, body call, const char* why) {
    gpu_test::on_ranks(2, [&](communicator<nccl>& world, on here) {
      const communicator<nccl> other = world.duplicate();
      const communicator<nccl> third = world.duplicate();
      device_buffer<float> v(10);
      device_buffer<float> w(10);
      const auto grouped = [&](const communicator<nccl>& g) {
        (void)g.all_reduce(v, sum{}, here);
        (void)other.all_reduce(w, sum{}, here);
        call(third, v, here);
      };
      CHECK(throws(
          errc::invalid_argument, [&] { (void)world.group(grouped, here); }, std::string(name) + " on 'world/copy'",
          "outside of the group", why));
      CHECK(world.failed() && other.failed());
      CHECK(throws(
          errc::invalid_argument, [&] { (void)other.barrier(here); }, "barrier on 'world/copy'", "first cause", name));
    });
  };
  for (const auto& [name, call] : folds) is_refused(name, call, "must run between two exchanges");
  for (const auto& [name, call] : makes) is_refused(name, call, "nothing can be waited for");
}

// A wait in a group would be one for what is on the stream before it.
void waits() {
  const std::pair<const char*, body> each[] = {
      {"on_host() within group()",
       [](const communicator<nccl>& g, auto& v, on here) { on_host(g.all_reduce(v, sum{}, here)).wait(); }},
      {"timeout{} within group()",
       [](const communicator<nccl>& g, auto& v, on here) { (void)g.all_reduce(v, sum{}, here, timeout{5s}); }}};
  for (const auto& [what, call] : each) {
    for (const bool of_another : {false, true}) {
      gpu_test::on_ranks(2, [&](communicator<nccl>& world, on here) {
        const communicator<nccl> other = world.duplicate();
        device_buffer<float> v(10);
        const auto grouped = [&](const communicator<nccl>& g) { call(of_another ? other : g, v, here); };
        CHECK(throws(
            errc::invalid_argument, [&] { (void)world.group(grouped, here); },
            std::string("all_reduce on 'world") + (of_another ? "/copy'" : "'"), what, "wait for what it returns"));
        CHECK(world.failed());
      });
    }
  }
  gpu_test::on_ranks(2, [&](communicator<nccl>& world, on here) {
    device_buffer<float> v(10);
    const auto grouped = [&](const communicator<nccl>& g) { (void)g.all_reduce(v, sum{}, here); };
    on_host(world.group(grouped, here, timeout{30s})).wait();
    CHECK(!world.failed());
  });
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  for (const bool blocking : {false, true}) {
    for (const int n : {1, 2, 3}) gpu_test::on_ranks(n, of_two, blocking);
  }
  refused_on_another();
  waits();
  return gpu_test::conclude("groups_on_host");
}
