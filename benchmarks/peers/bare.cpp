// SPDX-License-Identifier: BSL-1.0
// The driver of a comparison for no library at all: what each operation takes when nothing is moved, said or checked but
// what it needs. What a library can be is between this and its peers. MEASURE_TRANSPORT says how: shm, single (one copy by
// the kernel instead of two through shared memory) or tcp.
#include "../measure.hpp"
#include "bare_memory.hpp"
#include "bare_shared.hpp"
#include "bare_single.hpp"
#include "bare_sockets.hpp"

#include <sys/prctl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr)
    throw std::runtime_error(std::string(name) + " is not set: this program is started by compare.sh");
  return value;
}

/// Of several messages each comes after the one before: there is nothing that could have two under way.
template <class Moves>
class one_by_one : public Moves {
 public:
  using Moves::Moves;
  template <class T>
  void send_window(const T* data, std::size_t n, int peer, int window) {
    for (int i = 0; i < window; ++i) this->send(data, n, peer);
  }
  template <class T>
  void receive_window(T* data, std::size_t n, int peer, int window) {
    for (int i = 0; i < window; ++i) this->receive(data, n, peer);
  }
};

struct sum {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
};

}  // namespace

int main() {
  try {
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2")) throw std::runtime_error("this processor has no AVX2");
#endif
    const int rank = std::stoi(variable("RANK"));
    const int ranks = std::stoi(variable("WORLD_SIZE"));
    bare::settle(rank, ranks);
    const std::string name = "/cohort_bare_" + variable("MASTER_PORT");
    const std::size_t areas = static_cast<std::size_t>(ranks) + 2;  // two for messages
    const bare::shared_memory memory(name, areas * sizeof(bare::rank_area), rank == 0);
    auto* const all = static_cast<bare::rank_area*>(memory.start());
    all[rank].process.store(static_cast<std::uint64_t>(::getpid()));
    for (int k = 0; k < ranks; ++k) {
      bare::patience(ranks).until([&] { return all[k].process.load() != 0; });
    }
    if (rank == 0) ::shm_unlink(name.c_str());
    const std::string transport = variable("MEASURE_TRANSPORT");
    if (transport == "tcp") {
      one_by_one<bare::over_sockets> sockets(all, rank, ranks);
      return measure::serve<sum>(sockets);
    }
    if (transport == "single") {
      ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
      one_by_one<bare::over_one_copy> single(name, all, rank, ranks);
      return measure::serve<sum>(single);
    }
    one_by_one<bare::over_memory> shared(name, all, rank, ranks);
    return measure::serve<sum>(shared);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare driver: %s\n", error.what());
    return 1;
  }
}
