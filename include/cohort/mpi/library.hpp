// SPDX-License-Identifier: BSL-1.0
// The MPI library of this process: initialised here if the program has not done so, and then finalised at its exit.
// Asked first by mpi/connect.hpp.
#pragma once

#include <cohort/detail/fork_count.hpp>
#include <cohort/error.hpp>
#include <cohort/mpi/check.hpp>
#include <cohort/mpi/header.hpp>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

namespace cohort::detail {

/// What uses MPI in this process. It is told when MPI is about to end at the exit of the process: a communicator of static
/// storage duration is destroyed after that.
class mpi_users {
 public:
  using last_words = void (*)(void* user) noexcept;

  static void add(void* user, last_words words) {
    const std::lock_guard lock(all().mutex);
    all().users.push_back({user, words});
  }
  static void remove(void* user) noexcept {
    const std::lock_guard lock(all().mutex);
    auto& users = all().users;
    users.erase(std::remove_if(users.begin(), users.end(), [&](const entry& e) { return e.user == user; }),
                users.end());
  }
  [[nodiscard]] static bool any() {
    const std::lock_guard lock(all().mutex);
    return !all().users.empty();
  }
  static void tell() noexcept {
    const std::lock_guard lock(all().mutex);
    for (const entry& e : all().users) e.words(e.user);
  }

 private:
  struct entry {
    void* user;
    last_words words;
  };
  struct list {
    std::mutex mutex{};
    std::vector<entry> users{};
  };
  // Never destroyed: its users may be, later than any static object.
  [[nodiscard]] static list& all() {
    static list& one = *new list;
    return one;
  }
};

[[nodiscard]] inline bool mpi_has_ended() noexcept {
  int done = 0;
  return MPI_Finalized(&done) != MPI_SUCCESS || done != 0;
}

/// At the exit of the process that began MPI: a child of it exits without MPI, which is its parent's.
inline void finalise_mpi(const home_process& home) noexcept {
  if (home.left() || mpi_has_ended()) return;
  mpi_users::tell();
  MPI_Finalize();
}

/// MPI is running when this returns. A process can initialise it once only: what is begun here ends at exit, after the
/// last world, so that a program may open one world after another.
///
/// Needs:  the thread that will drive the communicator; MPI_THREAD_FUNNELED is enough
/// Errors: closed if the program has finalised MPI; invalid_argument if it has given MPI to another thread
inline void require_mpi() {
  if (mpi_has_ended()) {
    throw error(errc::closed,
                "MPI has been finalised in this process, and cannot be started again: connect before that");
  }
  int running = 0;
  check_mpi(MPI_Initialized(&running), "MPI_Initialized");
  if (running == 0) {
    int provided = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    static const home_process home;
    std::atexit([] { finalise_mpi(home); });
  }
  int level = MPI_THREAD_SINGLE;
  int main_thread = 0;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  check_mpi(MPI_Is_thread_main(&main_thread), "MPI_Is_thread_main");
  if (main_thread == 0 && level < MPI_THREAD_SERIALIZED) {
    throw error(errc::invalid_argument,
                "this thread may not call MPI: the program asked MPI_Init_thread for less than MPI_THREAD_SERIALIZED, "
                "and another thread initialised it; connect on that thread");
  }
}

}  // namespace cohort::detail
