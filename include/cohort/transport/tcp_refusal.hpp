// SPDX-License-Identifier: BSL-1.0
// Remembers who was turned away last because of TLS. A stranger must not end a job: only when ranks are missing in the end
// does the rank that waited for them tell who had come. Written by the listeners, read by connect.hpp.
#pragma once

#include <cohort/transport/hello.hpp>

#include <boost/asio/ip/tcp.hpp>

#include <mutex>
#include <string>
#include <utility>

namespace cohort::transport {

/// Any thread.
class tcp_refusal {
 public:
  /// At a listener without TLS.
  void write_tls_client(const boost::asio::ip::tcp::endpoint& from) {
    write(from, "it speaks TLS, this process does not: " + std::string(tls_everywhere));
  }
  void write(const boost::asio::ip::tcp::endpoint& from, const std::string& why) {
    std::string text = "a connection from " + from.address().to_string() + ":" + std::to_string(from.port()) +
                       " failed meanwhile: " + why;
    const std::lock_guard lock(mutex_);
    text_ = std::move(text);
  }
  /// "" if nobody was.
  [[nodiscard]] std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_{};
  std::string text_{};
};

}  // namespace cohort::transport
