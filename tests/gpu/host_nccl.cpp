// SPDX-License-Identifier: BSL-1.0
// NCCL's functions, as far as communicator<nccl> calls them, for ranks that are threads of one process, on the streams and
// the memory of host_runtime.cpp: for tests of who sends what to whom, which a program links in the place of libnccl. It is
// no NCCL, and what passes here has not run on one: it takes NCCL's documentation at its word, and ends the process where
// ranks ask for what does not fit together, where NCCL would hang or give wrong data.
//
// Messages and collectives are numbered where they are called, as NCCL matches them, and carried out where the stream has
// come to them: a group all at once.
#include "host_nccl.hpp"

#include "host_runtime.hpp"

#include <nccl.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using bytes = std::vector<char>;

[[noreturn]] void misused(const std::string& what) {
  std::printf("host_nccl.cpp: %s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

enum class kind { all_reduce, reduce, reduce_scatter, broadcast, all_gather, gather, scatter, all_to_all };

/// What a rank has asked for in a collective. `count` as NCCL has it there: of the whole, or of a block.
struct part {
  kind what;
  const char* in;
  char* out;
  std::size_t count;
  ncclDataType_t type;
  int op;
  int root;
  [[nodiscard]] auto agreed() const { return std::make_tuple(what, count, type, op, root); }
};

/// What the ranks of one communicator share.
struct clique {
  explicit clique(int n) : size(n), aborted(static_cast<std::size_t>(n)) {}

  struct message {
    const void* from;
    std::size_t size;
    bool taken;
  };
  struct round {
    std::map<int, part> parts{};
    int computed = 0;
  };
  struct division {
    std::map<int, std::pair<int, int>> asked{};  // color and key of each rank
    std::map<int, std::shared_ptr<clique>> made{};
  };

  const int size;
  std::mutex mutex{};
  std::condition_variable changed{};
  std::vector<bool> aborted;  // by rank: what one has in flight ends, and the others do not hear of it
  std::map<std::tuple<int, int, std::uint64_t>, message> mail{};
  std::map<std::uint64_t, round> rounds{};
  std::map<std::uint64_t, division> divisions{};
  std::map<int, double> factors{};  // of operations that were made

  /// False if this rank was aborted meanwhile.
  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& lock, int rank, const Condition& c) {
    const auto r = static_cast<std::size_t>(rank);
    changed.wait(lock, [&] { return aborted[r] || c(); });
    return !aborted[r];
  }
};

std::size_t size_of(ncclDataType_t t) {
  switch (t) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclUint32:
    case ncclFloat32: return 4;
    default: return 8;
  }
}

/// Integers go round, as on a device.
template <class T>
T added(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return a + b;
  }
}

/// From the last rank to the first: NCCL promises no order.
template <class T>
bytes combined(const std::vector<const char*>& in, std::size_t count, int op, double factor) {
  std::vector<T> total(count);
  for (std::size_t r = in.size(); r-- > 0;) {
    std::vector<T> x(count);
    if (count > 0) std::memcpy(static_cast<void*>(x.data()), in[r], count * sizeof(T));
    for (std::size_t i = 0; i < count; ++i) {
      if (op >= ncclNumOps) x[i] = static_cast<T>(x[i] * static_cast<T>(factor));
      if (r + 1 == in.size()) total[i] = x[i];
      else if (op == ncclProd) total[i] = static_cast<T>(total[i] * x[i]);
      else if (op == ncclMax) total[i] = total[i] < x[i] ? x[i] : total[i];
      else if (op == ncclMin) total[i] = x[i] < total[i] ? x[i] : total[i];
      else total[i] = added(total[i], x[i]);
    }
  }
  if (op == ncclAvg) {
    for (T& x : total) x = static_cast<T>(x / static_cast<T>(in.size()));
  }
  const auto* const start = reinterpret_cast<const char*>(total.data());
  return bytes(start, start + count * sizeof(T));
}
bytes combined(const std::vector<const char*>& in, const part& p, double factor) {
  switch (p.type) {
    case ncclInt8: return combined<std::int8_t>(in, p.count, p.op, factor);
    case ncclUint8: return combined<std::uint8_t>(in, p.count, p.op, factor);
    case ncclInt32: return combined<std::int32_t>(in, p.count, p.op, factor);
    case ncclUint32: return combined<std::uint32_t>(in, p.count, p.op, factor);
    case ncclInt64: return combined<std::int64_t>(in, p.count, p.op, factor);
    case ncclUint64: return combined<std::uint64_t>(in, p.count, p.op, factor);
    case ncclFloat32: return combined<float>(in, p.count, p.op, factor);
    case ncclFloat64: return combined<double>(in, p.count, p.op, factor);
    default: misused("a reduction of 16-bit floats is not played");
  }
}

