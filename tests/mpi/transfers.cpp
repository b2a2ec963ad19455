// SPDX-License-Identifier: BSL-1.0
// Long messages that MPI moves from buffer to buffer, with the check and without, when they are asked for late, in another
// order, or never; and memory of a device, as far as there need be none. Run by mpirun with the names of parts.
#include "../support/drop_at_random.hpp"
#include "../support/pair_calls.hpp"
#include "in_a_row.hpp"
#include "parts.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

using namespace std::chrono_literals;
using namespace mpi_test;

namespace {

// --- long messages that nobody has asked for yet

constexpr std::size_t long_count = std::size_t{1} << 18;

/// The buffer is the caller's again although the receiver had heard of the message, and never asked.
task<> long_send_dropped(world_type world) {
  if (world.size() < 2) co_return;
  if (world.rank() == 0) {
    std::vector<int> v(long_count, 5);
    { [[maybe_unused]] auto op = world.send(v, cohort::to{1}); }
    std::vector<int>().swap(v);
    co_return;
  }
  stand_by(world);
  auto op = world.barrier();
  auto check = fails(op, errc::aborted, {"rank 0 dropped send before it was complete"});
  co_await check;
}

/// Both ends wait for the other to let go.
task<> long_sends_cross(world_type world) {
  if (world.size() < 2) co_return;
  if (world.rank() > 1) {
    stand_by(world);
    co_return;
  }
  const auto start = std::chrono::steady_clock::now();
  {
    std::vector<int> v(long_count, 5);
    auto op = world.send(v, cohort::to{1 - world.rank()}, cohort::timeout{300ms});
    auto check = fails(op, errc::timed_out, {"send of rank"});
    co_await check;
  }
  const auto took = std::chrono::steady_clock::now() - start;
  expect(took < 2s, "both buffers to be given back before anybody loses patience");
}

task<> long_send_to_one_who_left(world_type world) {
  if (world.size() < 2 || world.rank() == last(world)) co_return;
  if (world.rank() == 0) {
    std::vector<int> v(long_count, 5);
    auto op = world.send(v, cohort::to{last(world)});
    auto check = fails(op, errc::peer_lost, {"rank " + std::to_string(last(world)), "has left the world"});
    co_await check;
  } else {
    stand_by(world);
  }
}

/// More than may be on its way unasked, received the other way round: every message in its place, and probes see them.
task<> more_than_the_window(world_type world) {
  if (world.size() < 2) co_return;
  constexpr int messages = 12;
  if (world.rank() == 0) {
    std::vector<std::vector<int>> out;
    std::vector<cohort::operation<>> sends;
    for (int i = 0; i < messages; ++i) {
      out.emplace_back(i % 3 == 0 ? 10 : long_count, i);
    }
    for (int i = 0; i < messages; ++i) {
      sends.push_back(world.send(out[static_cast<std::size_t>(i)], cohort::to{1}, cohort::tag{i / 2}));
    }
    for (auto& op : sends) co_await op;
  } else if (world.rank() == 1) {
    for (int label = messages / 2 - 1; label >= 0; --label) {
      for (int i : {2 * label, 2 * label + 1}) {
        auto probe = world.probe(cohort::from_any, cohort::tag{label});
        const auto seen = co_await probe;
        expect(seen.source == 0 && seen.tag == label && seen.count == (i % 3 == 0 ? 10 : long_count), "its header");
        std::vector<int> in(long_count, -1);
        auto op = i % 2 == 0 ? world.recv(in, cohort::from{0}, cohort::tag{label})
                             : world.recv(in, cohort::from_any, cohort::tag{label});
        const auto got = co_await op;
        expect(got.count == seen.count && in.front() == i && in[got.count - 1] == i, "message " + std::to_string(i));
      }
    }
  }
  auto end = world.barrier();
  co_await end;
}

/// Short messages may wait at a rank that has not asked for them, but not more of them than the window.
task<> short_messages_unasked(world_type world) {
  if (world.size() < 2) co_return;
  constexpr std::size_t count = 1000;
  constexpr int messages = 3000;
  constexpr int turns = 2000;
  const auto sum_of = [](const std::vector<int>& v) { return std::accumulate(v.begin(), v.end(), 0L); };
  if (world.rank() == 0) {
    std::vector<std::vector<int>> out;
    std::vector<cohort::operation<>> sends;
    for (int i = 0; i < messages; ++i) out.emplace_back(count, i);
    for (const auto& each : out) sends.push_back(world.send(each, cohort::to{1}));
    for (int i = 0; i < turns; ++i) world.poll();
    const auto gone = std::count_if(sends.begin(), sends.end(), [](const auto& op) { return op.ready(); });
    const auto bytes = static_cast<std::size_t>(gone) * count * sizeof(int);
    expect(bytes <= cohort::transport::mpi_endpoint::window, "no more than the window, found " + std::to_string(bytes));
    expect(gone > 0, "short messages to leave unasked");
    expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
    for (auto& op : sends) co_await op;
  } else {
    for (int i = 0; i < turns; ++i) world.poll();
    expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
    for (int i = 0; i < messages && world.rank() == 1; ++i) {
      std::vector<int> in(count, -1);
      auto op = world.recv(in, cohort::from{0});
      co_await op;
      expect(sum_of(in) == static_cast<long>(count) * i, "message " + std::to_string(i));
    }
  }
  // What they took is free again.
  std::vector<int> small(count, 1);
  for (int i = 0; i < messages && world.rank() < 2; ++i) {
    if (world.rank() == 0) {
      auto op = world.send(small, cohort::to{1});
      co_await op;
    } else {
      auto op = world.recv(small, cohort::from{0});
      co_await op;
    }
  }
  auto end = world.barrier();
  co_await end;
}

/// One rank waits for the other to say that it has something, without a call of anybody's that MPI could move on.
class telling {
 public:
  telling() { expect(::pipe(ends_) == 0, "a pipe"); }
  telling(const telling&) = delete;
  telling& operator=(const telling&) = delete;
  ~telling() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  /// Where `tell` finds it.
  [[nodiscard]] std::vector<int> place() const { return {static_cast<int>(::getpid()), ends_[1]}; }
  void wait_for(const std::string& what) const {
    pollfd told{ends_[0], POLLIN, 0};
    char byte = 0;
    expect(::poll(&told, 1, 20000) == 1 && ::read(ends_[0], &byte, 1) == 1, what);
  }
  static void tell(const std::vector<int>& place) {
    const std::string path = "/proc/" + std::to_string(place[0]) + "/fd/" + std::to_string(place[1]);
    const int other = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    expect(other >= 0 && ::write(other, "x", 1) == 1, "to tell the sender");
    ::close(other);
  }

