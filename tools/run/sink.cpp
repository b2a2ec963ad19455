// SPDX-License-Identifier: BSL-1.0
#include "sink.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>

namespace cohort::tool {

sink::sink(int fd) : fd_(fd) {
  struct stat kind {};
  if (::fstat(fd, &kind) != 0) {
    error_ = errno;
    return;
  }
  terminal_ = ::isatty(fd) == 1;
  socket_ = S_ISSOCK(kind.st_mode);
  if (!terminal_ && !S_ISFIFO(kind.st_mode)) return;
  // Opening it again gives a description of our own, which may be non-blocking without the shell noticing.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  own_ = unique_fd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  may_block_ = !own_;
  if (own_) fd_ = own_.get();
}

ssize_t sink::put(const char* data, std::size_t size) {
  if (socket_) return ::send(fd_, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (may_block_) {
    // A pipe that polls writable takes at least PIPE_BUF bytes at once.
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, 0) == 0) {
      errno = EAGAIN;
      return -1;
    }
    size = std::min<std::size_t>(size, PIPE_BUF);
  }
  return ::write(fd_, data, size);
}

void sink::write(std::string text) {
  if (error_ != 0 || text.empty()) return;
  pending_ += text.size();
  queue_.push_back(std::move(text));
  if (queue_.size() == 1) flush();
}

bool sink::flush() {
  while (!queue_.empty()) {
    const std::string& first = queue_.front();
    const ssize_t put_now = put(first.data() + sent_, first.size() - sent_);
    if (put_now < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
      error_ = errno;
      queue_.clear();
      pending_ = sent_ = 0;
      return true;
    }
    sent_ += static_cast<std::size_t>(put_now);
    pending_ -= static_cast<std::size_t>(put_now);
    if (sent_ == first.size()) {
      queue_.pop_front();
      sent_ = 0;
    }
  }
  return true;
}

}  // namespace cohort::tool