/// What a collective leaves in this rank's output; nothing where it has none.
bytes result_of(const std::map<int, part>& parts, int rank, double factor) {
  const part& mine = parts.at(rank);
  const std::size_t block = mine.count * size_of(mine.type);
  const auto own = static_cast<std::size_t>(rank);
  bytes all;
  const auto add = [&](const char* from) { all.insert(all.end(), from, from + block); };
  const auto each = [&](std::size_t at) {
    std::vector<const char*> in;
    for (const auto& [r, p] : parts) in.push_back(p.in + at);
    return combined(in, mine, factor);
  };
  switch (mine.what) {
    case kind::all_reduce: return each(0);
    case kind::reduce: return rank == mine.root ? each(0) : all;
    case kind::reduce_scatter: return each(own * block);
    case kind::broadcast: add(parts.at(mine.root).in); break;
    case kind::scatter: add(parts.at(mine.root).in + own * block); break;
    case kind::gather:
      if (rank != mine.root) break;
      [[fallthrough]];
    case kind::all_gather:
      for (const auto& [r, p] : parts) add(p.in);
      break;
    case kind::all_to_all:
      for (const auto& [r, p] : parts) add(p.in + own * block);
      break;
  }
  return all;
}

/// A call between the start and the end of a group: what is told to the others first, and what waits for them.
struct call {
  cudaStream_t stream;
  bool waits_last;
  std::function<void()> tell;
  std::function<void()> wait;
};
thread_local int depth = 0;
thread_local std::vector<call> grouped;

void launch() {
  if (grouped.empty()) return;
  for (const call& c : grouped) {
    if (c.stream != grouped[0].stream) misused("a group is on two streams: which is not played");
  }
  // Sends wait for their receivers only when everything that this rank receives is here.
  std::vector<call> calls;
  for (const bool last : {false, true}) {
    for (call& c : grouped) {
      if (c.waits_last == last) calls.push_back(std::move(c));
    }
  }
  grouped.clear();
  const cudaStream_t s = calls[0].stream;
  gpu_test::enqueue_on_host(s, [calls = std::move(calls)] {
    for (const call& c : calls) c.tell();
    for (const call& c : calls) c.wait();
  });
}
ncclResult_t enqueue(call c) {
  if (c.stream == nullptr) misused("the default stream is not played: name one");
  grouped.push_back(std::move(c));
  if (depth == 0) launch();
  return ncclSuccess;
}

std::mutex meetings_guard;
std::map<std::string, std::pair<std::shared_ptr<clique>, int>> meetings;  // by unique id: who has come

}  // namespace

struct ncclComm {
  std::shared_ptr<clique> all;
  int rank;
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;
  std::uint64_t rounds = 0;
  std::uint64_t divisions = 0;
  std::atomic<ncclResult_t> noticed{ncclSuccess};
  std::function<bool()> unfinished{};  // what was begun and goes on: true once it is done
  std::atomic<bool> entered{false};
  bool blocks = false;
  bool shares = false;     // its flags with those that are made of it
  bool connected = false;  // the first call of one that blocks waits for the other ranks
  std::vector<std::pair<std::shared_ptr<clique>, int>> family{};

  ncclComm(std::shared_ptr<clique> with, int r)
      : all(std::move(with)),
        rank(r),
        sent(static_cast<std::size_t>(all->size)),
        received(static_cast<std::size_t>(all->size)) {}

