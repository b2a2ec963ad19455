// SPDX-License-Identifier: BSL-1.0
// An append-only file of records that several processes share: locking, appending, reading what is new, and
// refusing what no version of it wrote. The part of file_store that knows the operating system.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/store.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cohort {

/// What becomes of the file of a store.
enum class file_lifetime : std::uint8_t {
  kept,       ///< it stays, with all that is in it
  temporary,  ///< the last process that has it open removes it; what a crash has left behind is not read again
};

}  // namespace cohort

namespace cohort::detail {

/// The file: a header of 64 bytes (magic, job, lifetime, end of the last whole record), then records of 16 bytes and a
/// key and a value. A process that is killed while it appends leaves bytes behind the end, which the next one overwrites.
class file_log {
 public:
  enum class record_kind : std::uint8_t { set = 1, erase, append, push, pop };
  static constexpr std::uint8_t record_kinds = 5;
  static constexpr std::uint64_t header_bytes = 64;
  static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

  file_log(std::string path, std::uint64_t job, deadline until, file_lifetime lifetime = file_lifetime::kept)
      : path_(std::move(path)), job_(job), lifetime_(lifetime) {
    do {
      file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
      if (file_ < 0) refuse("cannot be opened: " + system_text());
    } while (!begin(until));
  }
  file_log(file_log&& other) noexcept
      : path_(std::move(other.path_)),
        job_(other.job_),
        lifetime_(other.lifetime_),
        file_(std::exchange(other.file_, -1)),
        read_to_(other.read_to_) {}
  file_log& operator=(file_log&&) = delete;
  ~file_log() {
    if (file_ >= 0 && lifetime_ == file_lifetime::temporary) leave_users();
    close_file();
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// The lock of the file, shared (F_RDLCK) or exclusive (F_WRLCK), for one scope.
  class lock {
   public:
    lock(const file_log& log, short kind, deadline until) : log_(&log) {
      const auto started = std::chrono::steady_clock::now();
      const deadline last = std::max(until, started + store_grace);
      for (auto pause = std::chrono::microseconds(100); !log.try_lock(kind);
           pause = std::min(pause * 2, longest_pause)) {
        const auto now = std::chrono::steady_clock::now();
        if (now >= last) {
          throw error(errc::timed_out, log.describe() + ": another process holds its lock since " +
                                           duration_text(now - started) + "; is that process stopped?");
        }
        pause_for(pause);
      }
    }
    lock(const lock&) = delete;
    lock& operator=(const lock&) = delete;
    ~lock() { (void)log_->try_lock(F_UNLCK); }

   private:
    const file_log* log_;
  };

  /// Calls `apply(kind, key, value)` for every record since the last call. Needs the lock.
  template <class Apply>
  void read_new(const store_limits& limits, const Apply& apply) {
    const std::uint64_t end = committed();
    std::string body;
    while (read_to_ < end) {
      const std::uint64_t at = read_to_;
      unsigned char head[record_bytes] = {};
      if (end - at < record_bytes) malformed(at, "half a record");
      read_at(at, reinterpret_cast<char*>(head), record_bytes);
      const auto kind = static_cast<record_kind>(head[0]);
      const std::uint64_t key_size = get_little<std::uint32_t>(head + 4);
      const std::uint64_t value_size = get_little<std::uint32_t>(head + 8);
      if (head[0] == 0 || head[0] > record_kinds) malformed(at, "a record of an unknown kind");
      if (key_size == 0 || key_size > limits.key || value_size > limits.value) malformed(at, "a length out of bounds");
      if (key_size + value_size > end - at - record_bytes) malformed(at, "a record that reaches past the end");
      body.resize(static_cast<std::size_t>(key_size + value_size));
      read_at(at + record_bytes, body.data(), body.size());
      if (check_sum(head, body) != get_little<std::uint32_t>(head + 12)) malformed(at, "a wrong check sum");
      const std::string_view all(body);
      apply(kind, all.substr(0, static_cast<std::size_t>(key_size)), all.substr(static_cast<std::size_t>(key_size)));
      read_to_ = at + record_bytes + key_size + value_size;
    }
  }

  struct entry {
    record_kind kind;
    std::string_view key;
    std::string_view value;
  };
  /// Appends records, all or none of which a process that is killed meanwhile leaves behind. Needs the exclusive lock,
  /// and every record read.
  void append(std::span<const entry> entries) {
    std::string records;
    for (const entry& e : entries) put_record(e, records);
    const std::uint64_t end = read_to_ + records.size();
    if (end > most_bytes)
      refuse("is full: it keeps every change and is limited to " + std::to_string(most_bytes) + " bytes");
    write_at(read_to_, records);
    std::string mark;
    byte_writer(mark).number(end);
    write_at(end_offset, mark);
    read_to_ = end;
  }
  void append(record_kind kind, std::string_view key, std::string_view value) {
    const entry one{kind, key, value};
    append({&one, 1});
  }

  [[nodiscard]] std::string describe() const { return "the store in file " + path_; }

  static void pause_for(std::chrono::microseconds time) noexcept {
    timespec left{static_cast<time_t>(time.count() / 1000000), static_cast<long>(time.count() % 1000000 * 1000)};
    ::nanosleep(&left, nullptr);
  }
  static constexpr std::chrono::microseconds longest_pause{10000};

 private:
  static constexpr std::uint64_t record_bytes = 16;
  static constexpr std::uint64_t job_offset = 16;
  static constexpr std::uint64_t lifetime_offset = 24;
  static constexpr std::uint64_t end_offset = 32;
  static constexpr std::string_view magic{"cohort store 1\n\0", 16};
  // The places that are locked. Who has a temporary file open holds a shared lock of `users_lock`, which the system
  // takes back from whoever dies: one that gets it exclusively is alone with the file.
  static constexpr off_t content_lock = 0;
  static constexpr off_t users_lock = 1;

  [[nodiscard]] static std::string system_text() { return std::generic_category().message(errno); }
  [[nodiscard]] static std::uint32_t check_sum(const unsigned char* head, std::string_view body) noexcept {
    const std::uint64_t h = fnv1a(body, fnv1a({reinterpret_cast<const char*>(head), 12}));
    return static_cast<std::uint32_t>(h ^ (h >> 32));
  }

  [[noreturn]] void refuse(const std::string& why) const { throw error(errc::store_failed, describe() + " " + why); }
  static void put_record(const entry& e, std::string& out) {
    std::string head;
    byte_writer to(head);
    to.number(static_cast<std::uint32_t>(e.kind)).number(static_cast<std::uint32_t>(e.key.size()));
    to.number(static_cast<std::uint32_t>(e.value.size()));
    std::string body(e.key);
    body += e.value;
    to.number(check_sum(reinterpret_cast<const unsigned char*>(head.data()), body));
    out += head;
    out += body;
  }

  [[noreturn]] void malformed(std::uint64_t offset, const std::string& what) const {
    refuse("is malformed at offset " + std::to_string(offset) + ": " + what + "; remove it and start the job again");
  }

  // A lock of the open file where there is one: the older kind is lost when any descriptor of the file is closed,
  // and does not keep two threads apart.
  [[nodiscard]] bool try_lock(short kind, off_t place = content_lock) const {
    struct flock range {};
    range.l_type = kind;
    range.l_whence = SEEK_SET;
    range.l_start = place;
    range.l_len = 1;
#ifdef F_OFD_SETLK
    const int command = F_OFD_SETLK;
#else
    const int command = F_SETLK;
#endif
    while (::fcntl(file_, command, &range) != 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EACCES) return false;
      if (kind == F_UNLCK) return false;  // called by a destructor; the lock goes with the descriptor
      refuse("cannot be locked: " + system_text());
    }
    return true;
  }