 private:
  int ends_[2] = {-1, -1};
};

/// A send that is complete needs its sender no more: it may do something else as long as it likes, here until the
/// receiver says that it has the message.
task<> complete_sends_need_nobody(world_type world) {
  if (world.size() < 2) co_return;
  const telling first;
  std::vector<int> place = first.place();
  auto sharing = world.broadcast(place, cohort::root{0});
  co_await sharing;
  for (const std::size_t count : {10U, 900U, 1020U, 2100U, 4000U, 4090U, 9000U, 16384U, 70000U}) {
    std::vector<int> v(count, static_cast<int>(count));
    if (world.rank() == 0) {
      auto op = world.send(v, cohort::to{1});
      co_await op;
      first.wait_for("message of " + std::to_string(count) + " to be received");
    } else if (world.rank() == 1) {
      auto op = world.recv(v, cohort::from{0});
      co_await op;
      telling::tell(place);
    }
  }
  // So does a root that only gives, with a frame and without.
  const std::stop_source never;
  for (int i = 0; i < 20 && world.size() == 2; ++i) {
    std::vector<int> v(10, i);
    auto op = i % 2 == 0 ? world.broadcast(v, cohort::root{0})
                         : world.broadcast(v, cohort::root{0}, cohort::stop{never.get_token()});
    co_await op;
    if (world.rank() == 0) first.wait_for("broadcast " + std::to_string(i) + " to arrive");
    else telling::tell(place);
  }
  auto end = world.barrier();
  co_await end;
}

// --- short messages of two ranks, which need no frame if the other is there

task<> pair_in_any_order(world_type world) {
  if (world.size() != 2) co_return;
  const pair_calls::tally t = co_await pair_calls::in_any_order(world, 1500);
  std::printf("%d without a frame, %d with one\n", t.without_frame, t.with_frame);
}

/// The other hears what the second of two ranks does wrong, wherever its message is found.
template <pair_calls::mistake What>
task<> pair_mistake(world_type& world, std::vector<std::string> first, std::vector<std::string> second) {
  auto copying = world.duplicate();
  world_type copy = co_await copying;
  // Without the check MPI's own carry these out, and nobody says what was called.
  const char* const check = std::getenv("COHORT_MPI_CHECK");
  if (check != nullptr && std::string_view(check) == "never") {
    copy.algorithms().override_with("all_reduce=recursive_doubling,barrier=dissemination");
  }
  const std::string text = co_await pair_calls::second_is_wrong<What>(copy);
  for (const std::string& each : world.rank() == 0 ? first : second) {
    expect(contains(text, each), "\"" + each + "\" in: " + text);
  }
  auto end = world.barrier();
  co_await end;
}

task<> pair_mistakes(world_type world) {
  using pair_calls::mistake;
  if (world.size() != 2) co_return;
  const std::vector<std::string> counts{"all_reduce(3 x int32, max)", "all_reduce(2 x int32, max)"};
  const std::vector<std::string> kinds{"called barrier()", "called all_reduce(3 x int32, max)"};
  const std::vector<std::string> elements{"rank 0 sent elements of int32 with tag 0, rank 1 receives float32"};
  const std::vector<std::string> rooms{"rank 0 sent 3 elements with tag 0, rank 1 has room for 2"};
  const std::vector<std::string> told{"a function of rank 1 threw: no such sum"};
  const std::vector<std::string> thrown{"no such sum"};
  co_await pair_mistake<mistake::functor>(world, told, thrown);
  co_await pair_mistake<mistake::count>(world, counts, counts);
  co_await pair_mistake<mistake::kind>(world, kinds, kinds);
  co_await pair_mistake<mistake::element>(world, elements, elements);
  co_await pair_mistake<mistake::room>(world, rooms, rooms);
}

/// What a rank sent before it let a communicator go arrives, also at one that looks only when all of it is there; what
/// comes after is an error.
task<> sent_before_leaving(world_type world) {
  auto copying = world.duplicate();
  std::optional<world_type> copy(co_await copying);
  constexpr int messages = 20;
  if (world.rank() == 0) {
    for (int i = 0; i < messages; ++i) {
      const std::vector<int> out(static_cast<std::size_t>(10 + 40 * i), i);
      auto op = copy->send(out, cohort::to{last(world)});
      co_await op;
    }
    copy.reset();
  }
  // Of MPI's own: nobody has moved a message of cohort's meanwhile, but the sender.
  expect(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS, "a barrier of MPI's");
  if (world.rank() == last(world) && world.rank() != 0) {
    std::vector<int> in(1000);
    for (int i = 0; i < messages; ++i) {
      auto op = copy->recv(in, cohort::from{0});
      const auto got = co_await op;
      expect(got.count == static_cast<std::size_t>(10 + 40 * i) && in[got.count - 1] == i,
             "message " + std::to_string(i));
    }
    auto op = copy->recv(in, cohort::from{0});
    auto check = fails(op, errc::peer_lost, {"rank 0", "has left 'world/copy'"});
    co_await check;
  }
  copy.reset();
  auto end = world.barrier();
  co_await end;
}

// --- memory of a device, as far as there need be none

static_assert(cohort::takes_device_memory(cohort::mpi_cuda_support::yes, cohort::mpi_device_memory::as_mpi_can));
static_assert(!cohort::takes_device_memory(cohort::mpi_cuda_support::yes, cohort::mpi_device_memory::staged));
static_assert(!cohort::takes_device_memory(cohort::mpi_cuda_support::no, cohort::mpi_device_memory::as_mpi_can));
static_assert(!cohort::takes_device_memory(cohort::mpi_cuda_support::unasked, cohort::mpi_device_memory::as_mpi_can));
static_assert(cohort::transport::moves_device_memory<cohort::transport::mpi_endpoint>);

int copies = 0;
void counted_copy(void* to, const void* from, std::size_t bytes) {
  ++copies;
  std::memcpy(to, from, bytes);
}

cohort::transport::mpi_endpoint& endpoint_of(const world_type& world) {
  return static_cast<cohort::transport::mpi_endpoint&>(world.calls().state()->engine());
}

/// What the library says of CUDA decides; and short messages from and to memory that is lent are copied by what came
/// with it.
task<> device_memory(world_type world) {
  auto& beneath = endpoint_of(world);
  const bool aware = beneath.cuda_support() == cohort::mpi_cuda_support::yes;
  const char* const forced = std::getenv("COHORT_MPI_DEVICE");
  const bool staged = forced != nullptr && std::string_view(forced) == "staged";
  expect(beneath.takes_device_memory() == (aware && !staged), "the library's word, or the user's");
  if (world.rank() == 0) {
    std::printf("this MPI library is %s: messages in device memory %s\n",
                std::string(cohort::name(beneath.cuda_support())).c_str(),
                beneath.takes_device_memory() ? "go to it as they are" : "are staged through pinned memory");
  }
  cohort::mpi_options options;
  options.device_memory = cohort::mpi_device_memory::staged;
  const auto other = cohort::connect<cohort::mpi>(options);
  expect(!endpoint_of(other).takes_device_memory(), "staged where that is asked for");

  if (world.size() > 1 && world.rank() < 2) {
    for (const std::size_t count : {std::size_t{10}, std::size_t{50000}}) {
      std::vector<int> mine(count, world.rank() + 1);
      std::vector<int> theirs(count, -1);
      const cohort::transport::device_range both[] = {
          {reinterpret_cast<const std::byte*>(mine.data()), mine.size() * sizeof(int), &counted_copy},
          {reinterpret_cast<const std::byte*>(theirs.data()), theirs.size() * sizeof(int), &counted_copy}};
      for (const auto& each : both) beneath.device_memory().add(each);
      copies = 0;
      const int peer = 1 - world.rank();
      auto op = world.exchange(mine, cohort::to{peer}, theirs, cohort::from{peer});
      co_await op;
      for (const auto& each : both) beneath.device_memory().remove(each);
      expect(theirs == std::vector<int>(count, peer + 1), "the other's numbers");
      expect(copies == (count == 10 ? 2 : 0), "a short message to be copied twice and a long one never");
      expect(beneath.device_memory().empty(), "nothing to be lent any more");
    }
  }
  auto end = world.barrier();
  co_await end;
}

// --- all at once

/// Without the check MPI keeps the buffers of its own collectives that are dropped, which may not go then.
task<> dropped_at_random(world_type world) {
  harness::drop_plan plan;
  plan.turns = 100;
  plan.collectives = endpoint_of(world).check() == cohort::transport::native_check::always;
  return harness::drop_at_random(std::move(world), plan);
}

const part parts[] = {
    {"long_send_dropped", long_send_dropped},
    {"long_sends_cross", long_sends_cross},
    {"long_send_to_one_who_left", long_send_to_one_who_left},
    {"more_than_the_window", more_than_the_window},
    {"short_messages_unasked", short_messages_unasked},
    {"complete_sends_need_nobody", complete_sends_need_nobody},
    {"in_parts", in_parts},
    {"dropped_between_parts", dropped_between_parts},
    {"copied_dropped_in_a_row", copied_dropped_in_a_row},
    {"long_dropped_in_a_row", long_dropped_in_a_row},
    {"dropped_at_random", dropped_at_random},
    {"pair_in_any_order", pair_in_any_order},
    {"pair_mistakes", pair_mistakes},
    {"sent_before_leaving", sent_before_leaving},
    {"device_memory", device_memory},
};

}  // namespace

int main(int argc, char** argv) { return mpi_test::run_parts(argc, argv, parts); }
