// SPDX-License-Identifier: BSL-1.0
// What must hold without a GPU: the library's errors are clean, and on every rank; the unique id can be made; ranks that
// do not fit are refused with both sides named. Where there is a GPU, what needs none is checked all the same.
#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/dlpack.hpp>
#include <cohort/gpu/ipc_ranks.hpp>
#include <cohort/run_local.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/sync_wait.hpp>

#include "support.hpp"

#include <atomic>
#include <coroutine>
#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace cohort;
using gpu_test::throws;
using introduction = cohort::detail::nccl_introduction;

void unique_id() {
  ncclUniqueId a{};
  ncclUniqueId b{};
  EXPECT(ncclGetUniqueId(&a) == ncclSuccess && ncclGetUniqueId(&b) == ncclSuccess);
  EXPECT(std::memcmp(&a, &b, sizeof a) != 0);
  EXPECT(cohort::detail::nccl_version() >= NCCL_VERSION(2, 28, 0));
  EXPECT(cohort::detail::nccl_version_text(22809) == "2.28.9");
}

/// Of four ranks that have everything: a device each.
std::vector<introduction> four() {
  std::vector<introduction> all(4);
  for (std::size_t r = 0; r < all.size(); ++r) {
    all[r].version = 22809;
    all[r].device = static_cast<int>(r);
    all[r].uuid[0] = static_cast<unsigned char>(r + 1);
  }
  return all;
}

void introductions() {
  EXPECT((cohort::detail::check_introductions(four(), 2), true));
  auto all = four();
  all[3].version = 22907;
  EXPECT(throws(
      errc::version_mismatch, [&] { cohort::detail::check_introductions(all, 1); }, "on rank 1 of 4",
      "rank 0 has NCCL 2.28.9", "rank 3 has NCCL 2.29.7", "install one version"));
  all = four();
  all[2].uuid = all[0].uuid;
  EXPECT(throws(
      errc::invalid_argument, [&] { cohort::detail::check_introductions(all, 3); }, "ranks 0 and 2 are on one GPU",
      "device{}"));
  for (const std::size_t one : {std::size_t{0}, std::size_t{2}}) {
    all = four();
    all[one].blocking = 1;
    const std::string who = one == 0 ? "rank 0 has nccl_options::blocking and rank 1 has not"
                                     : "rank 2 has nccl_options::blocking and rank 0 has not";
    EXPECT(throws(
        errc::invalid_argument, [&] { cohort::detail::check_introductions(all, 3); }, who, "alike on all ranks"));
  }
  all = four();
  all[1].cannot("cudaGetDeviceCount: no CUDA-capable device is detected");
  EXPECT(throws(
      errc::bad_environment, [&] { cohort::detail::check_introductions(all, 0); },
      "rank 1 cannot: cudaGetDeviceCount: no CUDA-capable device"));
  introduction long_one;
  long_one.cannot(std::string(1000, 'x'));
  EXPECT(long_one.reason().size() == long_one.trouble.size() - 1);
}

void local_ranks() {
  const auto of = [](const char* name, const char* value) {
    return cohort::detail::local_rank_of_environment(
        5, environment([=](const std::string& asked) -> std::optional<std::string> {
          if (asked == name) return value;
          return std::nullopt;
        }));
  };
  EXPECT(of("LOCAL_RANK", "3") == 3 && of("SLURM_LOCALID", "2") == 2 && of("NOTHING", "1") == 5);
  EXPECT(throws(
      errc::bad_environment, [&] { (void)of("LOCAL_RANK", "three"); }, "LOCAL_RANK=three", "device{}"));
  EXPECT(throws(
      errc::bad_environment, [&] { (void)of("LOCAL_RANK", "-1"); }, "LOCAL_RANK=-1"));
}