  ncclResult_t collective(part mine, cudaStream_t s) {
    if (unfinished) return ncclInvalidArgument;
    const std::uint64_t number = rounds++;
    const auto with = all;
    const int me = rank;
    const ncclResult_t taken =
        enqueue({s, false,
                 [=] {
                   const std::lock_guard lock(with->mutex);
                   with->rounds[number].parts.emplace(me, mine);
                   with->changed.notify_all();
                 },
                 [=] {
                   std::unique_lock lock(with->mutex);
                   clique::round& now = with->rounds[number];
                   const auto all_here = [&] { return static_cast<int>(now.parts.size()) == with->size; };
                   if (!with->wait(lock, me, all_here)) return;
                   for (const auto& [r, p] : now.parts) {
                     if (p.agreed() != mine.agreed()) misused("ranks have called different collectives");
                   }
                   const auto factor = with->factors.find(mine.op);
                   const bytes result = result_of(now.parts, me, factor == with->factors.end() ? 1.0 : factor->second);
                   ++now.computed;
                   with->changed.notify_all();
                   // Nobody writes before everybody has read: outputs may be inputs.
                   if (!with->wait(lock, me, [&] { return now.computed == with->size; })) return;
                   if (!result.empty()) std::memcpy(mine.out, result.data(), result.size());
                 }});
    if (!blocks || connected || depth > 0) return taken;
    std::unique_lock lock(with->mutex);
    const auto all_here = [&] { return static_cast<int>(with->rounds[number].parts.size()) == with->size; };
    connected = with->wait(lock, me, all_here);
    return connected ? taken : ncclInternalError;
  }
};

void gpu_test::set_asynchronous_error(ncclComm_t comm, ncclResult_t code) { comm->noticed = code; }

extern "C" {

ncclResult_t ncclGetVersion(int* v) { return *v = NCCL_VERSION_CODE, ncclSuccess; }
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::uint64_t next = 1;
  const std::lock_guard lock(meetings_guard);
  std::memset(id, 0, sizeof *id);
  std::memcpy(id, &next, sizeof next);
  ++next;
  return gpu_test::unique_id_result;
}
const char* ncclGetErrorString(ncclResult_t) { return "an error of host_nccl.cpp"; }
const char* ncclGetLastError(ncclComm_t) { return ""; }

// The others may come later: as NCCL's, it says so, and ncclCommGetAsyncError tells when they have.
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int n, ncclUniqueId id, int rank, ncclConfig_t* config) {
  if (config->blocking != 0) misused("a blocking communicator could not be ended");
  const std::lock_guard lock(meetings_guard);
  auto& [with, come] = meetings[std::string(id.internal, sizeof id.internal)];
  if (!with) with = std::make_shared<clique>(n);
  ++come;
  *comm = new ncclComm(with, rank);
  (*comm)->shares = config->splitShare == 1;
  return ncclInProgress;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* code) {
  if (comm->unfinished) {
    if (!comm->unfinished()) return *code = ncclInProgress, ncclSuccess;
    comm->unfinished = nullptr;
  }
  const std::lock_guard lock(meetings_guard);
  *code = comm->noticed;
  for (const auto& [id, meeting] : meetings) {
    if (meeting.first == comm->all && meeting.second < comm->all->size) *code = ncclInProgress;
  }
  return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t comm, int* n) { return *n = comm->all->size, ncclSuccess; }
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* r) { return *r = comm->rank, ncclSuccess; }
ncclResult_t ncclCommFinalize(ncclComm_t) { return ncclSuccess; }
ncclResult_t ncclCommDestroy(ncclComm_t comm) { return delete comm, ncclSuccess; }
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm->entered) misused("a communicator is freed while another thread is inside of it");
  comm->family.emplace_back(comm->all, comm->rank);
  for (const auto& [with, rank] : comm->family) {
    const std::lock_guard lock(with->mutex);
    with->aborted[static_cast<std::size_t>(rank)] = true;
    with->changed.notify_all();
  }
  return delete comm, ncclSuccess;
}

