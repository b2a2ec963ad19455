// SPDX-License-Identifier: BSL-1.0
// data_parallel_training on GPUs: the same model and data, with kernels of its own, and the gradients summed on the device.
// A step of all its kernels and collectives is captured in a graph once and launched as often as there are batches; the
// host waits at the end of an epoch.
// adds: graphs around collectives, and ranks of one process that share a GPU beside ranks with a GPU each.
//
//   nvcc -std=c++20 -arch=sm_90 --expt-relaxed-constexpr -I include examples/gpu_data_parallel_training.cu
//        examples/training/*.cpp -lnccl -o gpu_training
//   ./gpu_training --local-ranks 4 --plot loss.png    # four ranks of one process on one GPU
//   cohort run -n 4 -- ./gpu_training --meeting /tmp/new_file      # one rank a GPU, by NCCL
#include "training/digits.hpp"
#include "training/fashion_mnist.hpp"
#include "training/gpu_replica.hpp"
#include "training/mlp.hpp"
#include "training/options.hpp"
#include "training/plot.hpp"
#include "training/progress.hpp"

#include <cohort/backend/nccl.hpp>
#include <cohort/gpu/fold.cuh>
#include <cohort/gpu/local_ranks.hpp>
#include <cohort/launch.hpp>
#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <unistd.h>

namespace {

using namespace training;
using cohort::detail::check_cuda;

struct device_memory {
  template <class T>
  using buffer = cohort::device_buffer<T>;
  template <class T>
  static void copy(std::span<const T> from, buffer<T>& to) {
    check_cuda(cudaMemcpy(to.data(), from.data(), from.size_bytes(), cudaMemcpyHostToDevice), "cudaMemcpy");
    // It may come back before the device has the data, and the streams here do not wait for the default stream.
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
  }
};
using replica = gpu::replica<device_memory>;

/// One number for each thread.
template <class Element>
__global__ void each(Element element, std::size_t count) {
  const std::size_t i = static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) element(i);
}
struct run_on {
  cudaStream_t stream;
  template <class Element>
  void operator()(std::size_t count, const Element& element) const {
    constexpr unsigned threads = 128;
    each<<<static_cast<unsigned>((count + threads - 1) / threads), threads, 0, stream>>>(element, count);
    check_cuda(cudaGetLastError(), "a kernel of the model");
  }
};

/// Ranks of this process, which share its GPU.
class ranks_here {
 public:
  explicit ranks_here(int n) : ranks_(n) {}
  [[nodiscard]] int size() const { return ranks_.size(); }
  [[nodiscard]] int first() const { return 0; }
  [[nodiscard]] int count() const { return ranks_.size(); }
  [[nodiscard]] cudaStream_t stream_of(int mine) const { return ranks_.stream_of(mine); }
  void sum(const std::vector<cohort::device_span<float>>& all) const { ranks_.all_reduce<float>(all, cohort::sum{}); }
  void from_first(const std::vector<cohort::device_span<float>>& all) const {
    ranks_.broadcast<float>(all, cohort::root{0});
  }
  /// What a graph on the first stream does comes after what is on all of them, and before what will be.
  void fork() const { ranks_.follow(0); }
  void join() const { ranks_.barrier(); }
  void wait() const { ranks_.synchronize(); }

 private:
  cohort::local_ranks ranks_;
};

/// This process's rank of a world with a GPU each.
class rank_of_world {
 public:
  explicit rank_of_world(cohort::communicator<cohort::nccl> world) : world_(std::move(world)) {}
  [[nodiscard]] int size() const { return world_.size(); }
  [[nodiscard]] int first() const { return world_.rank(); }
  [[nodiscard]] int count() const { return 1; }
  [[nodiscard]] cudaStream_t stream_of(int) const { return stream_.get(); }
  void sum(const std::vector<cohort::device_span<float>>& all) const {
    static_cast<void>(world_.all_reduce(all[0], cohort::sum{}, cohort::on{stream_}));
  }
  void from_first(const std::vector<cohort::device_span<float>>& all) const {
    static_cast<void>(world_.broadcast(all[0], cohort::root{0}, cohort::on{stream_}));
  }
  void fork() const {}
  void join() const {}
  void wait() const { cohort::on_host(world_.enqueued(cohort::on{stream_})).wait(); }

