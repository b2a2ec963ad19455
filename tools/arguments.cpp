// SPDX-License-Identifier: BSL-1.0
#include "arguments.hpp"

#include "command.hpp"
#include "suggest.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>

namespace cohort::tool {
namespace {

bool looks_like_option(const std::string& word) { return word.size() > 1 && word[0] == '-'; }

std::string option_name(const std::string& word) {
  if (word.rfind("--", 0) == 0) return word.substr(0, word.find('='));
  return word.substr(0, 2);
}

bool value_is_attached(const std::string& word) {
  if (word.rfind("--", 0) == 0) return word.find('=') != std::string::npos;
  return word.size() > 2;
}

// torchrun writes --nproc_per_node as well as --nproc-per-node.
std::string with_dashes(std::string word) {
  if (word.rfind("--", 0) != 0) return word;
  const auto end = word.begin() + static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size()));
  std::replace(word.begin(), end, '_', '-');
  return word;
}

std::vector<std::string> long_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string first_unknown(const CLI::App& app, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (looks_like_option(word) && app.get_option_no_throw(option_name(word)) == nullptr) return option_name(word);
  }
  return {};
}

class usage_formatter final : public CLI::Formatter {
 public:
  explicit usage_formatter(std::string usage) : usage_(std::move(usage)) { column_width(34); }
  std::string make_usage(const CLI::App*, std::string) const override { return "Usage: " + usage_ + "\n"; }

 private:
  std::string usage_;
};

}  // namespace

void set_usage(CLI::App& app, const std::string& usage) { app.formatter(std::make_shared<usage_formatter>(usage)); }

split_words split_at_program(const CLI::App& app, const std::vector<std::string>& words) {
  split_words result;
  std::size_t at = 0;
  while (at < words.size() && looks_like_option(words[at])) {
    const std::string& word = words[at++];
    if (word == "--") break;
    result.own.push_back(word);
    const CLI::Option* option = app.get_option_no_throw(option_name(with_dashes(word)));
    // The parser explains an unknown option; whether it takes a value, nobody can know.
    if (option == nullptr) return result;
    const bool takes_value = option->get_items_expected_max() > 0;
    if (takes_value && !value_is_attached(word) && at < words.size()) result.own.push_back(words[at++]);
  }
  result.program.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
  return result;
}

int usage_error(const std::string& name, const std::string& text) {
  std::fprintf(stderr, "%s: %s\nrun '%s --help' for the options\n", name.c_str(), text.c_str(), name.c_str());
  return exit_code::usage;
}

std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words) {
  for (std::string& word : words) word = with_dashes(std::move(word));
  std::vector<std::string> last_first(words.rbegin(), words.rend());
  try {
    app.parse(last_first);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::CallForVersion& version) {
    std::fprintf(stdout, "%s\n", version.what());
    return 0;
  } catch (const CLI::ParseError& mistake) {
    std::string text = mistake.what();
    const std::string unknown = first_unknown(app, words);
    const std::string meant = unknown.empty() ? std::string{} : nearest(unknown, long_names(app));
    if (!meant.empty()) text += "; did you mean " + meant + "?";
    return usage_error(app.get_name(), text);
  }
  return std::nullopt;
}

}  // namespace cohort::tool
