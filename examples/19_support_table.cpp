// SPDX-License-Identifier: BSL-1.0
// adds: asking at compile time what a backend can do. Prints the support table of the README.
#include <cohort/cohort.hpp>

#include <complex>
#include <cstddef>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

namespace {

using namespace cohort;

struct sample {
  double mean;
  long count;
};
struct merge {
  sample operator()(const sample& a, const sample& b) const noexcept { return {a.mean + b.mean, a.count + b.count}; }
};

constexpr std::string_view names[] = {  // in the order of cohort::function
    "send", "recv", "exchange", "barrier", "broadcast", "scatter", "scatter_v", "gather", "gather_v", "reduce",
    "all_reduce", "all_gather", "all_gather_v", "reduce_scatter", "reduce_scatter_v", "all_to_all", "all_to_all_v",
    "scan", "exclusive_scan", "probe", "batch", "all_reduce_coalesced", "all_gather_coalesced",
    "reduce_scatter_coalesced"};

[[nodiscard]] constexpr std::string_view word(support s) {
  return s == support::native ? "native" : s == support::generic ? "yes" : "-";
}

template <class Backend, function F>
void print_row() {
  const std::string_view cells[] = {
      word(supports<Backend, F, int, sum>()),      word(supports<Backend, F, float, sum>()),
      word(supports<Backend, F, bfloat16, sum>()), word(supports<Backend, F, std::complex<float>, sum>()),
      word(supports<Backend, F, float8_e4m3, sum>()), word(supports<Backend, F, sample, merge>()),
  };
  const std::string_view function_name = names[static_cast<std::size_t>(F)];
  std::printf("| `%s` | %s |", std::string(Backend::name).c_str(), std::string(function_name).c_str());
  for (const std::string_view cell : cells) std::printf(" %s |", std::string(cell).c_str());
  std::printf("\n");
}

template <class Backend, std::size_t... F>
void print_rows(std::index_sequence<F...>) {
  (print_row<Backend, static_cast<function>(F)>(), ...);
}

}  // namespace

int main() {
  constexpr auto all = std::make_index_sequence<std::size(names)>{};
  std::puts("| backend | function | integers | float, double | half, bfloat16 | complex | fp8 | struct, own functor |");
  std::puts("|---|---|---|---|---|---|---|---|");
  print_rows<cpu>(all);
  print_rows<inproc>(all);
  return 0;
}
