// SPDX-License-Identifier: BSL-1.0
#include "options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string_view>
#include <type_traits>
#include <utility>

namespace training {
namespace {

constexpr std::array names{"--data",     "--data-dir", "--epochs", "--batch",    "--hidden", "--lr",
                           "--momentum", "--seed",     "--plot",   "--loss-csv", "--quiet",  "--help"};
constexpr std::array data_sets{"digits", "fashion-mnist"};

// Levenshtein's: how many letters to insert, delete or replace.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, replaced}));
    }
  }
  return row.back();
}

// "; did you mean X?", or nothing where no candidate is close.
template <std::size_t N>
std::string suggestion(std::string_view word, const std::array<const char*, N>& candidates) {
  const auto closer = [&](const char* a, const char* b) { return distance(word, a) < distance(word, b); };
  const char* nearest = *std::min_element(candidates.begin(), candidates.end(), closer);
  return distance(word, nearest) <= std::max<std::size_t>(2, word.size() / 3)
             ? std::string("; did you mean ") + nearest + "?"
             : "";
}

template <class T>
T parse_number(const std::string& option, std::string_view text, T low, T high) {
  T value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failure != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high)) {
    const auto show = [](T bound) {
      std::array<char, 32> out;
      return std::string(out.data(), std::to_chars(out.data(), out.data() + out.size(), bound).ptr);
    };
    throw usage_error(option + ": found \"" + std::string(text) + "\", expected " +
                      (std::is_integral_v<T> ? "an integer" : "a number") + " from " + show(low) + " to " + show(high));
  }
  return value;
}

std::vector<std::size_t> parse_widths(const std::string& option, std::string_view text) {
  std::vector<std::size_t> widths;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    more = comma != std::string_view::npos;
    widths.push_back(parse_number<std::size_t>(option, text.substr(0, comma), 1, 65536));
    if (more) text.remove_prefix(comma + 1);
  }
  return widths;
}

}  // namespace

options parse_options(std::span<const std::string> arguments) {
  options chosen;
  bool epochs_given = false;
  bool batch_given = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t equals = arguments[i].find('=');
    const bool attached = equals != std::string::npos;
    const std::string name = arguments[i].substr(0, equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw usage_error("unknown option " + name + suggestion(name, names) + " (--help lists them)");
    }
    if (name == "--quiet" || name == "--help") {
      if (attached) throw usage_error(name + ": takes no value");
      (name == "--quiet" ? chosen.quiet : chosen.help) = true;
      continue;
    }
    if (!attached && i + 1 == arguments.size()) throw usage_error(name + ": a value is missing");
    const std::string value = attached ? arguments[i].substr(equals + 1) : arguments[++i];
    if (name == "--data") {
      if (std::find(data_sets.begin(), data_sets.end(), value) == data_sets.end()) {
        throw usage_error("--data: found \"" + value + "\", expected digits or fashion-mnist" +
                          suggestion(value, data_sets));
      }
      chosen.data = value;
    } else if (name == "--data-dir") {
      chosen.data_directory = value;
    } else if (name == "--epochs") {
      chosen.epochs = parse_number<int>(name, value, 1, 1000000);
      epochs_given = true;
    } else if (name == "--batch") {
      chosen.batch = parse_number<std::size_t>(name, value, 1, 1000000);
      batch_given = true;
    } else if (name == "--hidden") {
      chosen.hidden = parse_widths(name, value);
    } else if (name == "--lr") {
      chosen.learning_rate = parse_number<float>(name, value, 1e-9f, 1e3f);
    } else if (name == "--momentum") {
      chosen.momentum = parse_number<float>(name, value, 0.0f, 0.999f);
    } else if (name == "--seed") {
      chosen.seed = parse_number<std::uint64_t>(name, value, 0, UINT64_MAX);
    } else {
      (name == "--plot" ? chosen.plot : chosen.loss_csv) = value;
    }
  }
  if (chosen.data == "fashion-mnist") {
    if (!epochs_given) chosen.epochs = 5;
    if (!batch_given) chosen.batch = 128;
  }
  return chosen;
}

const char* usage() noexcept {
  return R"(Trains a multilayer perceptron on as many processes as the launcher starts.

  cohort run -n 4 data_parallel_training [options]

  --data NAME       digits (1797 images of 8 x 8, in the source tree; the default) or
                    fashion-mnist (70 000 images of 28 x 28, from the package dataset-fashion-mnist)
  --data-dir DIR    where the files of --data are
  --epochs N        how often every training image is seen       (30; fashion-mnist 5)
  --batch N         images of one step, over all ranks together  (32; fashion-mnist 128)
  --hidden N,N,...  units of the hidden layers                   (64,32)
  --lr X            learning rate                                (0.02)
  --momentum X      momentum                                     (0.9)
  --seed N          of the first weights and of the order        (1)
  --plot FILE.png   draws the loss of every epoch
  --loss-csv FILE   writes epoch,loss,test_accuracy
  --quiet           prints the last line only
  --help            prints this

The same seed gives the same training on any number of processes, but for rounding.
)";
}

}  // namespace training
