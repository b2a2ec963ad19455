// SPDX-License-Identifier: BSL-1.0
// Data-parallel training of a multilayer perceptron. Every rank holds the same weights and works on its part of each
// batch; the gradients are added up over the ranks, so that all take the same step.
// adds: broadcast, overlapped all_reduce of the gradients and an agreed end, in a program that learns something.
//
//   cohort run -n 4 data_parallel_training --plot loss.png
#include "training/digits.hpp"
#include "training/fashion_mnist.hpp"
#include "training/mlp.hpp"
#include "training/options.hpp"
#include "training/plot.hpp"
#include "training/progress.hpp"

#include <cohort/cohort.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

namespace {

using namespace training;
using world_type = cohort::communicator<cohort::cpu>;

// What a rank can fail at alone: its command line and its files.
struct setup {
  options chosen{};
  split_dataset data{};
  std::ofstream loss_csv{};  // open on rank 0 alone, and only where it was asked for
  std::ofstream plot{};
  std::string problem{};
  int exit_code = 0;
};

std::ofstream open_output(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file) throw data_error("cannot write " + path + ": " + std::strerror(errno));
  file.precision(12);
  return file;
}

setup prepare(std::span<const std::string> arguments, bool writes_files) {
  setup out;
  try {
    out.chosen = parse_options(arguments);
    const options& chosen = out.chosen;
    if (chosen.help) return out;
    const bool digits = chosen.data == "digits";
    const std::string usual = digits ? default_digits_directory() : default_fashion_mnist_directory;
    const std::string directory = chosen.data_directory.empty() ? usual : chosen.data_directory;
    out.data = digits ? read_digits(directory) : read_fashion_mnist(directory);
    if (writes_files && !chosen.loss_csv.empty()) out.loss_csv = open_output(chosen.loss_csv);
    if (writes_files && !chosen.plot.empty()) out.plot = open_output(chosen.plot);
  } catch (const usage_error& e) {
    out.problem = e.what();
    out.exit_code = 2;
  } catch (const data_error& e) {
    out.problem = e.what();
    out.exit_code = 1;
  }
  return out;
}

// Forward and backward for this rank's part of one batch, and one step with the gradient of all of it. The all_reduce
// of a layer is in flight while the gradient of the layer before it is computed.
// Result: the sum of the losses of this rank's part
cohort::task<double> train_batch(world_type& world, mlp& net, const options& chosen, const dataset& data,
                                 std::span<const std::uint32_t> batch) {
  const double loss = net.forward(data, shard(batch, world.rank(), world.size()));

  using reduction = decltype(world.all_reduce(net.gradient(0), cohort::sum{}));
  std::vector<reduction> in_flight;
  in_flight.reserve(net.layers());
  for (std::size_t k = net.layers(); k-- > 0;) {
    net.backward(k);
    in_flight.push_back(world.all_reduce(net.gradient(k), cohort::sum{}));
    world.poll();  // nothing waits here, so this is what moves the gradients of the layers above meanwhile
  }
  const float scale = 1.0f / static_cast<float>(batch.size());
  for (std::size_t i = 0; i < in_flight.size(); ++i) {
    co_await in_flight[i];
    net.step(net.layers() - 1 - i, scale, chosen.learning_rate, chosen.momentum);
  }
  co_return loss;
}

// Result: the part of the test images, over all ranks, that the model names rightly; each rank tries its share
cohort::task<double> test_accuracy(world_type& world, mlp& net, const dataset& test) {
  const std::vector<std::uint32_t> order = permutation(test.size(), 0);
  const auto correct = static_cast<double>(net.count_correct(test, shard(order, world.rank(), world.size())));
  const double total = co_await world.all_reduce(correct, cohort::sum{});
  co_return total / static_cast<double>(test.size());
}

std::string counted(int n, const std::string& noun) { return std::to_string(n) + " " + noun + (n == 1 ? "" : "s"); }

std::string percent(double part) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f %%", 100 * part);
  return text.data();
}