void errors() {
  EXPECT(cohort::detail::nccl_condition(ncclRemoteError) == errc::peer_lost);
  EXPECT(cohort::detail::nccl_survives(ncclInvalidArgument) && !cohort::detail::nccl_survives(ncclRemoteError));
  EXPECT(throws(
      errc::invalid_argument, [] { cohort::detail::check_nccl(ncclInvalidArgument, "ncclSend"); }, "ncclSend: "));
  EXPECT(throws(
      errc::out_of_memory, [] { cohort::detail::check_cuda(cudaErrorMemoryAllocation, "cudaMalloc"); },
      "cudaMalloc: out of memory (cudaErrorMemoryAllocation)"));
  const communicator<nccl> nobody{std::shared_ptr<cohort::detail::nccl_party>()};
  EXPECT(!nobody.is_member() && nobody.rank() == -1 && nobody.size() == 0);
  EXPECT(throws(
      errc::not_a_member, [&] { (void)nobody.barrier(); }, "barrier", "is_member()"));
  memory_store meeting;
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)connect<nccl>(meeting, 2, 2); }, "rank 2 of 2", "expected a rank of 0..1"));
}

void windows() {
  const nccl_window<float> none;
  EXPECT(!none.registered() && none.size() == 0);
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)none.native_window(); }, "native_window", "has no memory", "make_window"));
  const cohort::detail::nccl_party alone(cohort::detail::nccl_handle(), 0, 1, 0, "world", {0});
  EXPECT(throws(
      errc::invalid_argument, [&] { cohort::detail::require_registered(&alone, false, 64); },
      "native_window on 'world', rank 0 of 1, device 0", "an unregistered window of 64 elements", "registered()"));
  const cohort::detail::nccl_party one_of_two(cohort::detail::nccl_handle(), 1, 2, 0, "world", {0, 1});
  EXPECT(throws(
      errc::invalid_argument, [&] { cohort::detail::require_registered(&one_of_two, false, 64); }, "rank 1 of 2",
      "expected one that NCCL has registered with all ranks", "make it anew by make_window"));
  cohort::detail::require_registered(&one_of_two, true, 64);
}

// Both ends of a batch hand NCCL their messages in one order, however they are named there.
void tags() {
  using cohort::detail::order_by_tag;
  using cohort::detail::unmatched_own;
  float a[4] = {};
  const device_span<float> all(a, 4);
  const auto part = [&](std::size_t i) { return device_span<float>(a + i, 1); };
  // Rank 0 sends to rank 1 under tags 5, 2, 5, 0; rank 1 asks for 0, 5, 2, 5.
  std::vector<device_message> out = {sending(part(0), to{1}, tag{5}), sending(part(1), to{1}, tag{2}),
                                     sending(part(2), to{1}, tag{5}), sending(part(3), to{1})};
  std::vector<device_message> in = {receiving(part(3), from{0}), receiving(part(0), from{0}, tag{5}),
                                    receiving(part(1), from{0}, tag{2}), receiving(part(2), from{0}, tag{5})};
  order_by_tag(out);
  order_by_tag(in);
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT(out[i].from == in[i].into && out[i].label == in[i].label && out[i].bytes == sizeof(float));
    EXPECT(out[i].sends && !in[i].sends && out[i].peer == 1 && in[i].peer == 0);
  }
  EXPECT(out[0].from == a + 3 && out[1].from == a + 1 && out[2].from == a && out[3].from == a + 2);
  EXPECT(unmatched_own(out, 0).empty() && unmatched_own(in, 1).empty());
  // A message to oneself needs its other half.
  std::vector<device_message> own = {sending(all, to{2}, tag{1}), receiving(all, from{2}, tag{1}),
                                     sending(all, to{0}, tag{9})};
  EXPECT(unmatched_own(own, 2).empty());
  own.push_back(sending(part(0), to{2}, tag{3}));
  EXPECT(unmatched_own(own, 2).find("sends itself 4 bytes under tag 3 and receives nothing from itself") !=
         std::string::npos);
  own.push_back(receiving(part(0), from{2}, tag{4}));
  EXPECT(unmatched_own(own, 2).find("4 bytes under tag 3 and receives 4 bytes under tag 4") != std::string::npos);
  own.back().label = 3;
  own.back().bytes = 8;
  EXPECT(unmatched_own(own, 2).find("and receives 8 bytes under tag 3") != std::string::npos);
  order_by_tag({});
}

