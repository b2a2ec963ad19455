// SPDX-License-Identifier: BSL-1.0
#include "report.hpp"

#include <boost/json.hpp>

#include <csignal>
#include <cstdio>

namespace cohort::tool {
namespace {

constexpr const char* drawing_program = R"python(
import json, sys
try:
    import matplotlib
except ImportError:
    sys.exit(3)
matplotlib.use("Agg")
from matplotlib import pyplot
found = json.load(sys.stdin)
figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2))
for label in dict.fromkeys(row["functor"] for row in found["rows"]):
    rows = [row for row in found["rows"] if row["functor"] == label]
    x = [row["bytes"] for row in rows]
    left.plot(x, [row["median_us"] for row in rows], marker="o", markersize=3, label=label or "median")
    left.fill_between(x, [row["min_us"] for row in rows], [row["p99_us"] for row in rows], alpha=0.2)
    right.plot(x, [row["busbw_gbps"] for row in rows], marker="o", markersize=3, label=label or "busbw")
for axis, what in ((left, "time, µs (minimum to 99th percentile)"), (right, "busbw, GB/s")):
    axis.set_xscale("log", base=2)
    axis.set_xlabel("bytes")
    axis.set_ylabel(what)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=8)
left.set_yscale("log")
figure.suptitle("{operation}, {type}, {ranks} ranks".format(**found))
figure.tight_layout()
figure.savefig(sys.argv[1], dpi=110)
)python";

std::string printed(const char* format, auto... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

std::string shown(double value) { return printed(value < 10 ? "%.3f" : value < 1000 ? "%.2f" : "%.0f", value); }

}  // namespace

std::string bench_heading(const bench_options& options, int ranks) {
  if (options.format == format_kind::csv) {
    return "operation,ranks,bytes,count,type,functor,median_us,min_us,p99_us,algbw_gbps,busbw_gbps,wrong,samples,"
           "calls_per_sample,algorithm\n";
  }
  std::string text =
      "# " + options.operation + ", " + std::to_string(ranks) + " ranks; times in us of the slowest rank\n";
  text += printed("%12s %12s %9s %17s %10s %9s %9s %7s %10s %10s", "size (B)", "count", "type", "op", "time", "algbw",
                  "busbw", "#wrong", "min", "p99");
  return text + (options.explain ? "  algorithm, and why\n" : "\n");
}

std::string bench_line(const bench_options& options, int ranks, const bench_row& row) {
  const std::string type(name_of(options.type));
  if (options.format == format_kind::csv) {
    return printed("%s,%d,%zu,%zu,%s,%s,%.4f,%.4f,%.4f,%.4f,%.4f,%ld,%d,%d,%s\n", options.operation.c_str(), ranks,
                   row.bytes, row.count, type.c_str(), row.label.c_str(), row.median, row.min, row.p99,
                   row.algorithm_bandwidth, row.bus_bandwidth, row.wrong, row.samples, row.calls_per_sample,
                   row.algorithm.c_str());
  }
  std::string text =
      printed("%12zu %12zu %9s %17s %10s %9.2f %9.2f %7ld %10s %10s", row.bytes, row.count, type.c_str(),
              row.label.empty() ? "-" : row.label.c_str(), shown(row.median).c_str(), row.algorithm_bandwidth,
              row.bus_bandwidth, row.wrong, shown(row.min).c_str(), shown(row.p99).c_str());
  return text + (options.explain ? "  " + row.algorithm + (row.why.empty() ? "" : ": " + row.why) + "\n" : "\n");
}

std::string bench_json(const bench_options& options, int ranks, const std::vector<bench_row>& rows) {
  boost::json::array list;
  for (const bench_row& row : rows) {
    list.push_back({{"bytes", row.bytes},
                    {"count", row.count},
                    {"functor", row.label},
                    {"median_us", row.median},
                    {"min_us", row.min},
                    {"p99_us", row.p99},
                    {"algbw_gbps", row.algorithm_bandwidth},
                    {"busbw_gbps", row.bus_bandwidth},
                    {"wrong", row.wrong},
                    {"samples", row.samples},
                    {"calls_per_sample", row.calls_per_sample},
                    {"algorithm", row.algorithm},
                    {"why", row.why}});
  }
  const boost::json::object all{{"operation", options.operation},
                                {"ranks", ranks},
                                {"type", std::string(name_of(options.type))},
                                {"rows", std::move(list)}};
  return boost::json::serialize(all) + "\n";
}

std::string draw_bench(const bench_options& options, const std::string& json) {
  const std::string file = "cohort_bench_" + options.operation + ".png";
  // The name is one of those of operations, and the program has no single quote: nothing for the shell to mistake. A
  // python3 that somebody installed beside the system's does not see the packages of the system.
  std::signal(SIGPIPE, SIG_IGN);  // one that ends before it has read everything is answered below
  for (const char* const python : {"python3", "/usr/bin/python3"}) {
    const std::string command = std::string(python) + " -c '" + drawing_program + "' " + file;
    std::FILE* const pipe = ::popen(command.c_str(), "w");
    if (pipe == nullptr) continue;
    std::fwrite(json.data(), 1, json.size(), pipe);
    if (::pclose(pipe) == 0) return {};
  }
  return file + " was not drawn: python3 with matplotlib is needed (Debian: python3-matplotlib)";
}

}  // namespace cohort::tool
