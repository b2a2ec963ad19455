// SPDX-License-Identifier: BSL-1.0
// One stream to one peer: a queue of frames out, a parser of frames in, payloads straight between the stream
// and the caller's buffers. Owned by tcp.hpp, which knows what the frames mean.
#pragma once

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/frame_pool.hpp>
#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/frame.hpp>
#include <cohort/transport/matching.hpp>
#include <cohort/transport/places.hpp>
#include <cohort/transport/send_burst.hpp>
#include <cohort/transport/shm/copy_choice.hpp>
#include <cohort/transport/shm/early_choice.hpp>
#include <cohort/transport/stripe_set.hpp>

#include <boost/system/errc.hpp>
#include <boost/system/error_code.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace cohort::transport {

class peer_connection;

/// What a connection asks of the endpoint that it belongs to.
class peer_connection_owner {
 public:
  peer_connection_owner() = default;
  peer_connection_owner(const peer_connection_owner&) = delete;
  peer_connection_owner& operator=(const peer_connection_owner&) = delete;
  virtual ~peer_connection_owner() = default;
  /// A header came whose payload follows at once: where does it go?
  virtual void on_message(peer_connection& c, const envelope& header) = 0;
  virtual void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) = 0;
  /// A receive has all its bytes.
  virtual void on_received(peer_connection& c, request& r) = 0;
  virtual void on_sent(request& r) = 0;
  /// The peer has left the world; all that it had sent has been seen.
  virtual void on_goodbye(peer_connection& c) = 0;
  virtual void on_lost(peer_connection& c, const boost::system::error_code& why, const char* what) = 0;
  /// One of its stripes is lost, and is not to be replaced.
  virtual void on_stripe_lost(peer_connection& c, const boost::system::error_code& why, const char* what) = 0;
  /// What the other end's owner has said by `tell`. False: it can have nothing to say.
  [[nodiscard]] virtual bool on_notice(peer_connection&, std::span<const std::byte>) { return false; }
  /// Whether this rank looks at memory all the time while it waits, so that it and a sender of this host can copy at once.
  [[nodiscard]] virtual bool copies_with_senders() noexcept { return false; }
  /// How long a peer may say nothing before it is given up.
  [[nodiscard]] virtual std::chrono::nanoseconds longest_silence() const noexcept { return std::chrono::seconds{10}; }
  /// Whether the ranks of this host are more than its cores: a receiver is then likely not to be on one.
  [[nodiscard]] virtual bool shares_cores() noexcept { return false; }
  /// Whether another message of this peer's may be awaited than the last that has begun to come.
  [[nodiscard]] virtual bool awaits_another(const peer_connection&) noexcept { return true; }
  /// How often this rank has looked for messages until now; asked where bursts are gathered.
  [[nodiscard]] virtual std::uint64_t times_looked() const noexcept { return 0; }
  /// From now on short messages may wait in the stream, until this rank looks for some itself: it ends the burst first.
  virtual void on_burst(peer_connection&) noexcept {}
  /// Something is left to send, as its streams are full: said of all but short messages, which their senders look after.
  virtual void on_output(peer_connection&) {}
};

class peer_connection : public std::enable_shared_from_this<peer_connection>, private stripe_set_owner {
 public:
  /// Early messages may hold this many bytes of a receiver before their sender waits to be asked for more.
  static constexpr std::int64_t window = std::int64_t{4} << 20;
  static constexpr std::size_t longest_notice = 4096;

  peer_connection(peer_connection_owner& owner, std::unique_ptr<byte_stream> stream, int peer)
      : owner_(&owner),
        stream_(std::move(stream)),
        peer_(peer),
        same_host_(stream_->same_host()),
        eager_limit_(stream_->eager_limit()),
        staging_(staging_bytes),
        longest_silence_(owner.longest_silence()) {}

  [[nodiscard]] int peer() const noexcept { return peer_; }
  [[nodiscard]] bool open() const noexcept { return owner_ != nullptr; }
  [[nodiscard]] byte_stream& stream() noexcept { return *stream_; }
  [[nodiscard]] bool has_output() const noexcept { return head_ < queue_.size(); }
  /// How much room the stream must have for the first of it.
  [[nodiscard]] std::size_t room_needed() const noexcept {
    const outgoing& o = queue_[head_];
    return o.in_parts ? frame::size + std::min(o.total - o.sent, shortest_part) : 1;
  }
  /// How long messages between ranks of one host are copied, where there is a choice; by default, as is faster.
  void copy_by(std::optional<copying> how) noexcept { copies_ = copy_choice(how); }
  [[nodiscard]] bool peer_has_left() const noexcept { return peer_has_left_; }
  /// The first stream has ended in good order, before the others.
  [[nodiscard]] bool over() const noexcept { return over_; }