// Who a rank of a group is in the world, where that can be known.
void members_of_groups() {
  const auto of = [](std::vector<int> members) {
    return communicator<nccl>(std::make_shared<cohort::detail::nccl_party>(cohort::detail::nccl_handle(), 1, 3, 0,
                                                                           "half", std::move(members)));
  };
  const communicator<nccl> half = of({4, 0, 2});
  EXPECT(half.world_rank_of(0) == 4 && half.world_rank_of(2) == 2 && half.world_rank_of(3) == -1);
  EXPECT(half.rank_of(0) == 1 && half.rank_of(1) == -1);
  const communicator<nccl> unknown = of({});
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)unknown.world_rank_of(0); }, "world_rank_of on 'half', rank 1 of 3",
      "made by split", "subgroup(ranks{...})"));
  EXPECT(half.calls().party()->members_of({2, 0}) == std::vector<int>({2, 4}));
}

// Ranks on one GPU say what they have before they begin.
void meetings() {
  std::vector<cohort::detail::ipc_introduction> all(3);
  cohort::detail::check_meeting(all, 0);
  all[2].uuid[5] = 1;
  EXPECT(throws(
      errc::invalid_argument, [&] { cohort::detail::check_meeting(all, 1); }, "connect_ipc on rank 1 of 3",
      "ranks 0 and 2 are on different GPUs", "connect<nccl>"));
  all[1].cannot(error(errc::bad_environment, "no events"));
  EXPECT(throws(
      errc::bad_environment, [&] { cohort::detail::check_meeting(all, 2); }, "rank 1 cannot: no events"));
  EXPECT(throws(
      errc::invalid_argument,
      [] { cohort::detail::check_meeting(std::vector<cohort::detail::ipc_introduction>(17), 0); },
      "expected at most 16 ranks"));
  // Two ranks out of three have something to say: all throw what the first of them does.
  const std::vector<int> codes = run_local(3, [](communicator<inproc> world) -> task<> {
    cohort::detail::ipc_excuse mine;
    if (world.rank() > 0) mine.cannot(error(errc::out_of_memory, "rank " + std::to_string(world.rank()) + "'s reason"));
    bool good = false;
    try {
      auto all_agree = cohort::detail::agree(world, mine, "share", std::chrono::seconds{10});
      co_await all_agree;
    } catch (const error& e) {
      good = e.condition() == errc::out_of_memory && e.peer() == 1 && e.rank() == world.rank() &&
             std::string_view(e.what()).find("rank 1 cannot: rank 1's reason") != std::string_view::npos;
    }
    if (!good) throw std::runtime_error("not what rank 1 said");
  });
  EXPECT(codes == std::vector<int>(3, 0));
}

void gate() {
  cohort::detail::call_gate g;
  EXPECT(g.enter() && g.enter());  // a call within a call
  EXPECT(!g.enter_to_abort());
  bool other = true;
  std::thread([&] { other = g.enter(); }).join();
  EXPECT(!other);
  g.leave();
  EXPECT(g.is_inside());
  g.leave();
  EXPECT(!g.is_inside() && g.enter_to_abort());
  g.leave_after_abort();
  std::thread([&] {
    other = g.enter();
    g.leave();
  }).join();
  EXPECT(other);
}

// The members of DLPack's DLTensor, as they stand in its header.
struct tensor_like {
  void* data = nullptr;
  struct {
    int device_type = 2;
    std::int32_t device_id = 0;
  } device{};
  std::int32_t ndim = 0;
  struct {
    std::uint8_t code = 2;
    std::uint8_t bits = 32;
    std::uint16_t lanes = 1;
  } dtype{};
  std::int64_t* shape = nullptr;
  std::int64_t* strides = nullptr;
  std::uint64_t byte_offset = 0;
};

