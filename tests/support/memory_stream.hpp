// SPDX-License-Identifier: BSL-1.0
// A byte_stream without a socket, which takes and gives as little as it pleases, and a message for two ends of one.
#pragma once

#include "between.hpp"

#include <doctest/doctest.h>

#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/request.hpp>

#include <boost/asio/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

namespace harness {

using cohort::transport::byte_stream;
using cohort::transport::piece;
using cohort::transport::request;

/// Bytes in one direction, with room for a few of them.
struct pipe {
  std::deque<std::byte> bytes{};
  std::size_t room = 0;
  bool closed = false;
};

class memory_stream final : public byte_stream {
 public:
  memory_stream(pipe& out, pipe& in, generator& random, std::size_t unasked = 0)
      : out_(&out), in_(&in), random_(&random), unasked_(unasked) {}
  std::size_t send(std::span<const piece> from, boost::system::error_code& failure) override {
    if (out_->closed) failure = boost::asio::error::broken_pipe;
    std::size_t sent = 0;
    std::size_t free = out_->closed ? 0 : out_->room - std::min(out_->room, out_->bytes.size());
    free = free == 0 ? 0 : between(*random_, 0, free);
    for (const piece& p : from) {
      const std::size_t part = std::min(p.bytes, free - sent);
      out_->bytes.insert(out_->bytes.end(), p.data, p.data + part);
      sent += part;
    }
    return sent;
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code& failure) override {
    if (in_->bytes.empty() && in_->closed) failure = boost::asio::error::eof;
    std::size_t most = in_->bytes.empty() ? 0 : between(*random_, 1, in_->bytes.size());
    std::size_t got = 0;
    for (const piece& p : into) {
      const std::size_t part = std::min(p.bytes, most);
      std::copy_n(in_->bytes.begin(), part, p.data);
      in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<std::ptrdiff_t>(part));
      got += part;
      most -= part;
    }
    return got;
  }
  void close() noexcept override { out_->closed = true; }
  [[nodiscard]] std::size_t eager_limit() const noexcept override { return unasked_; }

 private:
  pipe* out_;
  pipe* in_;
  generator* random_;
  std::size_t unasked_;
};

/// A message, both ends of it: pieces of any lengths in the sender's memory and in the receiver's.
struct message {
  std::vector<std::byte> from{};
  std::vector<std::byte> to{};
  std::vector<std::byte> used{};  // what the receiver was told of, if it uses its message while it arrives
  std::vector<std::byte> scratch{};
  std::vector<piece> out{};
  std::vector<piece> in{};
  request send{};
  request receive{};

  message(generator& random, std::size_t bytes, bool streams) : from(bytes), to(bytes) {
    for (std::byte& b : from) b = static_cast<std::byte>(random());
    cut_into(out, from.data(), bytes, random);
    send.sending = true;
    if (streams) {
      // All pieces in one place, as the executor of schedules has them.
      used.resize(bytes);
      const std::size_t length = 7 * between(random, 500, 20000);
      scratch.resize(length);
      for (std::size_t done = 0; done < bytes; done += length)
        in.push_back({scratch.data(), std::min(length, bytes - done)});
      receive.piece_filled = [](const request& r, std::size_t number, std::size_t offset, const std::byte* data,
                                std::size_t n) noexcept {
        auto& self = *static_cast<message*>(r.room);
        for (std::size_t i = 0; i < number; ++i) offset += r.pieces[i].bytes;
        CHECK(offset % 7 == 0);
        std::memcpy(self.used.data() + offset, data, n);
      };
      receive.room = this;
    } else {
      cut_into(in, to.data(), bytes, random);
    }
    send.header.bytes = receive.header.bytes = bytes;
    send.header.context = receive.header.context = 5;
    send.pieces = out.data();
    send.piece_count = out.size();
    receive.pieces = in.data();
    receive.piece_count = in.size();
  }
  message(const message&) = delete;
  message& operator=(const message&) = delete;

  static void cut_into(std::vector<piece>& into, std::byte* data, std::size_t bytes, generator& random) {
    while (bytes > 0) {
      const std::size_t n = std::min<std::size_t>(bytes, between(random, 1, 1 + bytes / 3));
      into.push_back({data, n});
      if (between(random, 0, 3) == 0) into.push_back({});  // of no bytes
      data += n;
      bytes -= n;
    }
  }
  [[nodiscard]] bool arrived() const { return (receive.piece_filled == nullptr ? to : used) == from; }
};

}  // namespace harness
