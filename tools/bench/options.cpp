// SPDX-License-Identifier: BSL-1.0
#include "options.hpp"

#include "../arguments.hpp"
#include "../suggest.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace cohort::tool {
namespace {

constexpr const char* program = "cohort bench";

constexpr std::array<std::pair<std::string_view, element_kind>, 8> element_kinds{{
    {"float", element_kind::float32},
    {"double", element_kind::float64},
    {"half", element_kind::half},
    {"bfloat16", element_kind::bfloat16},
    {"int8", element_kind::int8},
    {"int16", element_kind::int16},
    {"int32", element_kind::int32},
    {"int64", element_kind::int64},
}};

constexpr std::array<std::pair<std::string_view, functor_kind>, 12> functor_kinds{{
    {"sum", functor_kind::sum},
    {"product", functor_kind::product},
    {"min", functor_kind::min},
    {"max", functor_kind::max},
    {"average", functor_kind::average},
    {"bit_and", functor_kind::bit_and},
    {"bit_or", functor_kind::bit_or},
    {"bit_xor", functor_kind::bit_xor},
    {"logical_and", functor_kind::logical_and},
    {"logical_or", functor_kind::logical_or},
    {"premultiplied_sum", functor_kind::premultiplied_sum},
    {"user", functor_kind::user},
}};

constexpr std::array<std::pair<std::string_view, transport_kind>, 3> transport_kinds{
    {{"auto", transport_kind::automatic}, {"shm", transport_kind::shm}, {"tcp", transport_kind::tcp}}};

constexpr std::array<operation_kind, 17> measured_kinds{
    operation_kind::barrier,        operation_kind::broadcast,      operation_kind::scatter,
    operation_kind::scatter_v,      operation_kind::gather,         operation_kind::gather_v,
    operation_kind::reduce,         operation_kind::all_reduce,     operation_kind::all_gather,
    operation_kind::all_gather_v,   operation_kind::reduce_scatter, operation_kind::reduce_scatter_v,
    operation_kind::all_to_all,     operation_kind::all_to_all_v,   operation_kind::scan,
    operation_kind::exclusive_scan, operation_kind::exchange};

template <class Choices>
auto choice(const std::string& option, const std::string& text, const Choices& choices) {
  std::vector<std::string> names;
  std::string all;
  for (const auto& [each, kind] : choices) {
    if (each == text) return kind;
    names.emplace_back(each);
    all += (all.empty() ? "" : ", ") + std::string(each);
  }
  const std::string meant = nearest(text, names);
  throw std::invalid_argument(option + ": '" + text + "' is not one of " + all +
                              (meant.empty() ? std::string{} : "; did you mean " + meant + "?"));
}

void set_operation(bench_options& options) {
  if (options.operation == "p2p") return;
  std::vector<std::string> names{"p2p"};
  std::string all = "p2p";
  for (const operation_kind each : measured_kinds) {
    if (name(each) == options.operation) {
      options.kind = each;
      return;
    }
    names.emplace_back(name(each));
    all += ", " + std::string(name(each));
  }
  if (options.operation.empty()) throw std::invalid_argument("no operation given; it is one of " + all);
  const std::string meant = nearest(options.operation, names);
  throw std::invalid_argument("'" + options.operation + "' is not an operation to measure; these are " + all +
                              (meant.empty() ? std::string{} : "; did you mean " + meant + "?"));
}

/// "8", "64K", "4M", "1GiB": bytes.
std::size_t size_from(const std::string& option, const std::string& text) {
  std::size_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  if (unit.size() == 1) unit[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  constexpr std::array<std::pair<std::string_view, int>, 10> units{{{"", 0},
                                                                    {"B", 0},
                                                                    {"K", 10},
                                                                    {"KB", 10},
                                                                    {"KiB", 10},
                                                                    {"M", 20},
                                                                    {"MB", 20},
                                                                    {"MiB", 20},
                                                                    {"G", 30},
                                                                    {"GiB", 30}}};
  constexpr std::size_t most = std::size_t{64} << 30;
  for (const auto& [letters, shift] : units) {
    if (failed != std::errc{} || unit != letters || value > (most >> shift)) continue;
    return value << shift;
  }
  throw std::invalid_argument(option + ": '" + text + "' is not a size, expected bytes up to 64G, as in 8, 64K or 4M");
}

struct raw_options {
  std::string smallest, largest, type = "float", functor = "sum", transport = "auto";
  bool csv = false, json = false;
  int ranks = 0, root = 0, samples = 0;
};

void declare(CLI::App& app, bench_options& options, raw_options& raw) {
  app.add_option("OP", options.operation, "the operation: a collective by its name, or p2p");
  app.add_option("-b,--begin", raw.smallest, "smallest size in bytes; default 8")->option_text("SIZE");
  app.add_option("-e,--end", raw.largest, "largest size; default 64M, or that of -b if larger")->option_text("SIZE");
  app.add_option("-f,--factor", options.factor, "each size is so many times the one before; default 2")
      ->option_text("NUMBER");
  app.add_option("-t,--type", raw.type, "element type: float, double, half, bfloat16, int8, int16,\nint32 or int64")
      ->option_text("TYPE");
  app.add_option(
         "-o,--functor", raw.functor,
         "how elements are combined: sum, max, or user, a functor\nthat the library does not know; by all_reduce also "
         "product,\nmin, average, bit_and, bit_or, bit_xor, logical_and,\nlogical_or, premultiplied_sum")
      ->option_text("FUNCTOR");
  app.add_option("-n,--nproc", raw.ranks,
                 "how many ranks to start here; default: as many as this\nmachine has processors, at least 2. "
                 "Under a launcher: those\nthat it has started")
      ->option_text("N");
  app.add_option("--transport", raw.transport, "auto, shm or tcp: how ranks of one host talk; default auto")
      ->option_text("KIND");
  app.add_option("--root", raw.root, "root of the rooted operations; default: another one every\ncall")
      ->option_text("RANK");
  app.add_option("--seconds", options.seconds, "how long to measure at each size; default 0.3")->option_text("SECONDS");
  app.add_option("--samples", raw.samples, "measure so many times at each size instead")->option_text("NUMBER");
  app.add_flag("--csv", raw.csv, "print comma-separated values");
  app.add_flag("--json", raw.json, "print JSON");
  app.add_flag("--plot", options.plot, "write cohort_bench_OP.png too; needs python3 with matplotlib");
  app.add_flag("--registered", options.registered, "measure buffers that are registered (register_memory)");
  app.add_flag("--explain", options.explain, "tell the algorithm chosen at each size, and the table of choices");
  set_usage(app, "cohort bench OP [-b SIZE] [-e SIZE] [-f FACTOR] [-t TYPE] [-o FUNCTOR] [-n N] [options]");
  app.footer(
      "The columns are those of nccl-tests: the size is the larger of one rank's input and output, time is the\n"
      "median, in which the slowest rank counts, algbw is size/time, busbw is what that means for one link, and\n"
      "#wrong counts the elements of all ranks that differ from an independent computation.\n"
      "A sample is one call, or, where calls are shorter than 20 us, the mean of a batch that is as long; ranks meet\n"
      "at a barrier before each sample. The exit code is 1 if anything was wrong.");
}

void check(const CLI::App& app, const raw_options& raw, bench_options& options) {
  set_operation(options);
  options.type = choice("-t", raw.type, element_kinds);
  options.functor = choice("-o", raw.functor, functor_kinds);
  options.transport = choice("--transport", raw.transport, transport_kinds);
  if (app.count("-b") > 0) options.smallest = size_from("-b", raw.smallest);
  if (app.count("-e") > 0) options.largest = size_from("-e", raw.largest);
  else options.largest = std::max(options.largest, options.smallest);
  if (options.largest < options.smallest) {
    throw std::invalid_argument("-e: " + raw.largest + " is less than the smallest size, " +
                                std::to_string(options.smallest) + " bytes");
  }
  if (!(options.factor > 1) || options.factor > 1e6) {
    throw std::invalid_argument("-f: expected more than 1 and at most 1000000, got " + std::to_string(options.factor));
  }
  if (!(options.seconds > 0) || options.seconds > 3600) {
    throw std::invalid_argument("--seconds: expected more than 0 and at most 3600, got " +
                                std::to_string(options.seconds));
  }
  if (app.count("-n") > 0) {
    if (raw.ranks < 1 || raw.ranks > 4096) {
      throw std::invalid_argument("-n: " + std::to_string(raw.ranks) + " is not a number of ranks, expected 1..4096");
    }
    options.ranks = raw.ranks;
  }
  if (app.count("--root") > 0) {
    if (raw.root < 0) throw std::invalid_argument("--root: " + std::to_string(raw.root) + " is not a rank");
    options.root = raw.root;
  }
  if (app.count("--samples") > 0) {
    if (raw.samples < 1)
      throw std::invalid_argument("--samples: expected at least 1, got " + std::to_string(raw.samples));
    options.samples = raw.samples;
  }
  if (options.registered && options.transport == transport_kind::tcp) {
    throw std::invalid_argument(
        "--registered is about memory that ranks share, and --transport tcp lets them share none");
  }
  if (raw.csv && raw.json) throw std::invalid_argument("--csv and --json exclude each other");
  options.format = raw.csv ? format_kind::csv : raw.json ? format_kind::json : format_kind::table;
  if (app.count("-o") > 0 && !reduces(options)) {
    throw std::invalid_argument("-o: " + options.operation + " combines nothing, so it takes no functor");
  }
  const bool integers = options.type >= element_kind::int8;
  const bool of_bits = options.functor >= functor_kind::bit_and && options.functor <= functor_kind::bit_xor;
  if (of_bits && !integers) {
    throw std::invalid_argument("-o: " + raw.functor + " is for integers, not for " + raw.type);
  }
  const bool everywhere = options.functor == functor_kind::sum || options.functor == functor_kind::max ||
                          options.functor == functor_kind::user;
  if (!everywhere && options.kind != operation_kind::all_reduce) {
    throw std::invalid_argument("-o: " + raw.functor + " is measured with all_reduce; " + options.operation +
                                " takes sum, max or user");
  }
  if (options.functor == functor_kind::average && integers) {
    throw std::invalid_argument("-o: average is for floating-point numbers, not for " + raw.type);
  }
}

}  // namespace

std::string_view name_of(element_kind type) noexcept { return element_kinds[static_cast<std::size_t>(type)].first; }
std::string_view name_of(functor_kind functor) noexcept {
  return functor_kinds[static_cast<std::size_t>(functor)].first;
}

bool reduces(const bench_options& options) noexcept {
  switch (options.kind.value_or(operation_kind::barrier)) {
    case operation_kind::reduce:
    case operation_kind::all_reduce:
    case operation_kind::reduce_scatter:
    case operation_kind::reduce_scatter_v:
    case operation_kind::scan:
    case operation_kind::exclusive_scan: return true;
    default: return false;
  }
}

std::vector<std::size_t> sizes_of(const bench_options& options) {
  if (options.kind == operation_kind::barrier) return {0};
  std::vector<std::size_t> sizes;
  for (auto size = static_cast<double>(options.smallest); size <= static_cast<double>(options.largest);) {
    sizes.push_back(static_cast<std::size_t>(size));
    // A factor near 1 must still get on.
    size = std::max(std::floor(size * options.factor), size + 1);
  }
  return sizes;
}

std::optional<int> parse_bench_options(const std::vector<std::string>& words, bench_options& options) {
  CLI::App app("Measure an operation between ranks: time, bandwidth, and whether the results are right.", program);
  raw_options raw;
  declare(app, options, raw);
  if (const std::optional<int> ended = parse_words(app, words)) return ended;
  try {
    check(app, raw, options);
  } catch (const std::invalid_argument& mistake) {
    return usage_error(program, mistake.what());
  }
  return std::nullopt;
}

}  // namespace cohort::tool
