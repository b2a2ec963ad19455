// SPDX-License-Identifier: BSL-1.0
// Reads a job's secret from a file that only its owner can read. Used by launch.hpp.
#pragma once

#include <cohort/detail/printable.hpp>
#include <cohort/error.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <string>
#include <system_error>

namespace cohort::detail {

/// The contents of `path` without a final newline.
///
/// Errors: bad_environment naming `origin` when the file cannot be read, is a link, is no plain file, is longer
///         than 4 KiB, or grants anything to group or others
[[nodiscard]] inline std::string read_secret_file(const std::string& path, const std::string& origin) {
  const auto refuse = [&](const std::string& why) {
    throw error(errc::bad_environment, origin + "=" + detail::quoted(path) + ": " + why);
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) refuse(std::generic_category().message(errno));
  struct closer {
    int file;
    ~closer() { ::close(file); }
  } const close_it{file};

  struct stat about {};
  if (::fstat(file, &about) != 0) refuse(std::generic_category().message(errno));
  if (!S_ISREG(about.st_mode)) refuse("not a plain file");
  if ((about.st_mode & 077U) != 0) {
    char mode[16] = {};
    std::snprintf(mode, sizeof mode, "%04o", static_cast<unsigned>(about.st_mode & 07777U));
    refuse(std::string("others may use this file: its mode is ") + mode + ", expected 0600; run chmod 600 on it");
  }
  constexpr std::size_t most = 4096;
  std::string text(most + 1, '\0');
  std::size_t held = 0;
  for (;;) {
    const ssize_t n = ::read(file, text.data() + held, text.size() - held);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refuse(std::generic_category().message(errno));
    if (n == 0) break;
    held += static_cast<std::size_t>(n);
    if (held > most) refuse("longer than 4096 bytes");
  }
  text.resize(held);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace cohort::detail