 private:
  cohort::communicator<cohort::nccl> world_;
  cohort::stream stream_{};
};

/// What was captured, to be launched as often as is wanted.
class graph {
 public:
  template <class Step>
  graph(cudaStream_t s, const Step& step) {
    check_cuda(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    step();
    cudaGraph_t captured = nullptr;
    check_cuda(cudaStreamEndCapture(s, &captured), "cudaStreamEndCapture");
    const cudaError_t code = cudaGraphInstantiate(&ready_, captured, 0);
    static_cast<void>(cudaGraphDestroy(captured));
    check_cuda(code, "cudaGraphInstantiate");
  }
  graph(const graph&) = delete;
  graph& operator=(const graph&) = delete;
  ~graph() { static_cast<void>(cudaGraphExecDestroy(ready_)); }
  void launch(cudaStream_t s) const { check_cuda(cudaGraphLaunch(ready_, s), "cudaGraphLaunch"); }

 private:
  cudaGraphExec_t ready_ = nullptr;
};

template <class World>
class trainer {
 public:
  trainer(const World& world, const options& chosen, const split_dataset& data) : world_(&world), chosen_(&chosen) {
    std::vector<std::size_t> widths{data.train.features};
    widths.insert(widths.end(), chosen.hidden.begin(), chosen.hidden.end());
    widths.push_back(data.train.classes);
    mlp start(widths);
    if (world.first() == 0) start.initialise(chosen.seed);
    std::vector<float> weights;
    for (std::size_t k = 0; k < start.layers(); ++k) {
      const std::span<const float> of_layer = start.parameters(k);
      weights.insert(weights.end(), of_layer.begin(), of_layer.end());
    }
    for (int mine = 0; mine < world.count(); ++mine) {
      replicas_.emplace_back(data, widths, chosen.batch, world.first() + mine, world.size());
    }
    device_memory::copy(std::span<const float>(weights), replicas_[0].parameters());
    world.from_first(spans(&replica::parameters));
  }

  /// Result: loss and images named rightly, of all ranks together
  std::pair<double, double> epoch(std::span<const std::uint32_t> order) {
    world_->wait();
    for (replica& r : replicas_) r.begin_epoch(order);
    std::size_t step = 0;
    if (!captured_) {
      // Once as it is: the first launch of a kernel and the first use of a collective may do what a graph cannot hold.
      one_step();
      ++step;
      captured_.emplace(world_->stream_of(0), [&] {
        world_->fork();
        one_step();
      });
    }
    world_->join();
    for (; step < replicas_[0].steps(); ++step) captured_->launch(world_->stream_of(0));
    world_->fork();
    for (int mine = 0; mine < world_->count(); ++mine) rank(mine).try_test(run_on{world_->stream_of(mine)});
    world_->sum(spans(&replica::totals));
    float totals[2] = {};
    cohort::copy_to_host(replicas_[0].totals().device_view(), std::span<float>(totals), world_->stream_of(0));
    world_->wait();
    return {totals[0], totals[1]};
  }

 private:
  [[nodiscard]] replica& rank(int mine) { return replicas_[static_cast<std::size_t>(mine)]; }
  [[nodiscard]] std::vector<cohort::device_span<float>> spans(cohort::device_buffer<float>& (replica::*of)()) {
    std::vector<cohort::device_span<float>> all;
    for (replica& r : replicas_) all.push_back((r.*of)().device_view());
    return all;
  }
  void one_step() {
    for (int mine = 0; mine < world_->count(); ++mine) rank(mine).find_gradient(run_on{world_->stream_of(mine)});
    world_->sum(spans(&replica::gradient));
    for (int mine = 0; mine < world_->count(); ++mine) {
      rank(mine).descend(run_on{world_->stream_of(mine)}, chosen_->learning_rate, chosen_->momentum);
    }
    world_->join();
  }

