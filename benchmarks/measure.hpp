// SPDX-License-Identifier: BSL-1.0
// What every driver of a comparison has in common: it waits asleep for a request, runs one batch of one operation
// on buffers that are filled and checked here, and answers with its time. compare.py lets the libraries take turns.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <cohort/bfloat16.hpp>

namespace measure {

using cohort::bfloat16;

/// One batch: `calls` operations back to back are timed, after `warm` that are not.
struct request {
  std::string operation, type, functor;
  std::size_t bytes = 0;  ///< the larger of one rank's input and output, as nccl-tests count
  int warm = 0;
  int calls = 1;
};

struct outcome {
  double seconds = 0;  ///< of the batch on this rank
  long wrong = 0;      ///< elements that are not what they should be, of those looked at
};

/// A functor that no library knows, so that it cannot use a loop of its own for it.
struct user_sum {
  static constexpr bool commutative = true;
  template <class T>
  T operator()(const T& a, const T& b) const {
    return static_cast<T>(a + b);
  }
};

/// What rank `rank` holds at `index`; small, so that every sum over ranks is exact, in bfloat16 too.
inline int value(int rank, std::size_t index) {
  return static_cast<int>((index * 3 + static_cast<std::size_t>(rank) * 5) % 11);
}
inline int sum_of_values(int ranks, std::size_t index) {
  int total = 0;
  for (int r = 0; r < ranks; ++r) total += value(r, index);
  return total;
}

/// Pages of its own, aligned to one, touched before anything is timed.
template <class T>
class buffer {
 public:
  explicit buffer(std::size_t count)
      : count_(count), data_(static_cast<T*>(::operator new (bytes() + page, std::align_val_t{page}))) {}
  buffer(const buffer&) = delete;
  buffer& operator=(const buffer&) = delete;
  ~buffer() { ::operator delete (data_, std::align_val_t{page}); }
  [[nodiscard]] T* data() const { return data_; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T); }
  void fill(int rank) {
    for (std::size_t i = 0; i < count_; ++i) data_[i] = static_cast<T>(static_cast<float>(value(rank, i)));
  }
  /// Writes a word of every line, as who computes the contents anew.
  void renew() {
    auto* const bytes_here = reinterpret_cast<volatile unsigned char*>(data_);
    for (std::size_t i = 0; i < bytes(); i += 64) bytes_here[i] = bytes_here[i];
  }
  void spoil() { std::memset(static_cast<void*>(data_), 0x55, bytes()); }

  /// How many of up to 4096 elements spread over the buffer, the last included, are not expected(index).
  template <class Expected>
  [[nodiscard]] long wrong(const Expected& expected) const {
    long found = 0;
    const std::size_t step = count_ / 4096 + 1;
    for (std::size_t i = 0; i < count_; i += step) found += is_wrong(i, expected);
    return count_ == 0 ? 0 : found + is_wrong(count_ - 1, expected);
  }

 private:
  static constexpr std::size_t page = 4096;
  template <class Expected>
  bool is_wrong(std::size_t i, const Expected& expected) const {
    return !(static_cast<float>(data_[i]) == static_cast<float>(expected(i)));
  }
  std::size_t count_;
  T* data_;
};

/// The end of the socket on which one rank is asked.
class control {
 public:
  explicit control(int rank) {
    const char* path = std::getenv("MEASURE_SOCKET");
    if (path == nullptr) throw std::runtime_error("MEASURE_SOCKET is not set: this program is started by compare.sh");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (std::strlen(path) >= sizeof address.sun_path) throw std::runtime_error("MEASURE_SOCKET is too long a path");
    std::strcpy(address.sun_path, path);
    socket_ = ::socket(AF_UNIX, SOCK_STREAM, 0);
    if (socket_ < 0 || ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error(std::string("cannot reach the coordinator at ") + path);
    }
    say("rank " + std::to_string(rank));
  }
  control(const control&) = delete;
  control& operator=(const control&) = delete;
  ~control() { ::close(socket_); }

