// SPDX-License-Identifier: BSL-1.0
// A byte_stream between two ends in this process that may read each other's memory, as ranks of one host do.
#pragma once

#include <cohort/transport/byte_stream.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <span>

namespace harness {

/// What one end writes and the other reads.
struct direction {
  using byte_stream = cohort::transport::byte_stream;
  std::deque<std::byte> bytes{};
  std::size_t hidden = 0;  ///< of them, the last ones, which have not arrived yet
  std::array<byte_stream::cursor, byte_stream::cursors> cursors{};
};

class host_stream final : public cohort::transport::byte_stream {
 public:
  using piece = cohort::transport::piece;

  /// `reads`: what happens while this end reads a message out of the other's memory; false: it cannot.
  host_stream(direction& out, direction& in, const std::function<bool()>& reads)
      : out_(&out), in_(&in), reads_(&reads) {}
  std::size_t send(std::span<const piece> from, boost::system::error_code&) override {
    std::size_t sent = 0;
    for (const piece& p : from) {
      out_->bytes.insert(out_->bytes.end(), p.data, p.data + p.bytes);
      sent += p.bytes;
    }
    return sent;
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code&) override {
    std::size_t got = 0;
    for (const piece& p : into) {
      const std::size_t part = std::min(p.bytes, in_->bytes.size() - in_->hidden);
      std::copy_n(in_->bytes.begin(), part, p.data);
      in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<std::ptrdiff_t>(part));
      got += part;
    }
    return got;
  }
  void close() noexcept override {}
  [[nodiscard]] std::size_t eager_limit() const noexcept override { return 1000; }
  [[nodiscard]] bool same_host() const noexcept override { return true; }
  [[nodiscard]] cursor* outgoing_cursor(std::size_t n) noexcept override { return &out_->cursors[n]; }
  [[nodiscard]] cursor* incoming_cursor(std::size_t n) noexcept override { return &in_->cursors[n]; }
  bool read_peer(std::span<const piece> from, std::span<const piece> into) noexcept override {
    const bool message = into[0].bytes > 1;  // one byte is read to find out whether that is allowed
    if (message && *reads_ && !(*reads_)()) return false;
    std::size_t at = 0;
    std::size_t used = 0;
    for (const piece& p : into) {
      for (std::size_t done = 0; done < p.bytes;) {
        const std::size_t part = std::min(p.bytes - done, from[at].bytes - used);
        std::memcpy(p.data + done, from[at].data + used, part);
        done += part;
        used += part;
        if (used < from[at].bytes) continue;
        used = 0;
        ++at;
      }
    }
    return true;
  }

 private:
  direction* out_;
  direction* in_;
  const std::function<bool()>* reads_;
};

}  // namespace harness