  /// The streams beside the first one, made when they are first asked for.
  [[nodiscard]] stripe_set& stripes() {
    if (stripes_ == nullptr) stripes_ = std::make_unique<stripe_set>(static_cast<stripe_set_owner&>(*this));
    return *stripes_;
  }
  [[nodiscard]] stripe_set* stripes_if_any() const noexcept { return stripes_.get(); }
  /// From now on long sends go over so many other streams, which are being opened.
  void use_stripes(std::size_t number) {
    stripes().count_on(number);
    stripes_sends_ = true;
  }
  /// Whether a send of this communicator waits for the peer to ask for it.
  [[nodiscard]] bool awaits_grant(std::uint64_t context, bool tagged_only) const noexcept {
    return std::any_of(announced_.begin(), announced_.end(), [=](const auto& a) {
      return a.second->header.context == context && (a.second->tagged() || !tagged_only);
    });
  }

  /// Whether more can come, and nothing is coming of which a part is here.
  [[nodiscard]] bool between_frames() const noexcept {
    return open() && header_filled_ == 0 && payload_left_ == 0 && behind_left_ == 0;
  }
  /// Whether this end is in the midst of a message either way, and the peer has the next word.
  [[nodiscard]] bool awaits_more() const noexcept {
    return !between_frames() || !announced_.empty() || !granted_.empty();
  }

  /// Whether what is coming is a long message that nobody has asked for: in the stream its rest may wait until somebody does, and
  /// need not be copied twice. Whoever has waited some time reads it all the same: its sender may wait for that.
  [[nodiscard]] bool rest_can_wait() const noexcept {
    return early_ != nullptr && !same_host_ && early_->header.bytes >= long_message && !owner_->awaits_another(*this);
  }

  /// Short messages that follow each other closely may leave together, from now on.
  void gather_bursts() noexcept { gathers_bursts_ = true; }
  /// What waits in the stream leaves.
  void end_burst() noexcept {
    if (std::exchange(in_burst_, false)) (void)stream_->let_wait(false);
  }

  void send(request& r);
  /// Sends a short message and needs nothing of the caller's any more: what the stream has no room for is copied.
  /// False: nothing was sent, a request is needed.
  [[nodiscard]] bool send_now(const envelope& header, const piece& payload);
  /// Nothing more is sent after this, and no receive is posted.
  void say_goodbye() {
    enqueue_frame(frame_kind::goodbye, envelope{}, 0);
    if (stripes_ != nullptr) stripes_->say_goodbye();
  }
  /// Says something to the other end's owner, behind all that was sent before.
  ///
  /// Needs: at most `longest_notice` bytes in all, and more than none
  void tell(std::span<const piece> what);
  /// The same through memory that both ends see, which is this connection's stream, in one place and without a copy in between.
  ///
  /// Result: false: nothing was sent, by `send_now` it may be
  template <class Memory>
  [[nodiscard]] bool write_in_place(Memory& memory, const envelope& header, const piece& payload) noexcept;
  /// Takes the message at the front of that memory, if it is whole and what is expected.
  ///
  /// Needs:  nobody else waits for it, `between_frames`, there is something
  /// Result: false: nothing was taken, a request is needed
  template <class Memory>
  [[nodiscard]] bool take_in_place(Memory& memory, const envelope& expected, const piece& into, std::uint64_t& came);
  /// The same of one that is not whole, as long as `rest_comes(bytes that are missing)` says that more has come.
  ///
  /// Result: false: a request is needed, and the connection may have ended
  template <class Memory, class RestComes>
  [[nodiscard]] bool take_in_parts(Memory& memory, const envelope& expected, const piece& into, std::uint64_t& came,
                                   const RestComes& rest_comes);
  enum class first_message : unsigned char { none, taken, another };
  /// The same of a stream that shows nothing before it is read: what has come is read, the rest of it too if it comes at once, and if it
  /// is not what is expected, goes where it would have gone anyway.
  ///
  /// Result: none: nothing has come; another: a request is needed, the connection may have ended
  [[nodiscard]] first_message receive_first(const envelope& expected, const piece& into, std::uint64_t& came);
  void grant(request& receive, std::uint64_t ticket);
  /// A receive has taken an early message whose bytes are still arriving: those that have come are copied, and the others go
  /// to their place directly. The message is not used any more.
  void claim(const early_message& message, request& receive);
  /// An early message is about to be discarded: if it is arriving, the rest of it is read and forgotten.
  void forget(const early_message& message) noexcept {
    if (early_ == &message) early_ = nullptr;
  }
  /// The same of all of them.
  void forget(std::uint64_t context) noexcept {
    if (early_ != nullptr && early_->header.context == context) early_ = nullptr;
    std::erase_if(offered_, [context](const offered& o) { return o.header.context == context && !o.comes_in_vain(); });
  }
  /// An early message was consumed: its space belongs to the sender again.
  void return_credit(std::size_t bytes);

