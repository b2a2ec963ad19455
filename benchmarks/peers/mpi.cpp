// SPDX-License-Identifier: BSL-1.0
// The driver of a comparison for any MPI library; compiled once with each. With MEASURE_REQUESTS, by the calls that return
// at once, whose end is then asked for: what an asynchronous program calls.
#include "../measure.hpp"

#include <mpi.h>
#include <sched.h>

#include <cstddef>
#include <cstdio>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

namespace {

struct builtin_sum {};

void check(int code) {
  if (code != MPI_SUCCESS) throw std::runtime_error("MPI error " + std::to_string(code));
}

#ifdef MEASURE_REQUESTS
/// As a program waits that has nothing else to do; the ranks may share a core.
void finish(MPI_Request& r) {
  int done = 0;
  for (int polls = 0; check(MPI_Test(&r, &done, MPI_STATUS_IGNORE)), done == 0; ++polls) {
    if (polls > 50) ::sched_yield();
  }
}
#define MEASURE_CALL(blocking, name, ...)       \
  do {                                          \
    MPI_Request request_;                       \
    check(MPI_I##name(__VA_ARGS__, &request_)); \
    finish(request_);                           \
  } while (false)
#else
#define MEASURE_CALL(name, nonblocking, ...) check(MPI_##name(__VA_ARGS__))
#endif

// MPI calls it for whole arrays, so the loop is as good as a built-in one.
void add_floats(void* in, void* inout, int* count, MPI_Datatype*) {
  const float* a = static_cast<const float*>(in);
  float* b = static_cast<float*>(inout);
  for (int i = 0; i < *count; ++i) b[i] = a[i] + b[i];
}
// MPI 4 has no bfloat16: this is what its users write.
void add_bfloat16(void* in, void* inout, int* count, MPI_Datatype*) {
  const auto* a = static_cast<const measure::bfloat16*>(in);
  auto* b = static_cast<measure::bfloat16*>(inout);
  for (int i = 0; i < *count; ++i) b[i] = measure::bfloat16(static_cast<float>(a[i]) + static_cast<float>(b[i]));
}

class library {
 public:
  library() {
    check(MPI_Init(nullptr, nullptr));
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    check(MPI_Op_create(add_floats, 1, &user_));
    check(MPI_Op_create(add_bfloat16, 1, &bfloat16_));
  }
  library(const library&) = delete;
  library& operator=(const library&) = delete;
  ~library() { MPI_Finalize(); }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

  template <class T>
  std::shared_ptr<void> keep(T*, std::size_t) {
    return nullptr;
  }
  void barrier() { MEASURE_CALL(Barrier, barrier, MPI_COMM_WORLD); }
  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    MEASURE_CALL(Allreduce, allreduce, in, out, count(n), type(in), function(in, op), MPI_COMM_WORLD);
  }
  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    MEASURE_CALL(Bcast, bcast, inout, count(n), type(inout), root, MPI_COMM_WORLD);
  }
  template <class T, class Op>
  void reduce(const T* in, T* out, std::size_t n, const Op& op, int root) {
    MEASURE_CALL(Reduce, reduce, in, out, count(n), type(in), function(in, op), root, MPI_COMM_WORLD);
  }
  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    MEASURE_CALL(Allgather, allgather, in, count(block), type(in), out, count(block), type(in), MPI_COMM_WORLD);
  }
  template <class T, class Op>
  void reduce_scatter(const T* in, T* out, std::size_t block, const Op& op) {
    MEASURE_CALL(Reduce_scatter_block, reduce_scatter_block, in, out, count(block), type(in), function(in, op),
                 MPI_COMM_WORLD);
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    MEASURE_CALL(Alltoall, alltoall, in, count(block), type(in), out, count(block), type(in), MPI_COMM_WORLD);
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    MEASURE_CALL(Gather, gather, in, count(block), type(in), out, count(block), type(in), root, MPI_COMM_WORLD);
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    MEASURE_CALL(Scatter, scatter, in, count(block), type(in), out, count(block), type(in), root, MPI_COMM_WORLD);
  }
  template <class T, class Op>
  void scan(const T* in, T* out, std::size_t n, const Op& op) {
    MEASURE_CALL(Scan, scan, in, out, count(n), type(in), function(in, op), MPI_COMM_WORLD);
  }
  template <class T>
  void send(const T* data, std::size_t n, int peer) {
    MEASURE_CALL(Send, send, data, count(n), type(data), peer, 0, MPI_COMM_WORLD);
  }
  template <class T>
  void receive(T* data, std::size_t n, int peer) {
#ifdef MEASURE_REQUESTS
    MEASURE_CALL(Recv, recv, data, count(n), type(data), peer, 0, MPI_COMM_WORLD);
#else
    check(MPI_Recv(data, count(n), type(data), peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
#endif
  }
  template <class T>
  void send_window(const T* data, std::size_t n, int peer, int window) {
    flying_.resize(static_cast<std::size_t>(window));
    for (MPI_Request& r : flying_) check(MPI_Isend(data, count(n), type(data), peer, 0, MPI_COMM_WORLD, &r));
    check(MPI_Waitall(window, flying_.data(), MPI_STATUSES_IGNORE));
  }
  template <class T>
  void receive_window(T* data, std::size_t n, int peer, int window) {
    flying_.resize(static_cast<std::size_t>(window));
    for (MPI_Request& r : flying_) check(MPI_Irecv(data, count(n), type(data), peer, 0, MPI_COMM_WORLD, &r));
    check(MPI_Waitall(window, flying_.data(), MPI_STATUSES_IGNORE));
  }

 private:
  static int count(std::size_t n) { return static_cast<int>(n); }
  static MPI_Datatype type(const float*) { return MPI_FLOAT; }
  static MPI_Datatype type(const measure::bfloat16*) { return MPI_UINT16_T; }
  [[nodiscard]] MPI_Op function(const float*, builtin_sum) const { return MPI_SUM; }
  [[nodiscard]] MPI_Op function(const float*, measure::user_sum) const { return user_; }
  template <class Op>
  [[nodiscard]] MPI_Op function(const measure::bfloat16*, Op) const {
    return bfloat16_;
  }

  int rank_ = 0, size_ = 0;
  MPI_Op user_{}, bfloat16_{};
  std::vector<MPI_Request> flying_;
};

}  // namespace

int main() {
  try {
    library mpi;
    return measure::serve<builtin_sum>(mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "MPI driver: %s\n", error.what());
    return 1;
  }
}