void tensors() {
  static_assert(dlpack_tensor<tensor_like> && !dlpack_tensor<int>);
  float somewhere[24] = {};
  std::int64_t shape[] = {2, 3, 1};
  std::int64_t strides[] = {3, 1, 77};  // of one element: it means nothing
  tensor_like t;
  t.data = somewhere;
  t.ndim = 3;
  t.shape = shape;
  EXPECT(from_dlpack<float>(t).size() == 6 && from_dlpack<float>(t).data() == somewhere);
  t.strides = strides;
  t.byte_offset = 8;
  EXPECT(from_dlpack<float>(t).size() == 6 && from_dlpack<float>(t).data() == somewhere + 2);
  strides[0] = 4;
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)from_dlpack<float>(t); }, "dimension 0 has the stride 4, expected 3"));
  shape[1] = 0;
  EXPECT(from_dlpack<float>(t).empty());
  t.ndim = 0;
  EXPECT(from_dlpack<float>(t).size() == 1);
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)from_dlpack<int>(t); }, "code 2, 32 bits", "expected code 0", "int32"));
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)from_dlpack<cohort::half>(t); }, "expected code 2, 16 bits"));
  t.dtype.lanes = 4;
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)from_dlpack<float>(t); }, "4 lanes"));
  t.dtype.lanes = 1;
  t.device.device_type = 1;
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)from_dlpack<float>(t); }, "type 1, expected 2 (CUDA)"));
  t.device.device_type = 2;
  t.ndim = 2;
  std::int64_t huge[] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  t.shape = huge;
  EXPECT(throws(
      errc::invalid_argument, [&] { (void)from_dlpack<float>(t); }, "dimension 1 is 1099511627776"));
}