  /// How many bytes come with this announcement: none, or as many as may come unasked. Who sends them need not stop for the
  /// answer.
  [[nodiscard]] std::size_t comes_along(std::uint64_t ticket) const noexcept {
    return (ticket & begun_ticket) != 0 ? eager_limit_ : 0;
  }

  // What on_message answers with, and on_announce for what comes along.
  void land_in(request& receive) noexcept { target_ = &receive; }
  void land_in(early_message& message) noexcept { early_ = &message; }

  void withdraw(request& r);

  /// Whether this end waits for parts of a message that it could read itself.
  [[nodiscard]] bool waits_for_parts() const noexcept { return awaiting_ > 0; }
  /// Reads the rest of a message whose sender has not gone on for a while, or of all of them at once.
  ///
  /// Needs: nothing has come that was not read
  bool read_overdue(bool all);
  /// Whether there may be something for `copy_share` to do.
  [[nodiscard]] bool has_shares() const noexcept { return shares_left_ || !puts_.empty(); }
  /// Copies a share of what comes, and one of what goes. False: there was none.
  bool copy_share();
  /// Whether a sender has written what this end waits for to its place.
  [[nodiscard]] bool shares_have_come() const noexcept;

  bool try_read();
  bool try_write();
  /// Closes the stream; no callback comes after it.
  void close() noexcept;

 private:
  static constexpr std::size_t staging_bytes = std::size_t{64} << 10;
  /// Where reading costs no system call, what stands behind a header is copied twice only if it is short.
  static constexpr std::size_t least_staged = std::size_t{4} << 10;
  /// Behind a message of that length another such one is expected, of which no more is copied twice than this.
  static constexpr std::size_t long_message = std::size_t{32} << 10;
  static constexpr std::size_t staged_of_long = std::size_t{16} << 10;
  /// What `receive_first` reads straight to its place, if that is its length: a list of two costs as much as to copy half of that.
  static constexpr std::size_t least_straight = std::size_t{8} << 10;
  /// In the ticket of a message that its sender can cut: whoever grants it says where.
  static constexpr std::uint64_t striped_ticket = std::uint64_t{1} << 63;
  /// In the ticket of a message of which both ends may move what is left: impl/peer_parts.hpp.
  static constexpr std::uint64_t shared_ticket = std::uint64_t{1} << 62;
  /// In the ticket of a message whose first bytes come with its announcement.
  static constexpr std::uint64_t begun_ticket = std::uint64_t{1} << 61;
  static constexpr std::size_t shortest_part = std::size_t{16} << 10;
  static constexpr std::size_t most_places = 64;
  /// Longer ones are copied once where the other end's core is not its own.
  static constexpr std::size_t always_early = std::size_t{16} << 10;

  using short_bytes = std::vector<std::byte, detail::pool_allocator<std::byte>>;

  struct outgoing {
    frame::bytes_type header{};
    request* source = nullptr;  // null: nothing but the header, or a payload of our own
    short_bytes own{};          // a payload of the connection's own, or of an operation that is gone
    std::size_t sent = 0;       // of header and payload together; in parts, of the payload
    std::size_t total = frame::size;
    std::size_t gone_before = 0;  // bytes of the source that went with its announcement
    bool begins = false;          // only the first bytes of the source
    bool in_parts = false;        // each with a header of its own
  };
  /// A message of ours of which this end writes shares to where it goes.
  struct putting {
    request* source;
    places into;
    std::uint64_t put = 0;
  };

  struct offered {
    std::uint64_t ticket;
    envelope header;
    places where;
    std::optional<copying> how{};  ///< it has been asked for, otherwise than to be read in one go
    request* receive = nullptr;
    std::uint64_t come = 0;  ///< through the ring; or of it, what this end has read
    std::chrono::steady_clock::time_point asked_for{};

    /// Its receive was dropped, and its sender may not have heard of that: parts that come are read and forgotten.
    [[nodiscard]] bool comes_in_vain() const noexcept { return how == copying::through_ring && receive == nullptr; }
  };

