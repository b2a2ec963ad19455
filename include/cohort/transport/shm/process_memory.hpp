// SPDX-License-Identifier: BSL-1.0
// The memory of another process of this host, which the kernel copies from and to where it lets this process. Used by stream.hpp,
// for messages, and by the engines, for collectives.
#pragma once

#include <cohort/transport/piece.hpp>

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <span>

namespace cohort::transport {

class process_memory {
 public:
  explicit process_memory(long pid) noexcept : pid_(static_cast<pid_t>(pid)) {}

  /// Fills all of `into`, which is in this process, with what stands at `from` in the other, piece by piece.
  ///
  /// Result: false: the kernel does not let this process, or nothing is there; some may have been copied
  [[nodiscard]] bool read(std::span<const piece> from, std::span<const piece> into) noexcept {
    return may_read_ && note(copy_between(::process_vm_readv, into, from), may_read_);
  }
  /// The reverse: `into` is in the other process.
  [[nodiscard]] bool write(std::span<const piece> from, std::span<const piece> into) noexcept {
    return may_write_ && note(copy_between(::process_vm_writev, from, into), may_write_);
  }
  [[nodiscard]] bool is_gone() const noexcept {
    // Of an address that nothing is at: a process that lives says so.
    std::byte byte{};
    iovec local{&byte, 1};
    iovec remote{nullptr, 1};
    return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) < 0 && errno == ESRCH;
  }

 private:
  using kernel_copy = ssize_t (*)(pid_t, const iovec*, unsigned long, const iovec*, unsigned long, unsigned long);

  /// All of `here` to or from what stands at `there` in the other process.
  [[nodiscard]] bool copy_between(kernel_copy copy, std::span<const piece> here,
                                  std::span<const piece> there) noexcept {
    // Not more at a time than a second-level cache has room for.
    constexpr std::size_t step = std::size_t{1} << 20;
    std::size_t t = 0;
    std::size_t used = 0;
    for (const piece& p : here) {
      std::size_t done = 0;
      while (done < p.bytes) {
        while (t < there.size() && used == there[t].bytes) {
          ++t;
          used = 0;
        }
        if (t == there.size()) {
          errno = EFAULT;
          return false;
        }
        const std::size_t part = std::min({p.bytes - done, there[t].bytes - used, step});
        const iovec local{p.data + done, part};
        const iovec remote{there[t].data + used, part};
        const ssize_t n = copy(pid_, &local, 1, &remote, 1, 0);
        if (n <= 0) return false;
        done += static_cast<std::size_t>(n);
        used += static_cast<std::size_t>(n);
      }
    }
    return true;
  }
  /// What the kernel has not let this process do once it never will, unless it was only that nothing was there.
  static bool note(bool copied, bool& may) noexcept {
    if (!copied && errno != EFAULT) may = false;
    return copied;
  }

  pid_t pid_;
  bool may_read_ = true;  // the kernel has not refused yet
  bool may_write_ = true;
};

}  // namespace cohort::transport
