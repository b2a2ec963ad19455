// SPDX-License-Identifier: BSL-1.0
// A locale whose numbers have a decimal comma, as a program gets it from setlocale(LC_ALL, "") under LANG=de_DE.UTF-8.
// None need be installed: localedef makes one, where it has its character maps (Debian: the package locales).
#pragma once

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace harness {

/// For its lifetime this process has that locale; there must be one such object at a time.
class decimal_comma {
 public:
  decimal_comma() {
    std::string folder = (std::filesystem::temp_directory_path() / "cohort-locale-XXXXXX").string();
    if (::mkdtemp(folder.data()) == nullptr) return;
    folder_ = folder;
    std::ofstream(folder_ + "/source") << "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
                                          "END LC_NUMERIC\n";
    // What the other categories lack are warnings, and still an exit code of 1.
    [[maybe_unused]] const int warned = std::system(
        ("localedef -c -f ANSI_X3.4-1968 -i " + folder_ + "/source " + folder_ + "/comma > /dev/null 2>&1").c_str());
    ::setenv("LOCPATH", folder_.c_str(), 1);
    made_ = std::setlocale(LC_NUMERIC, "comma") != nullptr && std::localeconv()->decimal_point == std::string(",");
  }
  decimal_comma(const decimal_comma&) = delete;
  decimal_comma& operator=(const decimal_comma&) = delete;
  ~decimal_comma() {
    std::setlocale(LC_NUMERIC, "C");
    ::unsetenv("LOCPATH");
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] bool made() const noexcept { return made_; }
  static constexpr const char* absent = "SKIPPED: no locale with a decimal comma can be made here (Debian: locales)";

 private:
  std::string folder_{};
  bool made_ = false;
};

}  // namespace harness
