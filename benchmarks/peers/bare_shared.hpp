// SPDX-License-Identifier: BSL-1.0
// Memory that the ranks of one host share, and what they tell each other in it: no more than the words that order the
// bytes. Nothing is checked, nobody may fail, and all ranks call the same. Used by bare.cpp.
#pragma once

#include <cohort/detail/round_room.hpp>

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace bare {

[[noreturn]] inline void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), "bare: " + what);
}

/// Spins, and lets others run where the ranks are more than the processors.
class patience {
 public:
  explicit patience(int ranks) : crowded_(ranks > ::sysconf(_SC_NPROCESSORS_ONLN)) {}
  template <class Done>
  void until(const Done& done) const {
    for (int polls = 1; !done(); ++polls) rest(polls);
  }
  /// After so many looks in vain.
  void rest(int polls) const {
    if (crowded_ ? polls > 10 : polls % 100000 == 0) ::sched_yield();
  }

 private:
  bool crowded_;
};

/// Ranks that are more than the processors are dealt out in turn: a scheduler may leave three of four on one of two.
inline void settle(int rank, int ranks) {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0 || ranks <= CPU_COUNT(&usable)) return;
  int left = rank % CPU_COUNT(&usable);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &usable) || left-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    if (::sched_setaffinity(0, sizeof one, &one) != 0) fail("settling on a processor");
    return;
  }
}

inline constexpr std::size_t page = 4096;

/// A named piece of shared memory, of zeros when it is new. Everybody maps it before its maker takes the name away.
class shared_memory {
 public:
  shared_memory(const std::string& name, std::size_t bytes, bool make) : bytes_(bytes) {
    int file = -1;
    if (make) {
      file = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
      if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) fail("making shared memory");
    } else {
      struct stat found {};
      while ((file = ::shm_open(name.c_str(), O_RDWR, 0600)) < 0 || ::fstat(file, &found) != 0 || found.st_size == 0) {
        if (file >= 0) ::close(file);
        ::sched_yield();
      }
    }
    start_ = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, file, 0);
    ::close(file);
    if (start_ == MAP_FAILED) fail("mapping shared memory");
  }
  shared_memory(const shared_memory&) = delete;
  shared_memory& operator=(const shared_memory&) = delete;
  ~shared_memory() { ::munmap(start_, bytes_); }
  [[nodiscard]] void* start() const { return start_; }

 private:
  std::size_t bytes_;
  void* start_ = nullptr;
};

using word = std::atomic<std::uint64_t>;

/// A word and the bytes that come with it.
struct alignas(64) line {
  word step;
  std::byte data[56];
};

/// What one rank writes and all read.
struct rank_area {
  static constexpr std::size_t ring = 16;
  static constexpr std::size_t slot_bytes = std::size_t{512} << 10;
  line first[ring];
  line second[ring];
  alignas(64) word done;
  alignas(64) word port;     ///< where it can be reached by a socket
  alignas(64) word process;  ///< its number, once it has mapped everything
  alignas(page) std::byte slots[2][slot_bytes];
};

/// Steps that all ranks take in the same order. In a step a rank gives bytes beside its word, or in its slot, and takes
/// what the others have given; a slot is written again two steps later, a line sixteen.
class steps {
 public:
  steps(rank_area* areas, int rank, int ranks)
      : areas_(areas), rank_(rank), ranks_(ranks), wait_(ranks), seen_(static_cast<std::size_t>(ranks)) {}