// As NCCL's, they answer ncclSuccess while they go on: the communicator that they are made of is in progress until they are
// done, takes no other call, and only then is there something at `made`.
ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* made, ncclConfig_t* config) {
  if (comm->unfinished) return ncclInvalidArgument;
  const auto with = comm->all;
  const std::uint64_t number = comm->divisions++;
  const int me = comm->rank;
  const bool blocks = config->blocking == 1;
  const bool shares = config->splitShare == 1;
  if (blocks && !comm->shares) misused("nobody could end the calls of a communicator that blocks");
  *made = nullptr;
  {
    const std::lock_guard lock(with->mutex);
    with->divisions[number].asked[me] = {color, key};
    with->changed.notify_all();
  }
  comm->unfinished = [=] {
    const std::lock_guard lock(with->mutex);
    clique::division& now = with->divisions[number];
    if (static_cast<int>(now.asked.size()) < with->size) return false;
    if (color == NCCL_SPLIT_NOCOLOR) return true;
    std::vector<std::pair<int, int>> mine;  // key and rank
    for (const auto& [r, wants] : now.asked) {
      if (wants.first == color) mine.emplace_back(wants.second, r);
    }
    std::sort(mine.begin(), mine.end());
    auto& group = now.made[color];
    if (!group) group = std::make_shared<clique>(static_cast<int>(mine.size()));
    const auto at = std::find_if(mine.begin(), mine.end(), [&](const auto& m) { return m.second == me; });
    *made = new ncclComm(group, static_cast<int>(at - mine.begin()));
    (*made)->blocks = blocks;
    (*made)->shares = shares;
    if (comm->shares) comm->family.emplace_back(group, (*made)->rank);
    return true;
  };
  if (!comm->blocks) return ncclSuccess;
  std::unique_lock lock(with->mutex);
  const auto all_here = [&] { return static_cast<int>(with->divisions[number].asked.size()) == with->size; };
  if (!with->wait(lock, me, all_here)) return ncclInternalError;
  lock.unlock();
  comm->unfinished();
  comm->unfinished = nullptr;
  return ncclSuccess;
}
ncclResult_t ncclCommShrink(ncclComm_t comm, int* lost, int count, ncclComm_t* made, ncclConfig_t* config, int) {
  if (comm->unfinished) return ncclInvalidArgument;
  const auto with = comm->all;
  const std::uint64_t number = comm->divisions++;
  const auto before = static_cast<int>(std::count_if(lost, lost + count, [&](int r) { return r < comm->rank; }));
  *made = nullptr;
  comm->unfinished = [=, rank = comm->rank, shares = config->splitShare == 1] {
    const std::lock_guard lock(with->mutex);
    auto& group = with->divisions[number].made[0];
    if (!group) group = std::make_shared<clique>(with->size - count);
    *made = new ncclComm(group, rank - before);
    (*made)->shares = shares;
    return true;
  };
  return ncclSuccess;
}

ncclResult_t ncclMemAlloc(void** p, std::size_t n) {
  return cudaMalloc(p, n) == cudaSuccess ? ncclSuccess : ncclSystemError;
}
ncclResult_t ncclMemFree(void* p) { return cudaFree(p) == cudaSuccess ? ncclSuccess : ncclSystemError; }
// Goes on after its answer too, as NCCL's does.
ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void*, std::size_t, ncclWindow_t* w, int) {
  if (comm->unfinished) return ncclInvalidArgument;
  comm->unfinished = [=] { return *w = reinterpret_cast<ncclWindow_t>(comm), true; };
  return ncclSuccess;
}
ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t) {
  comm->entered = true;
  if (gpu_test::while_deregistering) gpu_test::while_deregistering();
  return comm->entered = false, ncclSuccess;
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t type, ncclScalarResidence_t,
                                      ncclComm_t comm) {
  const std::lock_guard lock(comm->all->mutex);
  double factor = 0;
  if (type == ncclFloat64) std::memcpy(&factor, scalar, sizeof factor);
  else if (type == ncclFloat32) factor = static_cast<double>(*static_cast<const float*>(scalar));
  else misused("a factor that is neither float nor double");
  // By its value, so that ranks agree on the number.
  const int number = ncclNumOps + 1 + static_cast<int>(factor * 64);
  comm->all->factors[number] = factor;
  return *op = static_cast<ncclRedOp_t>(number), ncclSuccess;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t, ncclComm_t) { return ncclSuccess; }