  const World* world_;
  const options* chosen_;
  std::vector<replica> replicas_{};
  std::optional<graph> captured_{};
};

std::string counted(int n, const std::string& noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

template <class World>
void train(const World& world, const options& chosen) {
  const bool digits = chosen.data == "digits";
  const std::string usual = digits ? default_digits_directory() : default_fashion_mnist_directory;
  const std::string directory = chosen.data_directory.empty() ? usual : chosen.data_directory;
  const split_dataset data = digits ? read_digits(directory) : read_fashion_mnist(directory);
  trainer<World> all(world, chosen, data);

  const auto started = std::chrono::steady_clock::now();
  std::optional<progress> shown;
  if (world.first() == 0 && !chosen.quiet) shown.emplace(stdout, isatty(STDOUT_FILENO) != 0, chosen.epochs);
  std::vector<double> losses;
  std::string csv = "epoch,loss,test_accuracy\n";
  double accuracy = 0;
  for (int epoch = 0; epoch < chosen.epochs; ++epoch) {
    const auto order = permutation(data.train.size(), chosen.seed + 1 + static_cast<std::uint64_t>(epoch));
    const auto [loss, correct] = all.epoch(order);
    losses.push_back(loss / static_cast<double>(data.train.size()));
    accuracy = correct / static_cast<double>(data.test.size());
    if (shown) shown->epoch_done(epoch, losses.back(), accuracy);
    csv += std::to_string(epoch + 1) + ',' + std::to_string(losses.back()) + ',' + std::to_string(accuracy) + '\n';
  }
  if (world.first() != 0) return;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  if (shown) shown->finish();
  const std::string ranks = counted(world.size(), "rank");
  std::printf("test accuracy %.1f %% after %s, loss %.4f, %s, %.1f s\n", 100 * accuracy,
              counted(chosen.epochs, "epoch").c_str(), losses.back(), ranks.c_str(), seconds.count());
  const auto write = [](const std::string& path, const std::string& bytes) {
    if (!path.empty() && !(std::ofstream(path, std::ios::binary) << bytes).flush())
      throw data_error("cannot write " + path);
  };
  write(chosen.loss_csv, csv);
  if (!chosen.plot.empty()) write(chosen.plot, encode_png(plot_loss(losses, chosen.data + " on a GPU, " + ranks)));
}

/// Takes an option with its value out of the arguments.
std::optional<std::string> take(std::vector<std::string>& arguments, const std::string& name) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] != name) continue;
    if (i + 1 == arguments.size()) throw usage_error(name + ": a value is missing");
    const std::string value = arguments[i + 1];
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.begin() + static_cast<std::ptrdiff_t>(i) + 2);
    return value;
  }
  return std::nullopt;
}

int start(std::vector<std::string> arguments) {
  const std::optional<std::string> local = take(arguments, "--local-ranks");
  const std::optional<std::string> meeting = take(arguments, "--meeting");
  const options chosen = parse_options(arguments);
  if (chosen.help) {
    std::printf(
        "%s\nOn GPUs:\n  --local-ranks N   N ranks of this process on one GPU, from 1 to 16\n"
        "  --meeting FILE    where the ranks that a launcher has started meet; must be new\n",
        usage());
    return 0;
  }
  if (local) {
    int n = 0;
    if (std::sscanf(local->c_str(), "%d", &n) != 1 || n < 1 || n > 16) {
      throw usage_error("--local-ranks: found \"" + *local + "\", expected an integer from 1 to 16");
    }
    static_cast<void>(cohort::device_count());  // without a GPU it ends here, and says so
    train(ranks_here(n), chosen);
    return 0;
  }
  const cohort::launch_info me = cohort::launch_from_environment();
  if (me.world_size > 1 && !meeting) throw usage_error("several processes need --meeting FILE, where they meet");
  cohort::any_store store =
      me.world_size > 1 ? cohort::any_store(cohort::file_store(*meeting)) : cohort::any_store(cohort::memory_store());
  auto world = cohort::connect<cohort::nccl>(store, me.rank, me.world_size);
  const cohort::device_scope here(world.on_device());
  train(rank_of_world(std::move(world)), chosen);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return start({argv + 1, argv + argc});
  } catch (const usage_error& e) {
    std::fprintf(stderr, "gpu_data_parallel_training: %s\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "gpu_data_parallel_training: %s\n", e.what());
    return 1;
  }
}
