// SPDX-License-Identifier: BSL-1.0
// The example program that trains a model, as a user starts it: the same training on 1, 2 and 4 processes, what it
// writes, what it says of wrong options and files, and what becomes of it when one of its processes is killed. And its
// back-propagation, against differences of the loss.
// Needs: COHORT_EXAMPLES_DIR, the folder of the built examples, and COHORT_TOOL, the built launcher.
#include "../../examples/training/mlp.cpp"
#include "../support/child_process.hpp"
#include "../support/free_port.hpp"
#include "../support/rank_body.hpp"

#include <doctest/doctest.h>

#include <boost/crc.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

// A folder of this test's own, removed with everything in it.
class scratch {
 public:
  scratch() {
    std::string name = (fs::temp_directory_path() / "cohort-training-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

std::string quoted(const std::string& word) {
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  REQUIRE_MESSAGE(value != nullptr, std::string(name) << " must be set: ctest sets it");
  return value;
}

std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file, "cannot open " << path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct outcome {
  int exit_code = -1;
  std::string out{};
  std::string err{};
};

// ranks == 0: without a launcher. The two minutes only guard against a hang.
outcome train(int ranks, const std::vector<std::string>& arguments) {
  const scratch here;
  std::string command = "timeout 120 ";
  if (ranks > 0) command += quoted(from_environment("COHORT_TOOL")) + " run -n " + std::to_string(ranks) + " ";
  command += quoted(from_environment("COHORT_EXAMPLES_DIR") + "/data_parallel_training");
  for (const std::string& argument : arguments) command += " " + quoted(argument);
  command += " >" + quoted(here.file("out")) + " 2>" + quoted(here.file("err"));
  const int status = std::system(command.c_str());
  REQUIRE(WIFEXITED(status));
  return {WEXITSTATUS(status), content_of(here.file("out")), content_of(here.file("err"))};
}

struct curve {
  std::vector<double> loss{};
  double accuracy = 0;
};

curve read_curve(const std::string& path) {
  std::istringstream text(content_of(path));
  std::string line;
  std::getline(text, line);
  REQUIRE(line == "epoch,loss,test_accuracy");
  curve read;
  std::size_t epoch = 0;
  double loss = 0;
  char comma = 0;
  while (text >> epoch >> comma >> loss >> comma >> read.accuracy) {
    REQUIRE(epoch == read.loss.size() + 1);
    read.loss.push_back(loss);
  }
  REQUIRE(text.eof());
  return read;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// One rank of a world that the test starts itself, so that it knows which process is which rank.
harness::child_process train_as(int rank, int ranks, int port, int out, const std::string& err, const char* epochs) {
  const std::string program = from_environment("COHORT_EXAMPLES_DIR") + "/data_parallel_training";
  return harness::child_process([&] {
    harness::detail::set_variables(rank, ranks, port, {});
    const int log = ::open(err.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (log < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(log, STDERR_FILENO) < 0) return 126;
    ::execl(program.c_str(), program.c_str(), "--epochs", epochs, static_cast<char*>(nullptr));
    std::perror(program.c_str());
    return 127;
  });
}

// Result: what came up to `part`, to the end, or until a minute passed with nothing new; "" as `part`: to the end
std::string read_until(int fd, const std::string& part) {
  std::string text;
  pollfd readable{fd, POLLIN, 0};
  while ((part.empty() || text.find(part) == std::string::npos) && ::poll(&readable, 1, 60000) == 1) {
    std::array<char, 256> some;
    const ssize_t got = ::read(fd, some.data(), some.size());
    if (got <= 0) break;
    text.append(some.data(), static_cast<std::size_t>(got));
  }
  return text;
}

training::dataset random_images(std::size_t count) {
  training::random_numbers random(7);
  training::dataset data{12, 4};
  for (std::size_t i = 0; i < count * data.features; ++i) data.pixels.push_back(static_cast<float>(random.uniform()));
  for (std::size_t i = 0; i < count; ++i) data.labels.push_back(static_cast<std::uint8_t>(random.below(4)));
  return data;
}

constexpr std::size_t small_widths[] = {12, 9, 7, 4};

void back_propagate(training::mlp& net, const training::dataset& data, std::span<const std::uint32_t> samples) {
  net.forward(data, samples);
  for (std::size_t k = net.layers(); k-- > 0;) net.backward(k);
}

}  // namespace

TEST_CASE("training: the gradient is the slope of the loss") {
  const training::dataset data = random_images(20);
  const auto samples = training::permutation(data.size(), 1);
  training::mlp net(small_widths);
  net.initialise(3);
  back_propagate(net, data, samples);
  for (std::size_t k = 0; k < net.layers(); ++k) {
    CAPTURE(k);
    double difference = 0;
    double norm = 0;
    for (std::size_t i = 0; i < net.gradient(k).size(); ++i) {
      constexpr float step = 0.01f;
      float& weight = net.parameters(k)[i];
      const float middle = weight;
      weight = middle + step;
      const double above = net.forward(data, samples);
      weight = middle - step;
      const double below = net.forward(data, samples);
      weight = middle;
      const double slope = (above - below) / (2.0 * static_cast<double>(step));
      difference += std::pow(slope - static_cast<double>(net.gradient(k)[i]), 2);
      norm += slope * slope;
    }
    CHECK(norm > 0.1);
    CHECK(std::sqrt(difference / norm) < 1e-3);
  }
}

TEST_CASE("training: the gradients of the shards add up to the gradient of the batch") {
  const training::dataset data = random_images(5);
  const auto samples = training::permutation(data.size(), 1);
  for (const int ranks : {1, 2, 3, 5, 8}) {
    CAPTURE(ranks);
    training::mlp whole(small_widths);
    whole.initialise(3);
    back_propagate(whole, data, samples);
    std::vector<std::vector<double>> sums;
    std::size_t seen = 0;
    for (std::size_t k = 0; k < whole.layers(); ++k) sums.emplace_back(whole.gradient(k).size());
    for (int rank = 0; rank < ranks; ++rank) {
      training::mlp part(small_widths);
      part.initialise(3);
      const auto mine = training::shard(samples, rank, ranks);
      seen += mine.size();
      back_propagate(part, data, mine);
      for (std::size_t k = 0; k < part.layers(); ++k) {
        for (std::size_t i = 0; i < sums[k].size(); ++i) sums[k][i] += static_cast<double>(part.gradient(k)[i]);
      }
    }
    CHECK(seen == samples.size());
    for (std::size_t k = 0; k < whole.layers(); ++k) {
      for (std::size_t i = 0; i < sums[k].size(); ++i) {
        REQUIRE(sums[k][i] == doctest::Approx(static_cast<double>(whole.gradient(k)[i])).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("training: 1, 2 and 4 processes learn the same, and it is worth learning") {
  const scratch here;
  std::vector<curve> curves;
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    const outcome run = train(ranks, {"--loss-csv", here.file("loss.csv"), "--quiet"});
    CAPTURE(run.err);
    REQUIRE(run.exit_code == 0);
    curves.push_back(read_curve(here.file("loss.csv")));
    const std::string expected = "after 30 epochs, loss 0.0";
    const std::string world = std::to_string(ranks) + (ranks == 1 ? " rank, " : " ranks, ");
    CHECK(occurrences(run.out, "test accuracy") == 1);
    CHECK(occurrences(run.out, expected) == 1);
    CHECK(occurrences(run.out, world) == 1);
  }
  for (const curve& c : curves) {
    REQUIRE(c.loss.size() == 30);
    CHECK(c.accuracy >= 0.95);
    CHECK(c.loss.front() > 1.0);
    CHECK(c.loss.back() < 0.05);
  }
  double furthest = 0;
  for (std::size_t i = 0; i < 30; ++i) {
    for (const curve& c : curves) {
      furthest = std::max(furthest, std::abs(c.loss[i] - curves[0].loss[i]) / curves[0].loss[i]);
    }
  }
  MESSAGE("largest relative difference of the loss of an epoch: " << furthest);
  CHECK(furthest < 1e-5);
}

TEST_CASE("training: a batch smaller than the world leaves some ranks without images, and the same training") {
  const scratch here;
  const std::vector<std::string> options{"--batch", "3",       "--epochs", "1",      "--hidden",
                                         "8",       "--quiet", "--loss-csv", here.file("loss.csv")};
  REQUIRE(train(0, options).exit_code == 0);
  const curve alone = read_curve(here.file("loss.csv"));
  REQUIRE(train(4, options).exit_code == 0);
  const curve together = read_curve(here.file("loss.csv"));
  REQUIRE(alone.loss.size() == 1);
  REQUIRE(together.loss.size() == 1);
  CHECK(together.loss[0] == doctest::Approx(alone.loss[0]).epsilon(1e-5));
}

TEST_CASE("training: it says each epoch and draws the curve") {
  const scratch here;
  const outcome run = train(0, {"--epochs=3", "--plot", here.file("loss.png")});
  REQUIRE(run.exit_code == 0);
  for (const char* line : {"epoch 1/3  loss ", "epoch 2/3  loss ", "epoch 3/3  loss "}) {
    CHECK(occurrences(run.out, line) == 1);
  }
  CHECK(run.err == "");

  const std::string png = content_of(here.file("loss.png"));
  REQUIRE(png.size() > 8);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  const auto number_at = [&](std::size_t at) {
    REQUIRE(at + 4 <= png.size());
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) value = value << 8 | static_cast<unsigned char>(png[i]);
    return value;
  };
  std::string chunks;
  for (std::size_t at = 8; at < png.size();) {
    const std::size_t length = number_at(at);
    REQUIRE(at + 12 + length <= png.size());
    boost::crc_32_type crc;
    crc.process_bytes(png.data() + at + 4, length + 4);
    CHECK(crc.checksum() == number_at(at + 8 + length));
    chunks += png.substr(at + 4, 4) + " ";
    at += 12 + length;
  }
  CHECK(chunks == "IHDR IDAT IEND ");
  CHECK(number_at(16) == 800);
  CHECK(number_at(20) == 480);
}

TEST_CASE("training: on a terminal the bar stays within one line") {
  constexpr unsigned short width = 80;
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(terminal >= 0);
  REQUIRE(::grantpt(terminal) == 0);
  REQUIRE(::unlockpt(terminal) == 0);
  const winsize size{24, width, 0, 0};
  REQUIRE(::ioctl(terminal, TIOCSWINSZ, &size) == 0);
  const int program_side = ::open(::ptsname(terminal), O_RDWR | O_NOCTTY | O_CLOEXEC);
  REQUIRE(program_side >= 0);
  const scratch here;
  harness::child_process process = train_as(0, 1, harness::free_port(), program_side, here.file("err"), "3");
  ::close(program_side);
  const std::string shown = read_until(terminal, "");
  CHECK(process.wait() == 0);
  ::close(terminal);

  const std::string redraw = "\r\x1b[K";
  std::vector<std::string> lines;
  for (std::size_t at = shown.find(redraw); at != std::string::npos;) {
    const std::size_t next = shown.find(redraw, at + 1);
    lines.push_back(shown.substr(at + redraw.size(), std::min(next, shown.size()) - at - redraw.size()));
    at = next;
  }
  CAPTURE(shown);
  REQUIRE(lines.size() >= 4);
  CHECK(occurrences(lines[lines.size() - 2], "epoch 3/3 [") == 1);
  CHECK(occurrences(lines.back(), "test accuracy") == 1);
  CHECK(occurrences(lines.back(), "\n") == 1);
  lines.pop_back();
  for (const std::string& line : lines) {
    CHECK(line.size() < width);
    CHECK(occurrences(line, "\n") == 0);
  }
}

TEST_CASE("training: a wrong option is named, with the nearest right one") {
  struct example {
    std::vector<std::string> arguments;
    const char* message;
  };
  const example examples[] = {
      {{"--epoch", "3"}, "unknown option --epoch; did you mean --epochs? (--help lists them)"},
      {{"--xyzzy"}, "unknown option --xyzzy (--help lists them)"},
      {{"--epochs", "ten"}, "--epochs: found \"ten\", expected an integer from 1 to 1000000"},
      {{"--lr=-1"}, "--lr: found \"-1\", expected a number from 1e-09 to 1000"},
      {{"--hidden", "8,,8"}, "--hidden: found \"\", expected an integer from 1 to 65536"},
      {{"--data", "digit"}, "--data: found \"digit\", expected digits or fashion-mnist; did you mean digits?"},
      {{"--batch"}, "--batch: a value is missing"},
      {{"--quiet=yes"}, "--quiet: takes no value"},
  };
  for (const example& e : examples) {
    const outcome run = train(0, e.arguments);
    CHECK(run.exit_code == 2);
    CHECK(run.out == "");
    CHECK(run.err == std::string("data_parallel_training: ") + e.message + "\n");
  }
  const outcome help = train(0, {"--help"});
  CHECK(help.exit_code == 0);
  CHECK(occurrences(help.out, "--loss-csv FILE") == 1);
}

/// What the ranks wrote: the launcher quotes the one whose end it sees first, between lines that begin with |.
std::string said_by_ranks(const outcome& result) {
  std::istringstream lines(result.out + "\n" + result.err);
  std::string said;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("|")) said += line + "\n";
  }
  return said;
}

TEST_CASE("training: four processes say once what is wrong") {
  const outcome option = train(4, {"--epoch", "3"});
  CHECK(option.exit_code != 0);
  CHECK(occurrences(said_by_ranks(option), "did you mean --epochs?") == 1);
  const outcome data = train(4, {"--data-dir", "no-such-folder"});
  CHECK(data.exit_code != 0);
  CHECK(occurrences(said_by_ranks(data), "cannot open no-such-folder/digits.csv: No such file or directory") == 1);
}

TEST_CASE("training: a data file that is not what it should be is named, with the line") {
  const scratch here;
  const std::string path = here.file("digits.csv");
  std::string pixels;
  for (int i = 0; i < 64; ++i) pixels += std::to_string(i % 17) + ",";
  const std::string good = pixels + "7\n";
  struct example {
    std::string content;
    std::string message;
  };
  const example examples[] = {
      {good + pixels + "10\n", ":2, value 65: found \"10\", expected a digit from 0 to 9\n"},
      {good + good + "x" + good, ":3, value 1: found \"x0\", expected a pixel from 0 to 16\n"},
      {"17" + good, ":1, value 1: found \"170\", expected a pixel from 0 to 16\n"},
      {"0," + good, ":1: found 66 values, expected 65: 64 pixels and a digit, separated by commas\n"},
      {good + "\n", ":2: found 1 value, expected 65: 64 pixels and a digit, separated by commas\n"},
      {good, ": found 1 row, expected at least 10 (the original has 1797)\n"},
      {"", ": found 0 rows, expected at least 10 (the original has 1797)\n"},
  };
  for (const example& e : examples) {
    std::ofstream(path, std::ios::binary) << e.content;
    const outcome run = train(0, {"--data-dir", here.file("")});
    CHECK(run.exit_code == 1);
    CHECK(run.out == "");
    CHECK(run.err == "data_parallel_training: " + path + e.message);
  }
}

TEST_CASE("training: Fashion-MNIST that is missing or broken is named, with the package to install") {
  const scratch here;
  const auto error_of = [&] { return train(0, {"--data", "fashion-mnist", "--data-dir", here.file("")}); };
  const std::string images = here.file("train-images-idx3-ubyte");

  const outcome missing = error_of();
  CHECK(missing.exit_code == 1);
  CHECK(occurrences(missing.err, "found neither " + images + " nor train-images-idx3-ubyte.gz beside it") == 1);
  CHECK(occurrences(missing.err, "apt-get install dataset-fashion-mnist") == 1);

  std::ofstream(images, std::ios::binary) << "not an IDX file, however long it is";
  const outcome foreign = error_of();
  CHECK(foreign.exit_code == 1);
  CHECK(occurrences(foreign.err, images + ": found no IDX header of unsigned bytes in 3 dimensions") == 1);

  const std::string two_images("\0\0\x08\x03\0\0\0\x02\0\0\0\x1c\0\0\0\x1c", 16);
  std::ofstream(images, std::ios::binary) << two_images << std::string(1000, 'x');
  const outcome cut = error_of();
  CHECK(cut.exit_code == 1);
  CHECK(occurrences(cut.err, images + ": found 1000 bytes after the IDX header, which announces 1568") == 1);
}

TEST_CASE("training: a file that cannot be written is named before the training") {
  const scratch here;
  const std::string path = here.file("no-such-folder/loss.csv");
  const outcome run = train(0, {"--loss-csv", path});
  CHECK(run.exit_code == 1);
  CHECK(run.out == "");
  CHECK(run.err == "data_parallel_training: cannot write " + path + ": No such file or directory\n");
}

TEST_CASE("training: when one of four ranks is killed the others end, and say which it was") {
  constexpr int ranks = 4;
  for (const int victim : {2, 0}) {
    CAPTURE(victim);
    const scratch here;
    const auto err_of = [&](int rank) { return here.file("err" + std::to_string(rank)); };
    std::array<int, 2> out{};
    REQUIRE(::pipe2(out.data(), O_CLOEXEC) == 0);
    const int port = harness::free_port();
    std::vector<harness::child_process> processes;
    for (int r = 0; r < ranks; ++r) processes.push_back(train_as(r, ranks, port, out[1], err_of(r), "1000000"));
    ::close(out[1]);
    const std::string printed = read_until(out[0], "epoch       2/1000000");
    CHECK(occurrences(printed, "epoch       2/1000000") == 1);

    const std::string pid_of_victim = std::to_string(processes[static_cast<std::size_t>(victim)].pid());
    const auto killed = std::chrono::steady_clock::now();
    processes[static_cast<std::size_t>(victim)].send_signal(SIGKILL);
    for (int r = 0; r < ranks; ++r) {
      CAPTURE(r);
      CHECK(processes[static_cast<std::size_t>(r)].wait() == (r == victim ? 128 + SIGKILL : 1));
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - killed;
    ::close(out[0]);
    MESSAGE("rank " << victim << " of " << ranks << " killed: all had ended after " << took.count() << " s");
    CHECK(took.count() < 5);
    for (int r = 0; r < ranks; ++r) {
      const std::string err = content_of(err_of(r));
      CAPTURE(err);
      CHECK(occurrences(err, "\n") == (r == victim ? 0 : 1));
      if (r == victim) continue;
      CHECK(occurrences(err, "rank " + std::to_string(victim) + " (") == 1);
      CHECK(occurrences(err, ", pid " + pid_of_victim + ")") == 1);
    }
  }
}
