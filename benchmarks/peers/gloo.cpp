// SPDX-License-Identifier: BSL-1.0
// The driver of a comparison for Gloo, over its TCP transport and its own choice of algorithms.
#include "../measure.hpp"

#include <gloo/allgather.h>
#include <gloo/allreduce.h>
#include <gloo/alltoall.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/reduce.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct builtin_sum {};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) throw std::runtime_error(std::string(name) + " is not set");
  return value;
}

// Gloo calls it for whole arrays; its own gloo::sum is the same loop.
void add_floats(void* to, const void* x, const void* y, std::size_t n) {
  const float *a = static_cast<const float*>(x), *b = static_cast<const float*>(y);
  float* c = static_cast<float*>(to);
  for (std::size_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
}
void add_bfloat16(void* to, const void* x, const void* y, std::size_t n) {
  const auto *a = static_cast<const measure::bfloat16*>(x), *b = static_cast<const measure::bfloat16*>(y);
  auto* c = static_cast<measure::bfloat16*>(to);
  for (std::size_t i = 0; i < n; ++i) c[i] = measure::bfloat16(static_cast<float>(a[i]) + static_cast<float>(b[i]));
}

class library {
 public:
  library() {
    gloo::transport::tcp::attr address("127.0.0.1");
    auto device = gloo::transport::tcp::CreateDevice(address);
    gloo::rendezvous::FileStore store(variable("GLOO_STORE"));
    auto made =
        std::make_shared<gloo::rendezvous::Context>(std::stoi(variable("RANK")), std::stoi(variable("WORLD_SIZE")));
    made->connectFullMesh(store, device);
    context_ = made;
  }
  [[nodiscard]] int rank() const { return context_->rank; }
  [[nodiscard]] int size() const { return context_->size; }

  template <class T>
  std::shared_ptr<void> keep(T*, std::size_t) {
    return nullptr;
  }
  void barrier() {
    gloo::BarrierOptions o(context_);
    gloo::barrier(o);
  }
  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    gloo::AllreduceOptions o(context_);
    o.setInput(const_cast<T*>(in), n);
    o.setOutput(out, n);
    o.setReduceFunction(function(in, op));
    gloo::allreduce(o);
  }
  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    gloo::BroadcastOptions o(context_);
    o.setOutput(inout, n);
    o.setRoot(root);
    gloo::broadcast(o);
  }
  template <class T, class Op>
  void reduce(const T* in, T* out, std::size_t n, const Op& op, int root) {
    gloo::ReduceOptions o(context_);
    o.setInput(const_cast<T*>(in), n);
    o.setOutput(out, n);
    o.setRoot(root);
    o.setReduceFunction(function(in, op));
    gloo::reduce(o);
  }
  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    gloo::AllgatherOptions o(context_);
    o.setInput(const_cast<T*>(in), block);
    o.setOutput(out, whole(block));
    gloo::allgather(o);
  }
  template <class T, class Op>
  void reduce_scatter(const T*, T*, std::size_t, const Op&) {
    throw measure::unsupported("Gloo has no function reduce_scatter of separate input and output");
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    gloo::AlltoallOptions o(context_);
    o.setInput(const_cast<T*>(in), whole(block));
    o.setOutput(out, whole(block));
    gloo::alltoall(o);
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    gloo::GatherOptions o(context_);
    o.setInput(const_cast<T*>(in), block);
    if (rank() == root) o.setOutput(out, whole(block));
    o.setRoot(root);
    gloo::gather(o);
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    gloo::ScatterOptions o(context_);
    if (rank() == root) {
      std::vector<T*> parts;
      for (int r = 0; r < size(); ++r) parts.push_back(const_cast<T*>(in) + static_cast<std::size_t>(r) * block);
      o.setInputs(parts, block);
    }
    o.setOutput(out, block);
    o.setRoot(root);
    gloo::scatter(o);
  }
  template <class T, class Op>
  void scan(const T*, T*, std::size_t, const Op&) {
    throw measure::unsupported("Gloo has no scan");
  }
  template <class T>
  void send(const T* data, std::size_t n, int peer) {
    auto b = context_->createUnboundBuffer(const_cast<T*>(data), n * sizeof(T));
    b->send(peer, slot);
    b->waitSend();
  }
  template <class T>
  void receive(T* data, std::size_t n, int peer) {
    auto b = context_->createUnboundBuffer(data, n * sizeof(T));
    b->recv(peer, slot);
    b->waitRecv();
  }
  template <class T>
  void send_window(const T* data, std::size_t n, int peer, int window) {
    auto b = context_->createUnboundBuffer(const_cast<T*>(data), n * sizeof(T));
    for (int i = 0; i < window; ++i) b->send(peer, slot);
    for (int i = 0; i < window; ++i) b->waitSend();
  }
  template <class T>
  void receive_window(T* data, std::size_t n, int peer, int window) {
    auto b = context_->createUnboundBuffer(data, n * sizeof(T));
    for (int i = 0; i < window; ++i) b->recv(peer, slot);
    for (int i = 0; i < window; ++i) b->waitRecv();
  }

 private:
  static constexpr std::uint64_t slot = 7;
  using combine = void (*)(void*, const void*, const void*, std::size_t);
  template <class Op>
  static combine function(const float*, Op) {
    return add_floats;
  }
  template <class Op>
  static combine function(const measure::bfloat16*, Op) {
    return add_bfloat16;
  }
  [[nodiscard]] std::size_t whole(std::size_t block) const { return block * static_cast<std::size_t>(size()); }
  std::shared_ptr<gloo::Context> context_;
};

}  // namespace

int main() {
  try {
    library gloo_library;
    return measure::serve<builtin_sum>(gloo_library);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "Gloo driver: %s\n", error.what());
    return 1;
  }
}