  void enqueue(outgoing&& o) {
    end_burst();
    queue_.push_back(std::move(o));
    try_write();
    if (has_output() && open()) owner_->on_output(*this);
  }
  /// How much is read before it is known where it goes.
  [[nodiscard]] std::size_t staged_at_once() const noexcept {
    if (same_host_) return least_staged;
    return last_was_long_ ? staged_of_long : staging_bytes;
  }
  [[nodiscard]] std::size_t rest_to_stage() const noexcept;
  /// Where the bytes that are read next go: how many, and of a message that is used piece by piece, from which piece on, and how much
  /// of that is there.
  struct landing {
    std::size_t bytes = 0;
    std::size_t index = 0;
    std::size_t skipped = 0;
  };
  [[nodiscard]] landing place_payload();
  void note_landed(const landing& there, std::size_t bytes);
  [[nodiscard]] bool goes_over_stripes(std::size_t bytes) const noexcept {
    return stripes_sends_ && bytes >= shortest_striped;
  }
  [[nodiscard]] bool may_send_early(std::size_t bytes, std::size_t pieces) const noexcept {
    if (bytes > eager_limit_ || credit_ < cost_of(bytes) || goes_over_stripes(bytes)) return false;
    if (bytes <= always_early || !same_host_) return true;
    if (bytes > early_choice::never_offered && pieces <= most_places && stream_->wants_offers()) return false;
    return owner_->copies_with_senders() && !owner_->shares_cores();
  }
  [[nodiscard]] bool continues_burst(std::size_t bytes) noexcept;
  /// A header, and room behind it for a payload that is copied sooner than it is said where it lies.
  struct short_message {
    frame::bytes_type header;
    std::byte payload[80];
  };
  [[nodiscard]] std::size_t write_first(short_message& first, const envelope& header, const piece& payload,
                                        boost::system::error_code& failure);
  void send_at_once(request& r);
  void announce(request& r);
  void send_asked(request& r);
  void enqueue_frame(frame_kind kind, const envelope& header, std::uint64_t ticket);
  void gather(const outgoing& o);
  void forget_sent();
  // long messages in parts
  [[nodiscard]] bool take_cursor(const request& r) noexcept;
  void give_cursor_back(std::uint64_t ticket) noexcept;
  void revoke(std::uint64_t ticket) noexcept;
  [[nodiscard]] bool is_revoked(std::uint64_t ticket) const noexcept;
  void forget_revoked(std::size_t index) noexcept;
  void send_in_parts(request& r);
  [[nodiscard]] bool send_part(boost::system::error_code& failure);
  void stop_parts(const request& r) noexcept;
  [[nodiscard]] bool ask_for_parts(request& receive, std::uint64_t ticket);
  [[nodiscard]] bool begin_part(const frame& f);
  void end_part();
  void forget_dropped(std::uint64_t next);
  [[nodiscard]] bool read_rest(std::size_t index);
  void come_whole(std::size_t index, copying how);
  [[nodiscard]] bool can_read(const piece& there, const piece& here) noexcept;
  [[nodiscard]] offered* offer_under(std::uint64_t ticket) noexcept {
    const auto at =
        std::find_if(offered_.begin(), offered_.end(), [ticket](const offered& o) { return o.ticket == ticket; });
    return at != offered_.end() ? &*at : nullptr;
  }
  // those that both ends copy once: impl/peer_shares.hpp
  [[nodiscard]] static outgoing frame_of_places(frame f, std::span<const piece> pieces);
  [[nodiscard]] places come_places(std::uint64_t message_bytes) const;
  [[nodiscard]] bool share(request& receive, std::uint64_t ticket);
  [[nodiscard]] bool read_share();
  enum class put_shares : unsigned char { awaited, complete, refused };
  [[nodiscard]] put_shares put_of(const offered& o) const noexcept;
  [[nodiscard]] bool end_shares();
  void stop_sharing(const offered& o) noexcept;
  [[nodiscard]] bool begin_shares();
  [[nodiscard]] bool put_share();
  void offer(request& r);
  [[nodiscard]] bool take_offered(request& receive, std::uint64_t ticket);
  [[nodiscard]] std::size_t read_piece_by_piece(const request& receive, std::span<const piece> from,
                                                std::span<const piece> into);
  void note_taken(std::size_t bytes, std::uint64_t& came);
  [[nodiscard]] bool may_be_offered(std::uint64_t bytes) const noexcept;
  void note_first(std::uint64_t bytes);
  void note_early(std::uint64_t bytes);
  void note_offered(copying how, std::uint64_t bytes, std::chrono::steady_clock::time_point since);
  bool use_behind();
  void keep_places();
  void note_read() noexcept;
  bool consume(const std::byte* data, std::size_t bytes);
  bool begin_frame(const unsigned char* bytes);
  void land(const std::byte* data, std::size_t bytes);
  void finish_payload();
  bool lose(const boost::system::error_code& why, const char* what);
  bool end_first(const boost::system::error_code& why, const char* what);

