// SPDX-License-Identifier: BSL-1.0
// A byte_stream between two ranks of one host: a ring in each direction, made by its writer when it first has something
// to say; where the kernel allows it, the sender's memory can be read as well.
#pragma once

#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/first_look.hpp>
#include <cohort/transport/frame.hpp>
#include <cohort/transport/patience.hpp>
#include <cohort/transport/prompt_answers.hpp>
#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/process_memory.hpp>
#include <cohort/transport/shm/ring.hpp>

namespace cohort::transport {

class shm_stream final : public byte_stream {
 public:
  /// Lifetime: `here` outlives it
  shm_stream(neighbours& here, int peer, long pid) noexcept : here_(&here), peer_(peer), process_(pid) {}

  /// The peer's ring has come.
  ///
  /// Errors: protocol_error, io_error
  void attach(owned_fd memory) { in_ = ring(shared_segment::adopt(std::move(memory), ring::segment_bytes)); }
  [[nodiscard]] bool attached() const noexcept { return static_cast<bool>(in_); }

  [[nodiscard]] bool has_data() const noexcept { return in_ && in_.has_data(); }
  [[nodiscard]] bool has_room(std::size_t bytes) noexcept { return room(bytes) >= bytes; }

  /// Whether the next message, of so many bytes with its header, is here or comes within a moment.
  [[nodiscard]] bool comes_soon(patience& how, std::size_t bytes) noexcept {
    const auto there = [this] { return has_data(); };
    if (bytes <= ring_head::beside) return how.briefly(there, when_);
    // The first lines of a longer one are written while the one that is looked at comes back to its writer.
    if (how.briefly(there)) return true;
    if (how.crowded() || bytes > longest_at_once + frame::size || !answers_.expected()) return false;
    const bool came = patience::while_copied(there, bytes);
    answers_.came(came);
    return came;
  }
  /// The same of the rest of one that has begun to come.
  [[nodiscard]] bool goes_on_soon(const patience& how, std::size_t bytes) const noexcept {
    return !how.crowded() && patience::while_copied([this] { return has_data(); }, bytes);
  }

  // --- short messages, written and looked at where they are: peer_connection::write_in_place, take_in_place
  /// Where so many bytes go that are next, to be written there, in words, and then sent by `placed`; null where there is no room for
  /// so many in a row: `send` takes them. A place that is not used is as if it had not been asked for.
  [[nodiscard]] std::byte* place(std::size_t bytes) noexcept {
    return handed_over_ ? out_.place_beside(bytes) : nullptr;
  }
  void placed(std::size_t bytes) noexcept {
    out_.wrote_beside(bytes);
    wake();
  }
  /// The next bytes, as many as there are in a row; until some are taken. The other end may write to them meanwhile: a length is
  /// checked where it is used. Needs: `has_data`.
  [[nodiscard]] std::span<const std::byte> front() const noexcept { return in_.front(); }
  /// Takes `seen` bytes off the front, and those of `into` behind them. Needs: all of them are there.
  void take(std::size_t seen, const piece& into) noexcept {
    in_.take(seen, into);
    made_room();
  }

  std::size_t send(std::span<const piece> from, boost::system::error_code& failure) override {
    if (!handed_over_ && !open_out(failure)) return 0;
    const ring::outcome sent = out_.write(from);
    // Where it must be waited for, somebody has to say that there is room, be it this rank.
    if (!sent.all && room(1) > 0 && here_->sleeps()) here_->ring(here_->rank());
    wake();
    return sent.bytes;
  }
  std::size_t receive(std::span<const piece> into, boost::system::error_code&) override {
    if (!in_) return 0;
    const std::size_t got = in_.read(into);
    if (got > 0) made_room();
    return got;
  }
  void close() noexcept override {}

  [[nodiscard]] std::size_t eager_limit() const noexcept override { return longest_at_once; }
  void want_offers(bool are_wanted) noexcept override {
    std::atomic<std::uint32_t>& said = in_.head().offers;
    const std::uint32_t now = are_wanted ? 1 : 0;
    if (said.load(std::memory_order_relaxed) != now) said.store(now, std::memory_order_relaxed);
  }
  [[nodiscard]] bool wants_offers() const noexcept override {
    return out_ && out_.head().offers.load(std::memory_order_relaxed) != 0;
  }
  [[nodiscard]] cursor* outgoing_cursor(std::size_t number) noexcept override {
    boost::system::error_code failure;  // which the send that follows meets again, and tells
    if (!out_) (void)open_out(failure);
    return out_ ? &out_.head().cursors[number] : nullptr;
  }
  [[nodiscard]] cursor* incoming_cursor(std::size_t number) noexcept override {
    return in_ ? &in_.head().cursors[number] : nullptr;
  }
  void wake_peer() noexcept override { wake(); }
  [[nodiscard]] std::size_t room(std::size_t wanted) noexcept override {
    if (!handed_over_) return out_ && here_->has_waiting(peer_) ? 0 : ring::capacity;
    std::size_t there = out_.room();
    if (there >= wanted || out_.head().full.load(std::memory_order_relaxed) != 0) return there;
    out_.head().full.store(1, std::memory_order_relaxed);
    if (here_->sleeps()) {
      here_->look_anew();
      there = out_.room();
    }
    return there;
  }
  [[nodiscard]] bool same_host() const noexcept override { return true; }
  bool read_peer(std::span<const piece> from, std::span<const piece> into) noexcept override {
    return process_.read(from, into);
  }
  bool write_peer(std::span<const piece> from, std::span<const piece> into) noexcept override {
    return process_.write(from, into);
  }
  [[nodiscard]] bool peer_is_gone() const noexcept override { return process_.is_gone(); }

 private:
  static constexpr std::size_t longest_at_once = std::size_t{64} << 10;
  /// What is written counts as sent: so nothing is before the peer can find it without this rank's doing anything more.
  bool open_out(boost::system::error_code& failure) {
    try {
      if (!out_) {
        out_ = ring::create();
        here_->send(peer_, letter_kind::link, 0, 0, out_.memory());
        out_.close_descriptor();
      }
      handed_over_ = !here_->has_waiting(peer_);
      return handed_over_;
    } catch (const error&) {
      out_ = ring{};
      failure.assign(ENOMEM, boost::system::system_category());
      return false;
    }
  }
  void made_room() noexcept {
    if (in_.head().full.load(std::memory_order_relaxed) == 0) return;
    in_.tell_read();
    in_.head().full.store(0, std::memory_order_relaxed);
    wake();
  }
  void wake() noexcept {
    here_->written();
    if (here_->asleep(peer_).load(std::memory_order_relaxed) != 0) here_->ring(peer_);
  }

  neighbours* here_;
  int peer_;
  process_memory process_;
  ring out_{};
  bool handed_over_ = false;  // its letter waits for no room
  ring in_{};
  first_look when_{};
  prompt_answers answers_{};  // of messages that do not stand beside their word
};

}  // namespace cohort::transport