  /// Sleeps until there is one. False when the coordinator has gone.
  bool next(request& r) {
    std::string line;
    char c = 0;
    while (true) {
      if (::read(socket_, &c, 1) != 1) return false;
      if (c == '\n') break;
      line += c;
    }
    std::istringstream words(line);
    words >> r.operation >> r.bytes >> r.type >> r.functor >> r.warm >> r.calls;
    return static_cast<bool>(words);
  }
  void say(std::string line) const {
    line += '\n';
    if (::write(socket_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::exit(1);
  }

 private:
  int socket_ = -1;
};

/// Thrown by a driver for what its library does not have.
struct unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Runs the requests of one element type. The buffers stay from one batch of a cell to the next.
template <class Library, class T>
class bench {
 public:
  explicit bench(Library& library) : library_(library), rank_(library.rank()), size_(library.size()) {}

  template <class Op>
  outcome run(const request& r, const Op& op) {
    prepare(r);
    const std::string& name = r.operation;
    const std::size_t n = whole_, b = block_;
    T *in = in_->data(), *out = out_->data();
    const auto rooted = [this](int call) { return call % size_; };
    int last = 0;
    const auto note = [&last](int call) { return last = call; };
    if (name == "all_reduce") {
      const double s = time(r, [&](int) { library_.all_reduce(in, out, n, op); });
      return {s, out_->wrong([&](std::size_t i) { return sum_of_values(size_, i); })};
    }
    if (name == "broadcast") {
      const double s = time(r, [&](int c) {
        const int root = rooted(note(c));
        library_.broadcast(root == rank_ ? in : out, n, root);
      });
      const int root = rooted(last);
      return {s, root == rank_ ? 0 : out_->wrong([&](std::size_t i) { return value(root, i); })};
    }
    if (name == "reduce") {
      const double s = time(r, [&](int c) { library_.reduce(in, out, n, op, rooted(note(c))); });
      return {s, rooted(last) != rank_ ? 0 : out_->wrong([&](std::size_t i) { return sum_of_values(size_, i); })};
    }
    if (name == "all_gather") {
      const double s = time(r, [&](int) { library_.all_gather(in, b, out); });
      return {s, out_->wrong([&](std::size_t i) { return value(static_cast<int>(i / b), i % b); })};
    }
    if (name == "reduce_scatter") {
      const double s = time(r, [&](int) { library_.reduce_scatter(in, out, b, op); });
      const std::size_t first = static_cast<std::size_t>(rank_) * b;
      return {s, out_->wrong([&](std::size_t i) { return sum_of_values(size_, first + i); })};
    }
    if (name == "all_to_all") {
      const double s = time(r, [&](int) { library_.all_to_all(in, out, b); });
      const std::size_t mine = static_cast<std::size_t>(rank_) * b;
      return {s, out_->wrong([&](std::size_t i) { return value(static_cast<int>(i / b), mine + i % b); })};
    }
    if (name == "gather") {
      const double s = time(r, [&](int c) { library_.gather(in, b, out, rooted(note(c))); });
      return {s, rooted(last) != rank_ ? 0 : out_->wrong([&](std::size_t i) {
                return value(static_cast<int>(i / b), i % b);
              })};
    }
    if (name == "scatter") {
      const double s = time(r, [&](int c) { library_.scatter(in, b, out, rooted(note(c))); });
      const std::size_t mine = static_cast<std::size_t>(rank_) * b;
      return {s, out_->wrong([&](std::size_t i) { return value(rooted(last), mine + i); })};
    }
    if (name == "scan") {
      const double s = time(r, [&](int) { library_.scan(in, out, n, op); });
      return {s, out_->wrong([&](std::size_t i) { return sum_of_values(rank_ + 1, i); })};
    }
    if (name == "barrier") return {time(r, [&](int) { library_.barrier(); }), 0};
    if (name == "latency") return latency(r, in, out, n);
    if (name == "bandwidth") return bandwidth(r, in, out, n);
    throw unsupported("no operation " + name);
  }

 private:
  using clock = std::chrono::steady_clock;

  void prepare(const request& r) {
    const auto ranks = static_cast<std::size_t>(size_);
    const std::string& name = r.operation;
    const bool gathers = name == "all_gather" || name == "gather";
    const bool scatters = name == "reduce_scatter" || name == "scatter";
    const bool blocks = gathers || scatters || name == "all_to_all";
    if (name != cell_.operation || r.bytes != cell_.bytes || in_ == nullptr) {
      // No rank may still be in a call with what goes now.
      library_.barrier();
      kept_.clear();
      in_.reset(), out_.reset();
      whole_ = r.bytes / sizeof(T);
      block_ = whole_ / ranks == 0 ? 1 : whole_ / ranks;
      if (blocks) whole_ = block_ * ranks;
      in_ = std::make_unique<buffer<T>>(gathers ? block_ : whole_);
      out_ = std::make_unique<buffer<T>>(scatters ? block_ : whole_);
      in_->fill(rank_);
      kept_.push_back(library_.keep(in_->data(), in_->count()));
      kept_.push_back(library_.keep(out_->data(), out_->count()));
      cell_ = r;
    }
    out_->spoil();
  }

  template <class Call>
  double time(const request& r, const Call& call) {
    library_.barrier();
    for (int c = 0; c < r.warm; ++c) call(c);
    library_.barrier();
    double seconds = 0;
    if (renews_ && in_->bytes() >= long_bytes) {
      for (int c = 0; c < r.calls; ++c) {
        in_->renew();
        if (shares_processors_ && in_->bytes() >= far_longer_bytes) library_.barrier();
        const auto start = clock::now();
        call(c);
        seconds += std::chrono::duration<double>(clock::now() - start).count();
      }
    } else {
      const auto start = clock::now();
      for (int c = 0; c < r.calls; ++c) {
        if (renews_) in_->renew();
        call(c);
      }
      seconds = std::chrono::duration<double>(clock::now() - start).count();
    }
    // Who is done first stays in the library: Open MPI's shared memory may need the receiver's calls to end a send.
    library_.barrier();
    return seconds;
  }

  /// Half a round trip between ranks 0 and 1; the others wait in the barrier.
  outcome latency(const request& r, T* in, T* out, std::size_t n) {
    if (rank_ > 1) return {time(r, [](int) {}), 0};
    const double s = time(r, [&](int) {
      if (rank_ == 0) {
        library_.send(in, n, 1);
        library_.receive(out, n, 1);
      } else {
        library_.receive(out, n, 0);
        library_.send(in, n, 0);
      }
    });
    return {s / 2, out_->wrong([&](std::size_t i) { return value(1 - rank_, i); })};
  }

  /// One way, a window of messages in flight and then an answer: the time of a message.
  outcome bandwidth(const request& r, T* in, T* out, std::size_t n) {
    if (rank_ > 1) return {time(r, [](int) {}), 0};
    int window = 64;
    while (window > 2 && static_cast<std::size_t>(window) * r.bytes > (std::size_t{64} << 20)) window /= 2;
    T answer{};
    const double s = time(r, [&](int) {
      if (rank_ == 0) {
        library_.send_window(in, n, 1, window);
        library_.receive(&answer, 1, 1);
      } else {
        library_.receive_window(out, n, 0, window);
        library_.send(in, 1, 0);
      }
    });
    return {s / window, rank_ == 0 ? 0 : out_->wrong([&](std::size_t i) { return value(0, i); })};
  }

  /// From here on writing the input is not counted. Below, it takes less than the clock.
  static constexpr std::size_t long_bytes = 4096;
  /// From here on no rank writes its input while another, on the same processor, has begun the call and waits: that would be
  /// counted.
  static constexpr std::size_t far_longer_bytes = std::size_t{256} << 10;

  Library& library_;
  int rank_, size_;
  /// A program has computed what it gives since it gave the last: the lines are its own core's. What is given again unchanged
  /// lies in the caches of who has read it, which only those who copy in between do not profit from.
  bool renews_ = std::getenv("MEASURE_UNCHANGED") == nullptr;
  bool shares_processors_ = static_cast<unsigned>(size_) > std::thread::hardware_concurrency();
  std::size_t whole_ = 0, block_ = 0;
  request cell_{};
  std::unique_ptr<buffer<T>> in_{}, out_{};
  std::vector<std::shared_ptr<void>> kept_{};  // what a library wants to have as long as it uses them
};

/// Answers requests until there are no more.
template <class Sum, class Library>
int serve(Library& library) {
  control asked(library.rank());
  bench<Library, float> floats(library);
  bench<Library, bfloat16> shorts(library);
  for (request r; asked.next(r);) {
    try {
      const bool user = r.functor == "user";
      outcome o;
      if (r.type == "bfloat16") o = user ? shorts.run(r, user_sum{}) : shorts.run(r, Sum{});
      else o = user ? floats.run(r, user_sum{}) : floats.run(r, Sum{});
      char text[64];
      std::snprintf(text, sizeof text, "time %.9f %ld", o.seconds, o.wrong);
      asked.say(text);
    } catch (const unsupported& what) {
      asked.say(std::string("unsupported ") + what.what());
    }
  }
  return 0;
}

}  // namespace measure
