// SPDX-License-Identifier: BSL-1.0
// The driver of a comparison for nothing but MPI's messages, each behind a header that tells what it is, sent
// and received by calls that return at once: what an operation takes at least that can be awaited, and whose message is held
// against its receive before its bytes are let into the buffer. What is short is one message with its header. Compiled once
// with each MPI library.
#include "../measure.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

void check(int code) {
  if (code != MPI_SUCCESS) throw std::runtime_error("MPI error " + std::to_string(code));
}

struct sum {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
};

class messages {
 public:
  messages() {
    check(MPI_Init(nullptr, nullptr));
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_));
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_));
    if (size_ < 2) throw std::runtime_error("this driver is for two ranks or more");
    for (std::size_t i = 0; i < slots; ++i) listen(i);
  }
  messages(const messages&) = delete;
  messages& operator=(const messages&) = delete;
  ~messages() { MPI_Finalize(); }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }

 protected:
  /// From here on MPI has the bytes, until `let_go`.
  void give(const void* data, std::size_t bytes) {
    if (given_now_ == flying_.size()) flying_.emplace_back();
    flight& f = flying_[given_now_++];
    const header h{bytes, ++given_};
    std::memcpy(f.packet.data(), &h, sizeof h);
    const bool together = bytes <= longest_together;
    if (together && bytes > 0) std::memcpy(f.packet.data() + sizeof h, data, bytes);
    const std::size_t whole = sizeof h + (together ? bytes : 0);
    check(MPI_Isend(f.packet.data(), static_cast<int>(whole), MPI_BYTE, 1 - rank_, 0, MPI_COMM_WORLD, &f.sending[0]));
    if (together) return;
    check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD, &f.sending[1]));
  }
  void let_go() {
    for (std::size_t i = 0; i < given_now_; ++i) {
      for (MPI_Request& r : flying_[i].sending) finish(r);
    }
    given_now_ = 0;
  }

  /// Calls `use` with the bytes of the next message, which are in `room` where they are long.
  template <class Use>
  void take(void* room, std::size_t bytes, const Use& use) {
    const bool behind = arrive(bytes);
    if (bytes > 0 && !behind) {
      MPI_Request following = follow(room, bytes);
      finish(following);
      use(static_cast<const std::byte*>(room));
    } else {
      use(slot() + sizeof(header));
    }
    leave_slot();
  }
  /// The same of several into one place, as a window has them: what is long is waited for together.
  void take_window(void* into, std::size_t bytes, int count) {
    following_.clear();
    for (int i = 0; i < count; ++i) {
      if (!arrive(bytes)) following_.push_back(follow(into, bytes));
      else std::memcpy(into, slot() + sizeof(header), bytes);
      leave_slot();
    }
    check(MPI_Waitall(static_cast<int>(following_.size()), following_.data(), MPI_STATUSES_IGNORE));
  }
  void take(void* into, std::size_t bytes) {
    take(into, bytes, [&](const std::byte* from) {
      if (bytes > 0 && from != into) std::memcpy(into, from, bytes);
    });
  }
  /// out = in and what comes, combined.
  template <class T, class Op>
  void take_and_combine(const T* in, T* out, std::size_t n, const Op& op) {
    if (n * sizeof(T) > staging_.size()) staging_.resize(n * sizeof(T));
    take(staging_.data(), n * sizeof(T), [&](const std::byte* from) {
      const T* const its = reinterpret_cast<const T*>(from);
      for (std::size_t i = 0; i < n; ++i) out[i] = op(in[i], its[i]);
    });
  }

 private:
  struct header {
    std::uint64_t bytes;
    std::uint64_t number;
    std::byte rest[48];  // the communicator, the operation, its element type
    header(std::size_t b = 0, std::uint64_t n = 0) : bytes(b), number(n), rest{} {}
  };
  static constexpr std::size_t slots = 16;
  static constexpr std::size_t longest_together = std::size_t{32} << 10;
  static constexpr std::size_t slot_bytes = sizeof(header) + longest_together;

  struct flight {
    std::vector<std::byte> packet = std::vector<std::byte>(slot_bytes);
    std::array<MPI_Request, 2> sending{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  };

  [[nodiscard]] const std::byte* slot() const { return ring_.data() + next_ * slot_bytes; }
  void leave_slot() {
    listen(next_);
    next_ = (next_ + 1) % slots;
  }
  /// Waits for the next header, into the next slot. Result: whether the bytes are behind it
  [[nodiscard]] bool arrive(std::size_t bytes) {
    // One question about both ends: MPI moves everything whatever it is asked about.
    const bool gives = given_now_ == 1;
    std::array<MPI_Request, 3> asked{listening_[next_], MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (gives) std::copy_n(flying_[0].sending.begin(), 2, asked.begin() + 1);
    std::array<int, 3> ended{};
    std::array<MPI_Status, 3> statuses{};
    bool there = false;
    MPI_Status status{};
    while (!there) {
      int count = 0;
      check(MPI_Testsome(3, asked.data(), &count, ended.data(), statuses.data()));
      for (int i = 0; i < count; ++i) {
        if (ended[static_cast<std::size_t>(i)] != 0) continue;
        there = true;
        status = statuses[static_cast<std::size_t>(i)];
      }
    }
    if (gives) std::copy_n(asked.begin() + 1, 2, flying_[0].sending.begin());
    int arrived = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &arrived));
    header h{};
    std::memcpy(&h, slot(), sizeof h);
    const std::size_t behind = static_cast<std::size_t>(arrived) - sizeof h;
    if (h.bytes != bytes || h.number != ++taken_ || (behind != 0 && behind != bytes)) {
      throw std::runtime_error("another message than was expected");
    }
    return behind == bytes;
  }
  [[nodiscard]] MPI_Request follow(void* room, std::size_t bytes) {
    MPI_Request following = MPI_REQUEST_NULL;
    check(MPI_Irecv(room, static_cast<int>(bytes), MPI_BYTE, 1 - rank_, 1, MPI_COMM_WORLD, &following));
    return following;
  }
  void listen(std::size_t slot) {
    check(MPI_Irecv(ring_.data() + slot * slot_bytes, static_cast<int>(slot_bytes), MPI_BYTE, MPI_ANY_SOURCE, 0,
                    MPI_COMM_WORLD, &listening_[slot]));
  }
  static void finish(MPI_Request& r) {
    for (int done = r == MPI_REQUEST_NULL; done == 0;) check(MPI_Test(&r, &done, MPI_STATUS_IGNORE));
  }

  int rank_ = 0, size_ = 0;
  std::vector<std::byte> ring_ = std::vector<std::byte>(slots * slot_bytes);
  std::vector<flight> flying_ = std::vector<flight>(1);
  std::size_t given_now_ = 0;  ///< not let go of
  std::vector<std::byte> staging_{};
  std::array<MPI_Request, slots> listening_{};
  std::vector<MPI_Request> following_{};
  std::size_t next_ = 0;
  std::uint64_t given_ = 0, taken_ = 0;
};

