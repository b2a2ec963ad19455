// SPDX-License-Identifier: BSL-1.0
// The streams beside the first one between two ranks: each takes the next chunk of a long message when it has room, in
// either direction. Between stripes.hpp, which cuts, and peer_connection.hpp, which agrees with the peer on what comes.
#pragma once

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/request.hpp>
#include <cohort/transport/stripes.hpp>

#include <boost/system/errc.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace cohort::transport {

/// Whoever has the streams.
class stripe_set_owner {
 public:
  stripe_set_owner() = default;
  stripe_set_owner(const stripe_set_owner&) = delete;
  stripe_set_owner& operator=(const stripe_set_owner&) = delete;
  virtual ~stripe_set_owner() = default;
  /// The streams have taken all of it.
  virtual void on_striped_send(request& r) = 0;
  /// All of it is here.
  virtual void on_striped_receive(request& r) = 0;
  /// One stream is lost, and what it carried with it. None of them is used any more.
  virtual void on_stripe_lost(const boost::system::error_code& why, const char* what) = 0;
  /// Nothing that was asked for is on its way any more.
  virtual void on_stripes_quiet() = 0;
};

class stripe_set {
 public:
  explicit stripe_set(stripe_set_owner& owner) noexcept : owner_(&owner) {}

  // --- messages
  /// The peer has asked for it. It goes over whatever is open; what opens later helps.
  ///
  /// Needs: can_be_cut(r.header.bytes, unit)
  void send(request& r, std::uint64_t ticket, std::uint64_t unit);
  /// It is being asked for, with `unit_of(r)`.
  void expect(request& r, std::uint64_t ticket);
  /// Where its chunks may be cut; 0: nowhere, it must come whole.
  [[nodiscard]] static std::uint64_t unit_of(const request& receive) noexcept;
  /// No byte of the caller's is used after this. A chunk that has begun is ended with a copy of the rest, one that has not
  /// begun is never sent: its communicator has failed on both sides. What comes for a withdrawn receive is forgotten.
  ///
  /// Cost: the peer, if it had asked for the message, remembers until the connection ends that not all of it came
  void withdraw(request& r);
  /// Whether a message is on its way here that somebody waits for.
  [[nodiscard]] bool awaits() const noexcept {
    return std::any_of(coming_.begin(), coming_.end(), [](const coming& c) { return c.receive != nullptr; });
  }
  /// The same, of this communicator.
  [[nodiscard]] bool awaits(std::uint64_t context) const noexcept {
    return std::any_of(coming_.begin(), coming_.end(), [context](const coming& c) {
      return c.receive != nullptr && c.receive->header.context == context;
    });
  }
  /// Whether any message is under way that somebody waits for.
  [[nodiscard]] bool busy() const noexcept { return !going_.empty() || awaits(); }

  // --- streams, by number from 0
  /// So many are to be opened: messages are cut for as many, also before they are there.
  void count_on(std::size_t streams) noexcept { wanted_ = std::max(wanted_, streams); }
  void open(std::size_t stream, std::unique_ptr<byte_stream> over);
  [[nodiscard]] std::size_t size() const noexcept { return lanes_.size(); }
  [[nodiscard]] bool is_open(std::size_t stream) const noexcept {
    return open_ && stream < lanes_.size() && lanes_[stream].carries();
  }
  [[nodiscard]] bool has_output(std::size_t stream) const noexcept;
  bool try_write(std::size_t stream) { return write(stream, chunks_a_turn); }
  bool try_read(std::size_t stream);
  /// Nothing more is sent after what is on its way.
  void say_goodbye();
  /// No callback comes after it.
  void close() noexcept;

 private:
  // Each turn of one stream is short enough for the others to have theirs.
  static constexpr std::size_t chunks_a_turn = 4;
  static constexpr std::size_t most_pieces = 60;

  struct lane {
    std::unique_ptr<byte_stream> stream{};
    bool ended = false;  // in good order
    [[nodiscard]] bool carries() const noexcept { return stream != nullptr && !ended; }
    // What goes.
    bool writing = false;
    bool said_goodbye = false;
    chunk out{};
    chunk::bytes_type out_header{};
    request* source = nullptr;     // null: a chunk of an operation that is gone
    std::vector<std::byte> own{};  // the whole of that chunk
    std::size_t sent = 0;          // of header and bytes together
    // What comes.
    bool peer_said_goodbye = false;
    std::size_t header_filled = 0;
    unsigned char in_header[chunk::header_bytes] = {};
    chunk in{};
    std::size_t arrived = 0;
    detail::byte_buffer held{};  // where a chunk arrives that may not lie where it belongs
  };
  struct going {
    request* source;
    chunk_cutter cutter;
    std::size_t under_way;  // chunks that streams have begun
  };
  struct coming {
    request* receive;  // null: withdrawn
    std::uint64_t ticket;
    chunk_ledger ledger;
  };

  void spread();
  bool write(std::size_t stream, std::size_t most_chunks);
  [[nodiscard]] bool take_chunk(lane& l);
  [[nodiscard]] bool any_uncut() const noexcept {
    return std::any_of(going_.begin(), going_.end(), [](const going& g) { return !g.cutter.done(); });
  }
  void gather(const lane& l);
  void chunk_sent(lane& l);
  [[nodiscard]] std::size_t aim(lane& l);
  [[nodiscard]] bool begin_chunk(lane& l);
  void finish_chunk(lane& l);
  [[nodiscard]] coming* find_coming(std::uint64_t ticket) noexcept;
  [[nodiscard]] static bool is_held(const coming& c) noexcept {
    return c.receive == nullptr || c.receive->piece_filled != nullptr;
  }
  void end_lane(lane& l, const boost::system::error_code& why, const char* what);
  bool lose(const boost::system::error_code& why, const char* what) {
    if (std::exchange(open_, false)) owner_->on_stripe_lost(why, what);
    return false;
  }

  stripe_set_owner* owner_;
  std::vector<lane> lanes_{};
  // A few at a time: looked through from the front.
  std::vector<going> going_{};
  std::vector<coming> coming_{};
  std::vector<piece> pieces_{};
  std::size_t wanted_ = 1;
  bool leaving_ = false;
  bool open_ = true;
};

}  // namespace cohort::transport

#include <cohort/transport/impl/stripe_set.hpp>
