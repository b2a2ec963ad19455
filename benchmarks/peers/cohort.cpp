// SPDX-License-Identifier: BSL-1.0
// The driver of a comparison for cohort itself: what ../measure.hpp asks for, by the calls that a user writes. With
// COHORT_OVER_MPI defined, over the MPI library whose compiler it is built with.
#include "../measure.hpp"

#include <cohort/cohort.hpp>
#ifdef COHORT_OVER_MPI
#include <cohort/backend/mpi.hpp>
#endif

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <vector>

namespace {

#ifdef COHORT_OVER_MPI
using backend = cohort::mpi;
#else
using backend = cohort::cpu;
#endif

class library {
 public:
  library() : world_(cohort::connect<backend>()) {}
  [[nodiscard]] int rank() const { return world_.rank(); }
  [[nodiscard]] int size() const { return world_.size(); }
  /// With MEASURE_REGISTER in the environment buffers are registered.
  template <class T>
  std::shared_ptr<void> keep(T* data, std::size_t n) {
    if (std::getenv("MEASURE_REGISTER") == nullptr || n == 0) return nullptr;
    return std::make_shared<cohort::registration>(world_.register_memory(std::span(data, n)));
  }

  void barrier() { world_.barrier().wait(); }
  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    world_.all_reduce(std::span(in, n), std::span(out, n), op).wait();
  }
  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    world_.broadcast(std::span(inout, n), cohort::root{root}).wait();
  }
  template <class T, class Op>
  void reduce(const T* in, T* out, std::size_t n, const Op& op, int root) {
    world_.reduce(std::span(in, n), std::span(out, n), op, cohort::root{root}).wait();
  }
  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    world_.all_gather(std::span(in, block), std::span(out, whole(block))).wait();
  }
  template <class T, class Op>
  void reduce_scatter(const T* in, T* out, std::size_t block, const Op& op) {
    world_.reduce_scatter(std::span(in, whole(block)), std::span(out, block), op).wait();
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    world_.all_to_all(std::span(in, whole(block)), std::span(out, whole(block))).wait();
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    world_.gather(std::span(in, block), std::span(out, whole(block)), cohort::root{root}).wait();
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    world_.scatter(std::span(in, whole(block)), std::span(out, block), cohort::root{root}).wait();
  }
  template <class T, class Op>
  void scan(const T* in, T* out, std::size_t n, const Op& op) {
    world_.scan(std::span(in, n), std::span(out, n), op).wait();
  }
  template <class T>
  void send(const T* data, std::size_t n, int peer) {
    world_.send(std::span(data, n), cohort::to{peer}).wait();
  }
  template <class T>
  void receive(T* data, std::size_t n, int peer) {
    world_.recv(std::span(data, n), cohort::from{peer}).wait();
  }
  template <class T>
  void send_window(const T* data, std::size_t n, int peer, int window) {
    std::vector<cohort::operation<>> flying;
    flying.reserve(static_cast<std::size_t>(window));
    for (int i = 0; i < window; ++i) flying.push_back(world_.send(std::span(data, n), cohort::to{peer}));
    for (auto& each : flying) each.wait();
  }
  template <class T>
  void receive_window(T* data, std::size_t n, int peer, int window) {
    std::vector<cohort::operation<cohort::received>> flying;
    flying.reserve(static_cast<std::size_t>(window));
    for (int i = 0; i < window; ++i) flying.push_back(world_.recv(std::span(data, n), cohort::from{peer}));
    for (auto& each : flying) each.wait();
  }

 private:
  [[nodiscard]] std::size_t whole(std::size_t block) const { return block * static_cast<std::size_t>(size()); }
  cohort::communicator<backend> world_;
};

}  // namespace

int main() {
  try {
    library cohort_library;
    return measure::serve<cohort::sum>(cohort_library);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cohort driver: %s\n", error.what());
    return 1;
  }
}