  static constexpr std::size_t slot_bytes = rank_area::slot_bytes;
  static constexpr std::size_t tiny_bytes = sizeof(line::data);
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return ranks_; }

  /// The next step, without slots: others may be some steps behind.
  void begin_tiny() {
    ++step_;
    follow(12);
  }
  /// `bytes`: what a slot holds, alike on all ranks, where it may go to another place in the slot each time.
  void begin(std::size_t bytes = 0) {
    areas_[rank_].done.store(step_, std::memory_order_release);
    ++step_;
    place_ = cohort::detail::goes_round(bytes)
                 ? cohort::detail::place_in_round(static_cast<std::uint32_t>(step_), bytes)
                 : 0;
    follow(2);
  }
  [[nodiscard]] std::byte* tiny(int rank) const { return areas_[rank].first[step_ % rank_area::ring].data; }
  [[nodiscard]] std::byte* slot(int rank) const { return areas_[rank].slots[step_ % 2] + place_; }
  void raise() { raise(areas_[rank_].first); }
  void raise_second() { raise(areas_[rank_].second); }
  void wait_for(int rank) const { wait(areas_[rank].first); }
  void wait_for_second(int rank) const { wait(areas_[rank].second); }
  template <class Each>
  void wait_for_all(const Each& each) const {
    for (int i = 1; i < ranks_; ++i) {
      const int k = (rank_ + i) % ranks_;
      wait_for(k);
      each(k);
    }
  }
  void wait_for_all() const {
    wait_for_all([](int) {});
  }
  void end_tiny() {
    if (step_ % 4 == 0) end();
  }
  /// Until all have ended this step.
  void wait_for_ends() { follow(0); }
  void end() { areas_[rank_].done.store(step_, std::memory_order_release); }

 private:
  void raise(line* lines) const { lines[step_ % rank_area::ring].step.store(step_, std::memory_order_release); }
  void wait(const line* lines) const {
    const word& there = lines[step_ % rank_area::ring].step;
    wait_.until([&] { return there.load(std::memory_order_acquire) >= step_; });
  }
  /// Nobody may be more than so many steps behind.
  void follow(std::uint64_t most) {
    for (int k = 0; k < ranks_; ++k) {
      std::uint64_t& seen = seen_[static_cast<std::size_t>(k)];
      if (k == rank_ || seen + most >= step_) continue;
      wait_.until([&] { return (seen = areas_[k].done.load(std::memory_order_acquire)) + most >= step_; });
    }
  }

  rank_area* areas_;
  int rank_, ranks_;
  patience wait_;
  std::uint64_t step_ = 0;
  std::size_t place_ = 0;  ///< of what stands in the slots
  std::vector<std::uint64_t> seen_;
};

/// Memory of the caller's in which the others can read and write: its pages are replaced by shared ones.
class promoted {
 public:
  promoted(const std::string& name, steps& together, void* data, std::size_t bytes)
      : data_(static_cast<std::byte*>(data)) {
    bytes_ = (bytes + page - 1) / page * page;
    const std::string mine = name + "." + std::to_string(together.rank());
    const int file = ::shm_open(mine.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes_)) != 0) fail("making shared memory");
    std::vector<std::byte> before(data_, data_ + bytes);
    if (::mmap(data_, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, file, 0) == MAP_FAILED) {
      fail("mapping shared memory");
    }
    ::close(file);
    std::memcpy(data_, before.data(), bytes);
    meet(together);
    for (int k = 0; k < together.ranks(); ++k) {
      all_.push_back(k == together.rank() ? nullptr : new shared_memory(name + "." + std::to_string(k), bytes_, false));
    }
    meet(together);
    ::shm_unlink(mine.c_str());
  }
  promoted(const promoted&) = delete;
  promoted& operator=(const promoted&) = delete;
  ~promoted() {
    for (const shared_memory* each : all_) delete each;
    // Ordinary memory again, as its owner gives it back to the heap.
    ::mmap(data_, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  }
  [[nodiscard]] bool is_at(const void* data) const { return data == data_; }
  [[nodiscard]] std::byte* of(int rank) const {
    const shared_memory* const there = all_[static_cast<std::size_t>(rank)];
    return there == nullptr ? data_ : static_cast<std::byte*>(there->start());
  }

 private:
  static void meet(steps& together) {
    together.begin_tiny();
    together.raise();
    together.wait_for_all();
    together.end_tiny();
  }

  std::byte* data_;
  std::size_t bytes_ = 0;
  std::vector<const shared_memory*> all_{};
};

}  // namespace bare