  /// Lets go of every lock in one step. One who leaves does so while it holds the lock of the content: were that given
  /// back first, the next to leave could still find this one among the users, and neither would remove the file.
  void close_file() noexcept {
    if (file_ >= 0) ::close(std::exchange(file_, -1));
  }

  /// Makes the file that has been opened this object's, or closes it. Returns whether it still has a name.
  [[nodiscard]] bool begin(deadline until) try {
    const lock held(*this, F_WRLCK, until);
    return begin_alone();
  } catch (...) {
    close_file();
    throw;
  }

  [[nodiscard]] bool begin_alone() try {
    struct stat about {};
    if (::fstat(file_, &about) != 0) refuse("cannot be examined: " + system_text());
    if (!S_ISREG(about.st_mode)) refuse("is not a plain file");
    if (about.st_nlink == 0) {  // its last user went between the opening and the lock
      close_file();
      return false;
    }
    if (lifetime_ == file_lifetime::temporary) join_users(about);
    if (about.st_size == 0) write_header();
    check_header();
    return true;
  } catch (...) {
    close_file();
    throw;
  }

  /// A file that was begun as one to keep is kept, whoever opens it.
  void join_users(struct stat& about) {
    if (about.st_size != 0 && !begun_as_temporary(about)) {
      lifetime_ = file_lifetime::kept;
      return;
    }
    if (about.st_size != 0 && try_lock(F_WRLCK, users_lock)) {  // whoever wrote it is gone
      if (::ftruncate(file_, 0) != 0) refuse("cannot be begun anew: " + system_text());
      about.st_size = 0;
    }
    if (!try_lock(F_RDLCK, users_lock)) refuse("cannot be shared: " + system_text());
  }