ncclResult_t ncclGroupStart() { return ++depth, ncclSuccess; }
ncclResult_t ncclGroupEnd() {
  if (--depth == 0) launch();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* from, std::size_t n, ncclDataType_t t, int peer, ncclComm_t comm, cudaStream_t s) {
  if (comm->unfinished) return ncclInvalidArgument;
  const auto with = comm->all;
  const std::tuple key{comm->rank, peer, comm->sent[static_cast<std::size_t>(peer)]++};
  const std::size_t size = n * size_of(t);
  return enqueue({s, true,
                  [=] {
                    const std::lock_guard lock(with->mutex);
                    with->mail.emplace(key, clique::message{from, size, false});
                    with->changed.notify_all();
                  },
                  [=] {
                    std::unique_lock lock(with->mutex);
                    if (with->wait(lock, std::get<0>(key), [&] { return with->mail.at(key).taken; }))
                      with->mail.erase(key);
                  }});
}
ncclResult_t ncclRecv(void* into, std::size_t n, ncclDataType_t t, int peer, ncclComm_t comm, cudaStream_t s) {
  if (comm->unfinished) return ncclInvalidArgument;
  const auto with = comm->all;
  const std::tuple key{peer, comm->rank, comm->received[static_cast<std::size_t>(peer)]++};
  const std::size_t size = n * size_of(t);
  return enqueue({s, false, [] {},
                  [=] {
                    std::unique_lock lock(with->mutex);
                    if (!with->wait(lock, std::get<1>(key), [&] { return with->mail.contains(key); })) return;
                    clique::message& m = with->mail.at(key);
                    if (m.size != size) {
                      misused("rank " + std::to_string(std::get<1>(key)) + " receives " + std::to_string(size) +
                              " bytes where rank " + std::to_string(peer) + " sends " + std::to_string(m.size));
                    }
                    std::memcpy(into, m.from, size);
                    m.taken = true;
                    with->changed.notify_all();
                  }});
}

ncclResult_t ncclAllReduce(const void* in, void* out, std::size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                           cudaStream_t s) {
  return c->collective({kind::all_reduce, static_cast<const char*>(in), static_cast<char*>(out), n, t, op, 0}, s);
}
ncclResult_t ncclReduce(const void* in, void* out, std::size_t n, ncclDataType_t t, ncclRedOp_t op, int root,
                        ncclComm_t c, cudaStream_t s) {
  return c->collective({kind::reduce, static_cast<const char*>(in), static_cast<char*>(out), n, t, op, root}, s);
}
ncclResult_t ncclReduceScatter(const void* in, void* out, std::size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
                               cudaStream_t s) {
  return c->collective({kind::reduce_scatter, static_cast<const char*>(in), static_cast<char*>(out), n, t, op, 0}, s);
}
ncclResult_t ncclBroadcast(const void* in, void* out, std::size_t n, ncclDataType_t t, int root, ncclComm_t c,
                           cudaStream_t s) {
  return c->collective({kind::broadcast, static_cast<const char*>(in), static_cast<char*>(out), n, t, 0, root}, s);
}
ncclResult_t ncclAllGather(const void* in, void* out, std::size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s) {
  return c->collective({kind::all_gather, static_cast<const char*>(in), static_cast<char*>(out), n, t, 0, 0}, s);
}
ncclResult_t ncclGather(const void* in, void* out, std::size_t n, ncclDataType_t t, int root, ncclComm_t c,
                        cudaStream_t s) {
  return c->collective({kind::gather, static_cast<const char*>(in), static_cast<char*>(out), n, t, 0, root}, s);
}
ncclResult_t ncclScatter(const void* in, void* out, std::size_t n, ncclDataType_t t, int root, ncclComm_t c,
                         cudaStream_t s) {
  return c->collective({kind::scatter, static_cast<const char*>(in), static_cast<char*>(out), n, t, 0, root}, s);
}
ncclResult_t ncclAlltoAll(const void* in, void* out, std::size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s) {
  return c->collective({kind::all_to_all, static_cast<const char*>(in), static_cast<char*>(out), n, t, 0, 0}, s);
}

}  // extern "C"
