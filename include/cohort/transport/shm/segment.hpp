// SPDX-License-Identifier: BSL-1.0
// Memory that two processes of one host see: a memfd whose pages are reserved and whose size is sealed before anybody
// maps it, so that neither a full host nor a peer can turn an access into a signal. Used by neighbours.hpp.
#pragma once

#include <cohort/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::transport {

/// A descriptor that is closed with its owner.
class owned_fd {
 public:
  owned_fd() = default;
  explicit owned_fd(int fd) noexcept : fd_(fd) {}
  owned_fd(owned_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  owned_fd& operator=(owned_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~owned_fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

class shared_segment {
 public:
  static constexpr std::size_t page = 4096;

  shared_segment() = default;
  shared_segment(shared_segment&& other) noexcept
      : fd_(std::move(other.fd_)), data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  shared_segment& operator=(shared_segment&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~shared_segment() {
    if (data_ != nullptr) ::munmap(data_, bytes_);
  }

  /// Zeroed memory of this process's own.
  ///
  /// Errors: out_of_memory when the host has not so many pages left, io_error otherwise
  [[nodiscard]] static shared_segment create(std::size_t bytes) {
    shared_segment s;
    bytes = rounded(bytes);
    require_available(bytes);
    s.fd_ = owned_fd(::memfd_create("cohort", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!s.fd_) refuse("create", bytes);
    if (::ftruncate(s.fd_.get(), static_cast<off_t>(bytes)) != 0) refuse("size", bytes);
    // Pages that are only promised would be refused by a signal at the first touch.
    int reserved = 0;
    do {
      reserved = ::fallocate(s.fd_.get(), 0, 0, static_cast<off_t>(bytes));
    } while (reserved != 0 && errno == EINTR);
    if (reserved != 0) refuse("reserve", bytes);
    if (::fcntl(s.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) refuse("seal", bytes);
    s.map(bytes);
    return s;
  }

  /// A peer's memory.
  ///
  /// Errors: protocol_error when it is not a sealed segment of that size, io_error when it cannot be mapped
  [[nodiscard]] static shared_segment adopt(owned_fd fd, std::size_t bytes) {
    bytes = rounded(bytes);
    struct stat about {};
    const int seals = ::fcntl(fd.get(), F_GET_SEALS);
    if (::fstat(fd.get(), &about) != 0 || static_cast<std::size_t>(about.st_size) != bytes || seals < 0 ||
        (seals & F_SEAL_SHRINK) == 0) {
      throw error(errc::protocol_error, "a peer offered shared memory that is not sealed, or not of the " +
                                            std::to_string(bytes) + " bytes that it said");
    }
    shared_segment s;
    s.fd_ = std::move(fd);
    s.map(bytes);
    s.fd_ = owned_fd{};  // the mapping needs it no longer
    return s;
  }

  /// Takes the place of other memory of this size; from then on whoever owned that owns this.
  ///
  /// Needs: its descriptor is open
  [[nodiscard]] bool move_to(std::byte* where) noexcept {
    // Not mremap: under MPICH, whose UCX puts a function of its own in its place, the memory did not come to lie there.
    constexpr int flags = MAP_SHARED | MAP_FIXED | MAP_POPULATE;
    if (::mmap(where, bytes_, PROT_READ | PROT_WRITE, flags, fd_.get(), 0) == MAP_FAILED) return false;
    ::munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
    return true;
  }
  /// Puts memory of this process's own, which nobody else sees, in the place of pages of a segment, with what they hold.
  /// Where there is none left, they stay what they are.
  static void make_private(std::byte* where, std::size_t bytes) noexcept {
    constexpr std::size_t step = std::size_t{1} << 20;
    const std::unique_ptr<std::byte[]> kept(new (std::nothrow) std::byte[std::min(step, bytes)]);
    for (std::size_t done = 0; kept && done < bytes; done += step) {
      const std::size_t n = std::min(step, bytes - done);
      std::memcpy(kept.get(), where + done, n);
      constexpr int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
      if (::mmap(where + done, n, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) return;
      std::memcpy(where + done, kept.get(), n);
    }
  }
  /// The mapping needs its descriptor no longer.
  void close_descriptor() noexcept { fd_ = owned_fd{}; }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  explicit operator bool() const noexcept { return data_ != nullptr; }

  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) noexcept {
    return (bytes + page - 1) / page * page;
  }

 private:
  // The kernel hands out pages until there are none left, and then ends some process: what is clearly too much is not
  // asked for.
  static void require_available(std::size_t bytes) {
    constexpr std::size_t never_too_much = std::size_t{64} << 20;
    if (bytes <= never_too_much) return;
    const owned_fd about(::open("/proc/meminfo", O_RDONLY | O_CLOEXEC));
    char text[4096];
    const ssize_t length = about ? ::read(about.get(), text, sizeof text - 1) : 0;
    if (length <= 0) return;
    text[length] = 0;
    constexpr std::string_view name = "MemAvailable:";
    const char* const line = std::strstr(text, name.data());
    if (line == nullptr || bytes / 1024 <= std::strtoull(line + name.size(), nullptr, 10)) return;
    errno = ENOMEM;
    refuse("reserve", bytes);
  }
  [[noreturn]] static void refuse(const char* what, std::size_t bytes) {
    const int why = errno;
    const bool full = why == ENOSPC || why == ENOMEM;
    throw error(full ? errc::out_of_memory : errc::io_error,
                std::string{"cannot "} + what + " " + std::to_string(bytes) + " bytes of shared memory: " +
                    std::strerror(why) + (full ? "; free memory on this host, or set COHORT_SHM=0 to do without" : ""));
  }
  void map(std::size_t bytes) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd_.get(), 0);
    if (at == MAP_FAILED) refuse("map", bytes);
    data_ = static_cast<std::byte*>(at);
    bytes_ = bytes;
  }

  owned_fd fd_{};
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace cohort::transport