  void on_striped_send(request& r) override {
    r.place = nullptr;
    owner_->on_sent(r);
  }
  void on_striped_receive(request& r) override {
    r.place = nullptr;
    owner_->on_received(*this, r);
  }
  void on_stripe_lost(const boost::system::error_code& why, const char* what) override {
    if (open()) owner_->on_stripe_lost(*this, why, what);
  }
  void on_stripes_quiet() override;
  using tickets = std::vector<std::pair<std::uint64_t, request*>>;
  [[nodiscard]] static tickets::iterator find(tickets& all, std::uint64_t ticket) {
    return std::find_if(all.begin(), all.end(), [ticket](const auto& t) { return t.first == ticket; });
  }
  /// Takes it out of the list; null if it is not there.
  [[nodiscard]] static request* take(tickets& all, std::uint64_t ticket) {
    const auto at = find(all, ticket);
    if (at == all.end()) return nullptr;
    request* const r = at->second;
    all.erase(at);
    return r;
  }
  [[nodiscard]] static std::int64_t cost_of(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes + frame::size);
  }

  peer_connection_owner* owner_;
  std::unique_ptr<byte_stream> stream_;
  int peer_;
  // What the stream says of itself, and never says otherwise.
  const bool same_host_;
  const std::size_t eager_limit_;

  // What a short message and its answer need, side by side: behind each system call all of it comes from further away.
  bool gathers_bursts_ = false;
  bool in_burst_ = false;  // what is short may wait in the stream
  bool stripes_sends_ = false;
  bool peer_has_left_ = false;
  bool over_ = false;
  bool last_was_long_ = false;
  bool sender_awaits_reading_ = false;  // as the last header said
  bool reading_ = false;                // what has come is being read
  std::int64_t credit_ = window;
  std::int64_t owed_ = 0;
  std::size_t head_ = 0;
  std::vector<outgoing> queue_{};
  send_burst burst_{};
  detail::byte_buffer staging_;
  std::size_t header_filled_ = 0;
  std::uint64_t payload_left_ = 0;
  std::size_t behind_left_ = 0;  // bytes of a notice or of a list of places that are still to come

  std::vector<piece> out_pieces_{};
  std::uint64_t next_ticket_ = 1;
  // A few at a time: looked through from the front.
  tickets announced_{};             // ours, waiting for a grant
  tickets in_parts_{};              // ours, asked for, of which the receiver may take over the rest
  tickets granted_{};               // theirs, whose data we await
  std::vector<offered> offered_{};  // theirs, where their data lie
  std::uint64_t cursors_used_ = 0;  // a bit for each that a message of ours has
  std::size_t awaiting_ = 0;        // of `offered_`, those that a receive awaits in parts or shares
  std::vector<putting> puts_{};
  bool shares_left_ = false;      // of `offered_`, there may be shares that nobody has taken on
  bool payload_goes_on_ = false;  // what is coming are the first bytes of an announced message
  std::uint64_t part_of_ = 0;     // the ticket of the part that is coming; 0: it is none
  std::chrono::steady_clock::time_point last_news_{};
  std::chrono::steady_clock::time_point last_whole_{};  // when all of the last had come that was offered
  bool follows_whole_ = false;                          // and one was whole in the same reading
  copy_choice copies_{};
  early_choice coming_{};
  early_choice::clock::time_point early_since_{};  // when the first was seen of what comes so; of none: unset

  unsigned char header_bytes_[frame::size] = {};
  std::uint64_t payload_done_ = 0;
  bool payload_is_early_ = false;  // it counts against the window
  frame_kind comes_behind_{};      // what is behind a header belongs to
  frame share_asked_{};
  frame offer_{};                  // until its places are here it is none of `offered_`
  bool senders_may_write_ = true;  // the kernel has refused none yet
  bool has_read_ = false;          // the peer's memory: the kernel lets this process
  std::chrono::nanoseconds longest_silence_;
  request* target_ = nullptr;
  early_message* early_ = nullptr;
  std::vector<piece> in_pieces_{};
  std::vector<std::byte> behind_{};  // what has come of them

  std::unique_ptr<stripe_set> stripes_{};
};

}  // namespace cohort::transport

#include <cohort/transport/impl/peer_connection.hpp>