  [[nodiscard]] bool begun_as_temporary(const struct stat& about) const {
    if (static_cast<std::uint64_t>(about.st_size) < header_bytes) return false;
    char head[header_bytes] = {};
    read_at(0, head, sizeof head);
    return std::string_view(head, magic.size()) == magic && head[lifetime_offset] != 0;
  }

  /// Opening and leaving exclude each other by the lock of the content: nobody can come between the look and the
  /// removal. Who cannot get it leaves the file to the next job.
  void leave_users() noexcept try {
    const lock held(*this, F_WRLCK, std::chrono::steady_clock::now());
    if (try_lock(F_WRLCK, users_lock)) (void)::unlink(path_.c_str());
    close_file();
  } catch (...) {}

  void write_header() {
    std::string header(magic);
    byte_writer to(header);
    to.number(job_).number(static_cast<std::uint64_t>(lifetime_)).number(header_bytes);
    header.resize(header_bytes, '\0');
    write_at(0, header);
  }

  void check_header() {
    struct stat about {};
    if (::fstat(file_, &about) != 0) refuse("cannot be examined: " + system_text());
    if (static_cast<std::uint64_t>(about.st_size) < header_bytes) malformed(0, "too short for a store");
    char head[header_bytes] = {};
    read_at(0, head, sizeof head);
    if (std::string_view(head, magic.size()) != magic) malformed(0, "not a file of this library");
    const auto job = get_little<std::uint64_t>(reinterpret_cast<const unsigned char*>(head) + job_offset);
    if (job != job_) {
      throw error(errc::wrong_job, describe() + " belongs to another job: it holds job id " + std::to_string(job) +
                                       ", this one is " + std::to_string(job_) + "; remove it or choose another path");
    }
    read_to_ = header_bytes;
    (void)committed();
  }

  [[nodiscard]] std::uint64_t committed() const {
    struct stat about {};
    if (::fstat(file_, &about) != 0) refuse("cannot be examined: " + system_text());
    if (about.st_nlink == 0) refuse("was deleted while it was in use");
    unsigned char mark[8] = {};
    read_at(end_offset, reinterpret_cast<char*>(mark), sizeof mark);
    const auto end = get_little<std::uint64_t>(mark);
    if (end < read_to_ || end > static_cast<std::uint64_t>(about.st_size)) {
      malformed(end_offset,
                "an end at " + std::to_string(end) + " in a file of " + std::to_string(about.st_size) + " bytes");
    }
    return end;
  }

  void read_at(std::uint64_t offset, char* to, std::size_t size) const {
    for (std::size_t done = 0; done < size;) {
      const ssize_t n = ::pread(file_, to + done, size - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) refuse("cannot be read: " + system_text());
      if (n == 0) malformed(offset + done, "the file ends in the middle of a record");
      done += static_cast<std::size_t>(n);
    }
  }

  void write_at(std::uint64_t offset, std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) refuse("cannot be written: " + system_text());
      bytes.remove_prefix(static_cast<std::size_t>(n));
      offset += static_cast<std::uint64_t>(n);
    }
  }

  std::string path_;
  std::uint64_t job_;
  file_lifetime lifetime_;
  int file_ = -1;
  std::uint64_t read_to_ = 0;
};

}  // namespace cohort::detail