/// Messages go between ranks 0 and 1; the others wait for them, and collectives are for two.
class library : public messages {
 public:
  template <class T>
  std::shared_ptr<void> keep(T*, std::size_t) {
    return nullptr;
  }
  void barrier() {
    if (size() > 2) return check(MPI_Barrier(MPI_COMM_WORLD));
    swap(nullptr, nullptr, 0);
  }
  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    for_two();
    if (n * sizeof(T) < long_vector) {
      give(in, n * sizeof(T));
      take_and_combine(in, out, n, op);
      return let_go();
    }
    // In halves: what is combined need not be sent twice.
    const std::size_t half = n / 2;
    const std::size_t mine = rank() == 0 ? half : n - half;
    const std::size_t at = rank() == 0 ? 0 : half;
    const std::size_t other = rank() == 0 ? half : 0;
    give(in + other, (n - mine) * sizeof(T));
    take_and_combine(in + at, out + at, mine, op);
    let_go();
    swap(out + at, out + other, mine * sizeof(T), (n - mine) * sizeof(T));
  }
  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    move(root, inout, inout, n * sizeof(T));
  }
  template <class T, class Op>
  void reduce(const T* in, T* out, std::size_t n, const Op& op, int root) {
    for_two();
    if (rank() == root) return take_and_combine(in, out, n, op);
    give(in, n * sizeof(T));
    let_go();
  }
  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    swap(in, out + block * other(), block * sizeof(T));
    std::memcpy(out + block * own(), in, block * sizeof(T));
  }
  template <class T, class Op>
  void reduce_scatter(const T* in, T* out, std::size_t block, const Op& op) {
    for_two();
    give(in + block * other(), block * sizeof(T));
    take_and_combine(in + block * own(), out, block, op);
    let_go();
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    swap(in + block * other(), out + block * other(), block * sizeof(T));
    std::memcpy(out + block * own(), in + block * own(), block * sizeof(T));
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    move(1 - root, in, out + block * other(), block * sizeof(T));
    if (rank() == root) std::memcpy(out + block * own(), in, block * sizeof(T));
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    move(root, in + block * other(), out, block * sizeof(T));
    if (rank() == root) std::memcpy(out, in + block * own(), block * sizeof(T));
  }
  template <class T, class Op>
  void scan(const T* in, T* out, std::size_t n, const Op& op) {
    for_two();
    if (rank() == 1) return take_and_combine(in, out, n, op);
    give(in, n * sizeof(T));
    std::memcpy(out, in, n * sizeof(T));
    let_go();
  }
  template <class T>
  void send(const T* data, std::size_t n, int) {
    give(data, n * sizeof(T));
    let_go();
  }
  template <class T>
  void receive(T* data, std::size_t n, int) {
    take(data, n * sizeof(T));
  }
  template <class T>
  void send_window(const T* data, std::size_t n, int, int window) {
    for (int i = 0; i < window; ++i) give(data, n * sizeof(T));
    let_go();
  }
  template <class T>
  void receive_window(T* data, std::size_t n, int, int window) {
    take_window(data, n * sizeof(T), window);
  }

 private:
  static constexpr std::size_t long_vector = std::size_t{512} << 10;
  [[nodiscard]] std::size_t own() const { return static_cast<std::size_t>(rank()); }
  [[nodiscard]] std::size_t other() const { return static_cast<std::size_t>(1 - rank()); }
  void swap(const void* from, void* to, std::size_t bytes) { swap(from, to, bytes, bytes); }
  void for_two() const {
    if (size() != 2) throw measure::unsupported("collectives are for two ranks here");
  }
  void swap(const void* from, void* to, std::size_t out, std::size_t in) {
    for_two();
    give(from, out);
    take(to, in);
    let_go();
  }
  void move(int giver, const void* from, void* to, std::size_t bytes) {
    for_two();
    if (rank() != giver) return take(to, bytes);
    give(from, bytes);
    let_go();
  }
};

}  // namespace

int main() {
  try {
    library mpi;
    return measure::serve<sum>(mpi);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bare MPI driver: %s\n", error.what());
    return 1;
  }
}
