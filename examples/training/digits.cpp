// SPDX-License-Identifier: BSL-1.0
#include "digits.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace training {
namespace {

constexpr std::size_t pixels_per_image = 64;
constexpr std::size_t fewest_rows = 10;
constexpr std::uint64_t split_seed = 2;  // fixed: a test image of one run is never a training image of another

// What a message shows of bytes that may be anything.
std::string quoted(std::string_view text) {
  constexpr std::size_t most = 20;
  std::string out = "\"";
  for (const char c : text.substr(0, most)) out += c >= ' ' && c <= '~' ? c : '?';
  return out + (text.size() > most ? "...\"" : "\"");
}

int parse_field(std::string_view field, int largest, const std::string& where, const char* what) {
  int value = -1;
  const auto [end, failure] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (failure != std::errc{} || end != field.data() + field.size() || value < 0 || value > largest) {
    throw data_error(where + ": found " + quoted(field) + ", expected " + what + " from 0 to " +
                     std::to_string(largest));
  }
  return value;
}

void parse_row(std::string_view line, const std::string& where, dataset& rows) {
  std::vector<std::string_view> fields;
  for (std::size_t comma = line.find(','); comma != std::string_view::npos; comma = line.find(',')) {
    fields.push_back(line.substr(0, comma));
    line.remove_prefix(comma + 1);
  }
  fields.push_back(line);
  if (fields.size() != pixels_per_image + 1) {
    throw data_error(where + ": found " + std::to_string(fields.size()) + (fields.size() == 1 ? " value" : " values") +
                     ", expected 65: 64 pixels and a digit, separated by commas");
  }
  const auto place = [&](std::size_t i) { return where + ", value " + std::to_string(i + 1); };
  for (std::size_t i = 0; i < pixels_per_image; ++i) {
    rows.pixels.push_back(static_cast<float>(parse_field(fields[i], 16, place(i), "a pixel")) / 16.0f);
  }
  const int digit = parse_field(fields.back(), 9, place(pixels_per_image), "a digit");
  rows.labels.push_back(static_cast<std::uint8_t>(digit));
}

dataset take(const dataset& all, std::span<const std::uint32_t> rows) {
  dataset out{all.features, all.classes};
  for (const std::uint32_t i : rows) {
    const std::span<const float> image = all.image(i);
    out.pixels.insert(out.pixels.end(), image.begin(), image.end());
    out.labels.push_back(all.labels[i]);
  }
  return out;
}

}  // namespace

split_dataset read_digits(const std::string& directory) {
  const std::string path = (std::filesystem::path(directory) / "digits.csv").string();
  errno = 0;
  std::ifstream file(path);
  if (!file) {
    throw data_error("cannot open " + path + ": " + std::strerror(errno) +
                     "; it is examples/data/digits.csv of the source tree: say where with --data-dir");
  }
  dataset all{pixels_per_image, 10};
  std::string line;
  for (std::size_t number = 1; std::getline(file, line); ++number) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    parse_row(line, path + ":" + std::to_string(number), all);
  }
  if (file.bad()) throw data_error("cannot read " + path + ": " + std::strerror(errno));
  if (all.size() < fewest_rows) {
    throw data_error(path + ": found " + std::to_string(all.size()) + (all.size() == 1 ? " row" : " rows") +
                     ", expected at least " + std::to_string(fewest_rows) + " (the original has 1797)");
  }
  const std::vector<std::uint32_t> order = permutation(all.size(), split_seed);
  const std::span<const std::uint32_t> rows(order);
  const std::size_t tests = all.size() / 5 + (all.size() % 5 != 0);
  return {take(all, rows.subspan(tests)), take(all, rows.first(tests))};
}

std::string default_digits_directory() {
  namespace fs = std::filesystem;
#ifdef COHORT_EXAMPLES_DATA
  const fs::path beside_source = COHORT_EXAMPLES_DATA;
#else
  const fs::path beside_source = fs::path(__FILE__).parent_path().parent_path() / "data";
#endif
  for (const fs::path& candidate : {beside_source, fs::path("examples/data"), fs::path("data")}) {
    std::error_code ignored;
    if (fs::exists(candidate / "digits.csv", ignored)) return candidate.string();
  }
  return "examples/data";
}

}  // namespace training