std::shared_ptr<cohort::detail::milestone> a_milestone() {
  auto m = std::make_shared<cohort::detail::milestone>();
  m->where = {3, 4, 1, "all_reduce", nullptr};
  return m;
}
task<std::thread::id> waits_for(std::shared_ptr<cohort::detail::milestone> m) {
  co_await host_wait(std::move(m));
  co_return std::this_thread::get_id();
}
/// A coroutine that nobody drives: it starts at once and ends where it is resumed.
struct detached {
  struct promise_type {
    detached get_return_object() noexcept { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() const noexcept { return {}; }
    std::suspend_always final_suspend() const noexcept { return {}; }
    void return_void() const noexcept {}
    void unhandled_exception() const noexcept { std::terminate(); }
  };
  std::coroutine_handle<promise_type> frame;
};
detached note_where(std::shared_ptr<cohort::detail::milestone> m, std::atomic<bool>& woken, std::thread::id& where) {
  co_await host_wait(std::move(m));
  where = std::this_thread::get_id();
  woken = true;
}

// How a coroutine wakes when a device is done, with a thread in the place of the poller.
void host_waits() {
  auto done = a_milestone();
  done->finish(nullptr);
  EXPECT(host_wait(done).ready());
  host_wait(done).wait();
  EXPECT(sync_wait(waits_for(done)) == std::this_thread::get_id());

  // Below sync_wait: on the thread that blocks there, however late the poller is.
  for (int i = 0; i < 50; ++i) {
    auto m = a_milestone();
    std::thread poller([m] { m->finish(nullptr); });
    EXPECT(sync_wait(waits_for(m)) == std::this_thread::get_id());
    poller.join();
  }
  // With no executor and nobody who drives: on the poller's thread.
  auto free = a_milestone();
  std::atomic<bool> woken{false};
  std::thread::id where;
  const detached alone = note_where(free, woken, where);
  EXPECT(!woken);
  std::thread poller([free] { free->finish(nullptr); });
  const std::thread::id pollers = poller.get_id();
  poller.join();
  EXPECT(woken && where == pollers);
  alone.frame.destroy();

  // What went wrong is thrown where it is awaited; what comes after the first outcome changes nothing.
  auto failed = a_milestone();
  failed->finish(failed->explain(errc::timed_out, "the device has not done it"));
  failed->finish(nullptr);
  EXPECT(throws(
      errc::timed_out, [&] { (void)sync_wait(waits_for(failed)); }, "all_reduce on rank 3 of 4, device 1: the device"));
  EXPECT(throws(
      errc::timed_out, [&] { host_wait(failed).wait(); }, "rank 3 of 4"));

  // Dropped while it waits: nobody is woken.
  auto dropped = a_milestone();
  std::atomic<bool> never{false};
  const detached gone = note_where(dropped, never, where);
  gone.frame.destroy();
  dropped->finish(nullptr);
  EXPECT(!never);

  std::uint64_t word = 4;
  const cohort::detail::flag f{&word, 5};
  EXPECT(!f.raised());
  word = 5;
  EXPECT(f.raised());

  // Whoever waits looks at the flag himself, with no poller to tell him.
  for (const bool awaits : {false, true}) {
    word = 4;
    auto m = a_milestone();
    m->raised_flag = f;
    EXPECT(!m->attended());
    std::thread device([&] {
      while (!m->attended()) std::this_thread::yield();
      std::atomic_ref<std::uint64_t>(word).store(5);
    });
    if (awaits) EXPECT(sync_wait(waits_for(m)) == std::this_thread::get_id());
    else host_wait(m).wait();
    device.join();
    EXPECT(m->done() && !m->attended());
  }
  // For a time; then he sleeps, and the poller must tell him.
  word = 4;
  auto late = a_milestone();
  late->raised_flag = f;
  std::thread tells([&] {
    while (!late->attended()) std::this_thread::yield();
    while (late->attended()) std::this_thread::yield();
    late->finish(nullptr);
  });
  host_wait(late).wait();
  tells.join();
}

// Two ranks: both get the error, and it names a rank and says what to do.
void connect_without_device() {
  const std::vector<std::string> said = {"cannot: ", "reaches no GPU", "nvidia-smi"};
  std::atomic<int> errors_seen{0};
  const std::vector<int> codes = run_local(2, [&](communicator<inproc> world) -> task<> {
    bool good = false;
    try {
      auto gpus = co_await connect<nccl>(world);
      good = gpu_test::has_device();  // two ranks on one device would have been refused
    } catch (const error& e) {
      const std::string_view text = e.what();
      good = true;
      if (!gpu_test::has_device()) {
        good = e.condition() == errc::bad_environment && e.operation() == "connect<nccl>" && e.rank() == world.rank();
        for (const std::string& part : said) good = good && text.find(part) != std::string_view::npos;
      }
      if (!good) std::printf("  rank %d: %s\n", world.rank(), e.what());
    }
    if (good) ++errors_seen;
  });
  EXPECT(codes == std::vector<int>(2, 0) && errors_seen == 2);
  if (gpu_test::has_device()) return;
  memory_store meeting;
  std::vector<std::thread> ranks;
  std::atomic<int> good{0};
  for (int r = 0; r < 2; ++r) {
    ranks.emplace_back([&, r] {
      memory_store mine = meeting;
      if (throws(
              errc::bad_environment, [&] { (void)connect<nccl>(mine, r, 2); }, "rank 0 cannot: ", "reaches no GPU"))
        ++good;
    });
  }
  for (auto& t : ranks) t.join();
  EXPECT(good == 2);
  EXPECT(throws(
      errc::bad_environment, [] { (void)device_count(); }, "cudaGetDeviceCount", "CUDA_VISIBLE_DEVICES"));
  EXPECT(throws(
      errc::bad_environment, [] { device_buffer<float> b(16); }, "no GPU"));
  EXPECT(throws(
      errc::bad_environment, [] { pinned_buffer<float> b(16); }, "pinned_buffer"));
  EXPECT(throws(
      errc::bad_environment, [] { stream s; }, "cudaStreamCreate"));
  cohort::detail::flag_writer writer;
  EXPECT(!writer.available() && !writer.missing().empty());
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IONBF, 0);
  unique_id();
  introductions();
  local_ranks();
  errors();
  windows();
  tags();
  members_of_groups();
  meetings();
  gate();
  tensors();
  host_waits();
  connect_without_device();
  return gpu_test::conclude("no_device");
}
