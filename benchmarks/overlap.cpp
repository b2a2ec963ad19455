// SPDX-License-Identifier: BSL-1.0
// How much of an operation's time a computation beside it hides: 1 - (together - longer) / shorter, where 1 is all of it
// and 0 none. Run by overlap.sh, whose slow link leaves the processors something to do meanwhile.
//   overlap none|poll|thread   the world is moved by nobody while it computes, by poll(), or by a thread of its own
#include <cohort/asio.hpp>
#include <cohort/cohort.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using steady = std::chrono::steady_clock;
using world_type = cohort::communicator<cohort::cpu>;

double seconds_since(steady::time_point start) { return std::chrono::duration<double>(steady::now() - start).count(); }

/// Some 20 us of arithmetic that no compiler can leave out.
double work_unit(double x) {
  for (int i = 0; i < 10000; ++i) x = x * 0.999999 + 1e-6;
  return x;
}

/// A computation of `units`, which calls `between` after each.
void compute(long units, const std::function<void()>& between) {
  volatile double x = 1.5;
  for (long u = 0; u < units; ++u) {
    x = work_unit(x);
    if (between) between();
  }
}

/// One way to have the world moved while this thread computes.
class mover {
 public:
  mover() = default;
  mover(const mover&) = delete;
  mover& operator=(const mover&) = delete;
  virtual ~mover() = default;
  virtual double largest(double value) = 0;  ///< of all ranks, after all of them have come
  virtual void start(std::vector<float>& data) = 0;
  virtual void finish() = 0;
  virtual std::function<void()> between() { return {}; }
  virtual int rank() = 0;
};

class own_thread : public mover {
 public:
  explicit own_thread(bool polls) : world_(cohort::connect<cohort::cpu>()), polls_(polls) {}
  double largest(double value) override { return world_.all_reduce(value, cohort::max{}).wait(); }
  void start(std::vector<float>& data) override { flying_.emplace(world_.all_reduce(data, cohort::sum{})); }
  void finish() override {
    flying_->wait();
    flying_.reset();
  }
  std::function<void()> between() override {
    if (!polls_) return {};
    return [this] { world_.poll(); };
  }
  int rank() override { return world_.rank(); }

 private:
  world_type world_;
  bool polls_;
  std::optional<cohort::operation<>> flying_;
};

/// The world lives on an io_context that another thread runs; calls are made there.
class progress_thread : public mover {
 public:
  progress_thread() : world_(cohort::connect<cohort::cpu>(io_, cohort::options_from_environment())) {
    rank_ = world_->rank();
    runner_ = std::thread([this] { io_.run(); });
  }
  ~progress_thread() override {
    boost::asio::post(io_, [this] { world_.reset(); });
    runner_.join();
  }
  double largest(double value) override {
    std::promise<double> found;
    boost::asio::post(io_, [&] {
      world_->all_reduce(value, cohort::max{})([&](std::exception_ptr failure, double most) {
        if (failure) found.set_exception(failure);
        else found.set_value(most);
      });
    });
    return found.get_future().get();
  }
  void start(std::vector<float>& data) override {
    done_ = std::promise<void>{};
    boost::asio::post(io_, [this, &data] {
      world_->all_reduce(data, cohort::sum{})([this](std::exception_ptr failure) {
        if (failure) done_.set_exception(failure);
        else done_.set_value();
      });
    });
  }
  void finish() override { done_.get_future().get(); }
  int rank() override { return rank_; }

 private:
  boost::asio::io_context io_;
  std::optional<world_type> world_;
  std::thread runner_;
  std::promise<void> done_;
  int rank_ = -1;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(mover& m, const std::string& mode, std::size_t bytes) {
  constexpr int rounds = 5;
  std::vector<float> data(bytes / sizeof(float), 0.0f);
  const auto timed = [&](const std::function<void()>& f) {
    m.largest(0);  // begin together
    const auto start = steady::now();
    f();
    return m.largest(seconds_since(start));
  };
  const auto communicate = [&] {
    m.start(data);
    m.finish();
  };
  for (int warm = 0; warm < 2; ++warm) timed(communicate);
  std::vector<double> alone;
  for (int r = 0; r < rounds; ++r) alone.push_back(timed(communicate));
  const double communication = median(alone);
  // As long a computation as the operation is, on every rank the same number of units.
  std::vector<double> hundreds;
  for (int r = 0; r < 11; ++r) hundreds.push_back(timed([&] { compute(100, m.between()); }));
  const double unit = median(hundreds) / 100;
  const long units = std::max(1L, static_cast<long>(communication / unit));
  std::vector<double> computing, both;
  for (int r = 0; r < rounds; ++r) {
    computing.push_back(timed([&] { compute(units, m.between()); }));
    both.push_back(timed([&] {
      m.start(data);
      compute(units, m.between());
      m.finish();
    }));
  }
  const double computation = median(computing), together = median(both);
  const double longer = std::max(communication, computation), shorter = std::min(communication, computation);
  if (m.rank() == 0) {
    std::printf("| %s | %zu KiB | %.3f | %.3f | %.3f | %.0f %% |\n", mode.c_str(), bytes / 1024, communication * 1e3,
                computation * 1e3, together * 1e3, 100 * (1 - (together - longer) / shorter));
    std::fflush(stdout);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc == 2 ? argv[1] : "";
  if (mode != "none" && mode != "poll" && mode != "thread") {
    std::fprintf(stderr, "overlap: expected one word, none, poll or thread; overlap.sh starts it with each\n");
    return 2;
  }
  try {
    std::unique_ptr<mover> m;
    if (mode == "thread") m = std::make_unique<progress_thread>();
    else m = std::make_unique<own_thread>(mode == "poll");
    for (const std::size_t kib : {256U, 1024U, 8192U}) measure(*m, mode, kib * 1024);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "overlap: %s\n", error.what());
    return 1;
  }
}
