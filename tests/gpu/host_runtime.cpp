// SPDX-License-Identifier: BSL-1.0
// The functions of CUDA's runtime that ranks with shared memory need, on memory of the host and with threads for streams:
// for tests of who waits for whom and whose memory is where, which a program links in the place of libcudart. It is no
// GPU, and what passes here has not run on one: it takes CUDA's documentation at its word.
//
// Every stream is a thread that dawdles before each piece of work, so that a wait that is missing shows. Memory of a
// device is a file in memory, which another process opens by way of /proc; an event is a pair of counters in such memory.
#include "host_runtime.hpp"

#include <cuda.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

std::atomic<int> devices = 1;
std::atomic<std::size_t> room{SIZE_MAX};
thread_local int current = 0;

struct memory {
  std::size_t size;
  int file;  // -1: of the host
  cudaMemoryType type;
  bool can_be_exported;
  bool opened;  // of another process
  int device = current;
};
std::mutex guard;
auto& all_memory = *new std::map<char*, memory>;  // by address; threads may outlive the end of the program's objects

/// What `p` points into, if it is known.
std::map<char*, memory>::iterator find(const void* p) {
  auto above = all_memory.upper_bound(const_cast<char*>(static_cast<const char*>(p)));
  if (above == all_memory.begin()) return all_memory.end();
  --above;
  return static_cast<const char*>(p) < above->first + above->second.size ? above : all_memory.end();
}

cudaError_t map_file(int file, std::size_t size, const memory& what, void** where) {
  void* const p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED) return cudaErrorMemoryAllocation;
  const std::lock_guard lock(guard);
  all_memory[static_cast<char*>(p)] = what;
  *where = p;
  return cudaSuccess;
}
cudaError_t allocate(void** where, std::size_t bytes, cudaMemoryType type, bool can_be_exported) {
  const std::size_t size = bytes == 0 ? 1 : bytes;
  const int file = ::memfd_create("device memory", 0);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(size)) != 0) return cudaErrorMemoryAllocation;
  return map_file(file, size, {size, file, type, can_be_exported, false}, where);
}
cudaError_t release(void* p) {
  if (p == nullptr) return cudaSuccess;
  const std::lock_guard lock(guard);
  const auto it = all_memory.find(static_cast<char*>(p));
  if (it == all_memory.end()) return cudaErrorInvalidValue;
  ::munmap(it->first, it->second.size);
  ::close(it->second.file);
  all_memory.erase(it);
  return cudaSuccess;
}

/// A file of another process, as both kinds of handles carry it.
struct file_of_process {
  pid_t process;
  int file;
  std::size_t size;
};
template <class Handle>
void write_handle(Handle* h, const file_of_process& f) {
  std::memset(h, 0, sizeof *h);
  std::memcpy(h, &f, sizeof f);
}
template <class Handle>
cudaError_t open_handle(const Handle& h, cudaMemoryType type, void** where) {
  file_of_process f{};
  std::memcpy(&f, &h, sizeof f);
  if (f.process == ::getpid()) return cudaErrorInvalidResourceHandle;  // CUDA refuses it too
  const int file =
      ::open(("/proc/" + std::to_string(f.process) + "/fd/" + std::to_string(f.file)).c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return cudaErrorInvalidResourceHandle;
  return map_file(file, f.size, {f.size, file, type, false, true}, where);
}

}  // namespace

struct CUstream_st {
  CUstream_st() : worker([this] { run(); }) {}
  ~CUstream_st() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    worker.join();
  }
  void push(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex);
      waiting.push_back(std::move(work));
    }
    changed.notify_all();
  }
  void wait_until_empty() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return waiting.empty(); });
  }
  void wait_for_room(std::size_t pieces) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return waiting.size() < pieces; });
  }
  [[nodiscard]] bool empty() {
    const std::lock_guard lock(mutex);
    return waiting.empty();
  }
  const int device = current;
  std::atomic<bool> capturing{false};

 private:
  void run() {
    auto chance =
        static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(this) >> 6 ^ static_cast<unsigned>(::getpid()));
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return !waiting.empty() || ending; });
        if (waiting.empty()) return;
        work = waiting.front();  // stays there until it is done
      }
      chance = chance * 1664525u + 1013904223u;
      if (chance >> 29 == 0) ::usleep(200);
      for (unsigned i = chance >> 28; i > 0; --i) ::sched_yield();
      work();
      {
        const std::lock_guard lock(mutex);
        waiting.pop_front();
      }
      changed.notify_all();
    }
  }

  std::mutex mutex{};
  std::condition_variable changed{};
  std::deque<std::function<void()>> waiting{};
  bool ending = false;
  std::thread worker;
};

