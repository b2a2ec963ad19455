// SPDX-License-Identifier: BSL-1.0
// A connection of the liveness thread: short length-prefixed frames both ways, bounded in size and number.
// Used by both ends of tcp_monitor.hpp; lives on one thread.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/transport/monitor_wire.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_link.hpp>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace cohort::transport {

class tcp_control_link : public std::enable_shared_from_this<tcp_control_link> {
 public:
  using on_frame_type = std::function<void(monitor_message, std::string_view)>;
  using on_end_type = std::function<void(const boost::system::error_code&)>;

  explicit tcp_control_link(tcp_link link) noexcept : link_(std::move(link)) {}

  /// Reads frames until the link ends; `on_end` is called once, unless `close` was called first.
  void start(on_frame_type on_frame, on_end_type on_end) {
    on_frame_ = std::move(on_frame);
    on_end_ = std::move(on_end);
    boost::system::error_code ignored;
    link_.socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    close_on_exec(link_.socket().native_handle());
    read_header();
  }

  void send(monitor_message type, const std::string& payload) {
    if (closed_) return;
    // A peer that does not read for so long is found silent by its heartbeat; nothing is kept for it.
    if (queue_.size() >= most_queued) return;
    std::string bytes;
    detail::byte_writer(bytes).number(static_cast<std::uint32_t>(payload.size() + 1));
    bytes.push_back(static_cast<char>(type));
    bytes += payload;
    queue_.push_back(std::move(bytes));
    if (queue_.size() == 1) write_next();
  }

  /// Sends what is queued, then closes. No callback comes after it.
  void close_after_sending() {
    on_frame_ = nullptr;
    on_end_ = nullptr;
    closing_ = true;
    if (queue_.empty()) close();
  }
  void close() {
    closed_ = true;
    on_frame_ = nullptr;
    on_end_ = nullptr;
    link_.close();
  }
  [[nodiscard]] bool idle() const noexcept { return queue_.empty(); }
  [[nodiscard]] bool closed() const noexcept { return closed_; }

 private:
  static constexpr std::size_t most_queued = 4096;

  void read_header() {
    link_.read_all(boost::asio::buffer(header_),
                   [self = shared_from_this()](const boost::system::error_code& failure, std::size_t) {
                     if (failure) return self->end(failure);
                     const auto size = detail::get_little<std::uint32_t>(self->header_.data());
                     if (size == 0 || size > monitor_frame_limit) {
                       return self->end(boost::asio::error::message_size);
                     }
                     self->payload_.resize(size);
                     self->read_payload();
                   });
  }
  void read_payload() {
    link_.read_all(boost::asio::buffer(payload_),
                   [self = shared_from_this()](const boost::system::error_code& failure, std::size_t) {
                     if (failure) return self->end(failure);
                     const auto type = static_cast<monitor_message>(self->payload_[0]);
                     // The handler may close this link and with it itself.
                     const on_frame_type handler = self->on_frame_;
                     if (handler) handler(type, std::string_view(self->payload_).substr(1));
                     if (!self->closed_) self->read_header();
                   });
  }
  void write_next() {
    link_.write_all(boost::asio::buffer(queue_.front()),
                    [self = shared_from_this()](const boost::system::error_code& failure, std::size_t) {
                      if (self->closed_) return;
                      if (failure) return self->end(failure);
                      self->queue_.pop_front();
                      if (!self->queue_.empty()) return self->write_next();
                      if (self->closing_) self->close();
                    });
  }
  void end(const boost::system::error_code& why) {
    if (closed_) return;
    const on_end_type handler = on_end_;
    close();
    if (handler) handler(why);
  }

  tcp_link link_;
  std::array<unsigned char, 4> header_{};
  std::string payload_{};
  std::deque<std::string> queue_{};
  on_frame_type on_frame_{};
  on_end_type on_end_{};
  bool closing_ = false;
  bool closed_ = false;
};

}  // namespace cohort::transport