// Result: the exit code of rank 0
int write_files(setup& mine, std::span<const double> losses, const std::string& title) {
  const options& chosen = mine.chosen;
  if (!chosen.plot.empty()) mine.plot << encode_png(plot_loss(losses, title)) << std::flush;
  if (!chosen.loss_csv.empty()) mine.loss_csv.flush();
  for (const auto& [file, path] : {std::pair(&mine.plot, &chosen.plot), std::pair(&mine.loss_csv, &chosen.loss_csv)}) {
    if (path->empty() || *file) continue;
    std::fprintf(stderr, "data_parallel_training: cannot write %s: %s\n", path->c_str(), std::strerror(errno));
    return 1;
  }
  return 0;
}

struct program {
  std::vector<std::string> arguments;

  cohort::task<int> operator()(world_type world) const {
    setup mine = prepare(arguments, world.rank() == 0);
    const options& chosen = mine.chosen;
    if (chosen.help) {
      if (world.rank() == 0) std::fputs(usage(), stdout);
      co_return 0;
    }
    // One rank that cannot start must not leave the others waiting: all learn of it, and the first one speaks.
    const int claim = mine.problem.empty() ? world.size() : world.rank();
    const int first_failed = co_await world.all_reduce(claim, cohort::min{});
    if (first_failed < world.size()) {
      if (first_failed == world.rank()) std::fprintf(stderr, "data_parallel_training: %s\n", mine.problem.c_str());
      co_return mine.problem.empty() ? 1 : mine.exit_code;
    }

    const dataset& train = mine.data.train;
    std::vector<std::size_t> widths{train.features};
    widths.insert(widths.end(), chosen.hidden.begin(), chosen.hidden.end());
    widths.push_back(train.classes);
    mlp net(widths);
    if (world.rank() == 0) net.initialise(chosen.seed);
    for (std::size_t k = 0; k < net.layers(); ++k) co_await world.broadcast(net.parameters(k), cohort::root{0});

    const auto started = std::chrono::steady_clock::now();
    std::optional<progress> shown;
    if (world.rank() == 0 && !chosen.quiet) shown.emplace(stdout, isatty(STDOUT_FILENO) != 0, chosen.epochs);
    mine.loss_csv << "epoch,loss,test_accuracy\n";

    std::vector<double> losses;
    double accuracy = 0;
    for (int epoch = 0; epoch < chosen.epochs; ++epoch) {
      // The same order on every rank, and so the same batches whatever the number of ranks.
      const auto order = permutation(train.size(), chosen.seed + 1 + static_cast<std::uint64_t>(epoch));
      const std::span<const std::uint32_t> samples(order);
      double loss = 0;
      for (std::size_t first = 0; first < samples.size(); first += chosen.batch) {
        const auto batch = samples.subspan(first, std::min(chosen.batch, samples.size() - first));
        loss += co_await train_batch(world, net, chosen, train, batch);
        if (shown) shown->within_epoch(epoch, static_cast<double>(first) / static_cast<double>(samples.size()));
      }
      const double total_loss = co_await world.all_reduce(loss, cohort::sum{});
      losses.push_back(total_loss / static_cast<double>(train.size()));
      accuracy = co_await test_accuracy(world, net, mine.data.test);
      if (shown) shown->epoch_done(epoch, losses.back(), accuracy);
      mine.loss_csv << epoch + 1 << ',' << losses.back() << ',' << accuracy << '\n';
    }
    if (world.rank() != 0) co_return 0;

    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
    const std::string ranks = counted(world.size(), "rank");
    const std::string epochs = counted(chosen.epochs, "epoch");
    if (shown) shown->finish();
    std::printf("test accuracy %s after %s, loss %.4f, %s, %.1f s\n", percent(accuracy).c_str(), epochs.c_str(),
                losses.back(), ranks.c_str(), seconds.count());
    co_return write_files(mine, losses, chosen.data + ", " + ranks + ": test accuracy " + percent(accuracy));
  }
};

}  // namespace

int main(int argc, char** argv) {
  const program train{{argv + 1, argv + argc}};
  return cohort::run(train);
}