struct CUevent_st {
  struct counters {
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> done{0};
  };
  void* memory = nullptr;
  const int device = current;
  std::atomic<int> users{1};  // its owner, and each stream that is to record it or waits for it: as with CUDA's own
  [[nodiscard]] counters& state() const { return *static_cast<counters*>(memory); }
};

namespace {

auto& streams = *new std::vector<CUstream_st*>;         // with `guard`
auto& default_ones = *new std::map<int, CUstream_st*>;  // by device; with `guard`

/// A stream, or the default stream of the device that is current.
CUstream_st* of(cudaStream_t s) {
  if (s != nullptr && s != cudaStreamLegacy) return s;
  const std::lock_guard lock(guard);
  CUstream_st*& mine = default_ones[current];
  if (mine == nullptr) mine = new CUstream_st;  // for the rest of the program
  return mine;
}

CUresult pointer_attribute(void* value, CUpointer_attribute which, CUdeviceptr p) {
  const std::lock_guard lock(guard);
  const auto it = find(reinterpret_cast<const void*>(p));
  if (it == all_memory.end()) return CUDA_ERROR_INVALID_VALUE;
  if (which == CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) {
    *static_cast<unsigned int*>(value) = it->second.can_be_exported ? 1 : 0;
  } else if (which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR) {
    *static_cast<CUdeviceptr*>(value) = reinterpret_cast<CUdeviceptr>(it->first);
  } else {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return CUDA_SUCCESS;
}
CUresult write_value(CUstream s, CUdeviceptr place, cuuint64_t value, unsigned int) {
  if (of(s)->device != current) return CUDA_ERROR_INVALID_HANDLE;
  of(s)->wait_for_room(room);
  of(s)->push([=] {
    std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(place)).store(value, std::memory_order_release);
  });
  return CUDA_SUCCESS;
}

[[maybe_unused]] const bool said = [] {
  std::puts("on the host: CUDA's functions are those of tests/gpu/host_runtime.cpp, and no GPU takes part");
  return true;
}();

}  // namespace

void gpu_test::enqueue_on_host(cudaStream_t s, std::function<void()> work) { of(s)->push(std::move(work)); }
void gpu_test::set_room_of_streams(std::size_t pieces) { room = pieces; }
void gpu_test::set_host_devices(int count) { devices = count; }
int gpu_test::current() { return ::current; }
int gpu_test::device_of(cudaStream_t s) { return of(s)->device; }
void gpu_test::set_capturing(cudaStream_t s, bool yes) { of(s)->capturing = yes; }

