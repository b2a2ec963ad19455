// SPDX-License-Identifier: BSL-1.0
// Bodies of collective/select.hpp: the table as text, and text that overrides it.
#pragma once

#include <cohort/collective/select.hpp>
#include <cohort/detail/config.hpp>

#include <array>
#include <iterator>
#include <string>
#include <string_view>

namespace cohort::collective {
namespace selection_detail {

[[nodiscard]] inline std::string line(std::string_view operation, std::string_view how, std::string_view bytes,
                                      std::string_view ranks, std::string_view functor) {
  std::string text{operation};
  const auto at = [&text](std::size_t column, std::string_view word) {
    text.resize(column, ' ');
    text += word;
  };
  at(18, how);
  at(42, bytes);
  at(54, ranks);
  at(66, functor);
  return text + "\n";
}

[[nodiscard]] inline std::string list_of_operations() {
  std::string text;
  for (const implementation* i = std::begin(implementations); i != std::end(implementations); ++i) {
    if (i != std::begin(implementations) && i->operation == (i - 1)->operation) continue;
    text += (text.empty() ? "" : ", ") + std::string{name(i->operation)};
  }
  return text;
}

[[noreturn]] inline void refuse(std::string_view spec, std::string_view part, const std::string& why) {
  throw error(errc::invalid_argument,
              "algorithms \"" + std::string{spec} + "\": in \"" + std::string{part} + "\", " + why);
}

struct choice {
  operation_kind operation;
  collective::algorithm algorithm;
};
[[nodiscard]] inline choice parse(std::string_view spec, std::string_view part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) refuse(spec, part, "expected operation=algorithm, such as all_reduce=ring");
  const std::string_view operation = part.substr(0, equals);
  const std::string_view how = part.substr(equals + 1);
  const auto kind = operation_kind_of(operation);
  if (!kind || list_of_algorithms(*kind).empty()) {
    refuse(spec, part,
           "\"" + std::string{operation} + "\" is not an operation with algorithms; these are " + list_of_operations());
  }
  const auto wanted = algorithm_of(how);
  if (!wanted || find_implementation(*kind, *wanted) == nullptr) {
    refuse(spec, part,
           "\"" + std::string{how} + "\" is not an algorithm of " + std::string{operation} + "; these are " +
               list_of_algorithms(*kind));
  }
  return {*kind, *wanted};
}

}  // namespace selection_detail

COHORT_DECL std::string list_of_algorithms(operation_kind kind) {
  std::string text;
  for (const implementation& i : implementations) {
    if (i.operation == kind) text += (text.empty() ? "" : ", ") + std::string{collective::to_string(i.algorithm)};
  }
  return text;
}

COHORT_DECL void selection_table::override_with(std::string_view spec) {
  selection_table changed = *this;
  std::array<bool, operations> named{};
  for (std::string_view rest = spec; !spec.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const auto [kind, wanted] = selection_detail::parse(spec, part);
    if (named[static_cast<std::size_t>(kind)])
      selection_detail::refuse(spec, part, std::string{name(kind)} + " is named twice");
    named[static_cast<std::size_t>(kind)] = true;
    changed.override_with(kind, wanted);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  *this = changed;
}

COHORT_DECL std::string selection_table::to_string() const {
  using selection_detail::line;
  std::string text = line("operation", "algorithm", "from bytes", "from ranks", "functor");
  const auto functor = [](bool commutative) { return std::string{commutative ? "commutative" : "any"}; };
  for (unsigned k = 1; k < operations; ++k) {
    const auto kind = static_cast<operation_kind>(k);
    if (const auto wanted = override_of(kind)) {
      text += line(name(kind), collective::to_string(*wanted), "override", "override",
                   functor(find_implementation(kind, *wanted)->needs_commutative));
    }
    for (const selection_row& row : rows()) {
      if (row.operation != kind) continue;
      text += line(name(kind), collective::to_string(row.algorithm), std::to_string(row.min_bytes),
                   std::to_string(row.min_ranks),
                   functor(row.needs_commutative) + (row.needs_crowd ? ", more ranks than cores" : ""));
    }
  }
  return text;
}

}  // namespace cohort::collective