extern "C" {

cudaError_t cudaGetDeviceCount(int* n) { return *n = devices, cudaSuccess; }
cudaError_t cudaGetDevice(int* d) { return *d = current, cudaSuccess; }
cudaError_t cudaSetDevice(int d) {
  if (d < 0 || d >= devices) return cudaErrorInvalidDevice;
  return current = d, cudaSuccess;
}
cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorName(cudaError_t) { return "an error of host_runtime.cpp"; }
const char* cudaGetErrorString(cudaError_t) { return "refused"; }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) { return *value = 1, cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int d) {
  *p = cudaDeviceProp{};
  p->uuid.bytes[0] = static_cast<char>(d);
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** p, std::size_t n) { return allocate(p, n, cudaMemoryTypeDevice, true); }
cudaError_t cudaMallocManaged(void** p, std::size_t n, unsigned int) {
  return allocate(p, n, cudaMemoryTypeManaged, false);
}
cudaError_t cudaMallocAsync(void** p, std::size_t n, cudaStream_t) {
  return allocate(p, n, cudaMemoryTypeDevice, false);
}
cudaError_t cudaHostAlloc(void** p, std::size_t n, unsigned int) { return allocate(p, n, cudaMemoryTypeHost, false); }
cudaError_t cudaFreeHost(void* p) { return release(p); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  of(s)->push([p] { release(p); });
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) {
  std::vector<CUstream_st*> all;
  {
    const std::lock_guard lock(guard);
    const auto it = all_memory.find(static_cast<char*>(p));
    for (CUstream_st* s : streams) {
      if (it != all_memory.end() && s->device == it->second.device) all.push_back(s);
    }
  }
  for (CUstream_st* s : all) s->wait_until_empty();
  return release(p);
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  const std::lock_guard lock(guard);
  *a = cudaPointerAttributes{};
  const auto it = find(p);
  a->type = it == all_memory.end() ? cudaMemoryTypeUnregistered : it->second.type;
  if (it != all_memory.end()) a->device = it->second.device;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t n, cudaMemcpyKind, cudaStream_t s) {
  if (n == 0) return cudaSuccess;
  const auto pageable = [](const void* p) {
    const std::lock_guard lock(guard);
    return find(p) == all_memory.end();
  };
  if (pageable(from)) {  // may be reused at once
    of(s)->push([to, copied = std::string(static_cast<const char*>(from), n)] {
      std::memcpy(to, copied.data(), copied.size());
    });
  } else {
    of(s)->push([=] { std::memcpy(to, from, n); });
  }
  if (pageable(to)) of(s)->wait_until_empty();
  return cudaSuccess;
}
// Comes back when what it reads may be used again, and not when it has come where it belongs, if that is a device.
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t n, cudaMemcpyKind kind) {
  return cudaMemcpyAsync(to, from, n, kind, cudaStreamLegacy);
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned int) {
  *s = new CUstream_st;
  const std::lock_guard lock(guard);
  streams.push_back(*s);
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  {
    const std::lock_guard lock(guard);
    std::erase(streams, s);
  }
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) { return of(s)->wait_until_empty(), cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t s) { return of(s)->empty() ? cudaSuccess : cudaErrorNotReady; }
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  return *status = of(s)->capturing ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned int) {
  *e = new CUevent_st;
  return allocate(&(*e)->memory, sizeof(CUevent_st::counters), cudaMemoryTypeHost, true);
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  if (--e->users > 0) return cudaSuccess;
  const cudaError_t code = release(e->memory);
  delete e;
  return code;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  if (e->device != of(s)->device) return cudaErrorInvalidResourceHandle;
  const std::uint64_t number = ++e->state().issued;
  ++e->users;
  of(s)->push([e, number] {
    e->state().done = number;
    cudaEventDestroy(e);
  });
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned int) {
  ++e->users;
  of(s)->push([e, number = e->state().issued.load()] {
    while (e->state().done.load() < number) ::sched_yield();
    cudaEventDestroy(e);
  });
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  return e->state().done.load() == e->state().issued.load() ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* h, void* p) {
  const std::lock_guard lock(guard);
  const auto it = all_memory.find(static_cast<char*>(p));
  if (it == all_memory.end() || !it->second.can_be_exported) return cudaErrorInvalidValue;
  write_handle(h, {::getpid(), it->second.file, it->second.size});
  return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t h, unsigned int) {
  return open_handle(h, cudaMemoryTypeDevice, p);
}
cudaError_t cudaIpcCloseMemHandle(void* p) { return release(p); }
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* h, cudaEvent_t e) {
  const std::lock_guard lock(guard);
  write_handle(h, {::getpid(), find(e->memory)->second.file, sizeof(CUevent_st::counters)});
  return cudaSuccess;
}
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* e, cudaIpcEventHandle_t h) {
  *e = new CUevent_st;
  return open_handle(h, cudaMemoryTypeHost, &(*e)->memory);
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** f, unsigned int, unsigned long long,
                                             cudaDriverEntryPointQueryResult* how) {
  *f = nullptr;
  if (std::strcmp(name, "cuPointerGetAttribute") == 0) *f = reinterpret_cast<void*>(&pointer_attribute);
  if (std::strcmp(name, "cuStreamWriteValue64") == 0) *f = reinterpret_cast<void*>(&write_value);
  if (how != nullptr) *how = *f != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}

}  // extern "C"
