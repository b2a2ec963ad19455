// SPDX-License-Identifier: BSL-1.0
// The MPI transport: point-to-point messages with the library's own matching, so that every message is held against
// its receive, over any MPI library; between ranks of one host, and in their collectives, in memory. Driven by whoever
// waits; no thread. The bodies are in impl/.
#pragma once

#include <cohort/detail/byte_buffer.hpp>
#include <cohort/detail/config.hpp>
#include <cohort/detail/fifo.hpp>
#include <cohort/mpi/datatype.hpp>
#include <cohort/mpi/device_memory.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/native_turn.hpp>
#include <cohort/mpi/of_two.hpp>
#include <cohort/mpi/packet.hpp>
#include <cohort/mpi/reduction.hpp>
#include <cohort/mpi/unasked.hpp>
#include <cohort/transport/connection_arrival.hpp>
#include <cohort/transport/device_memory.hpp>
#include <cohort/transport/matching.hpp>
#include <cohort/transport/prompt_answers.hpp>
#include <cohort/transport/sharing_engine.hpp>
#include <cohort/transport/shm/copy_choice.hpp>
#include <cohort/transport/shm/links.hpp>
#include <cohort/transport/verdict.hpp>

#include <array>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cohort::transport {

/// Whether the ranks make sure that they mean the same before they enter a collective of MPI's own, which cannot
/// tell; and cannot be left again.
enum class native_check : bool { never, always };

class mpi_endpoint final : public sharing_engine, private peer_connection_owner {
 public:
  /// What MPI sends without asking for it, behind a header.
  static constexpr std::size_t longest_part = detail::unasked_by_mpi - sizeof(mpi_packet);
  /// A message of this many bytes or fewer is sent at once, and copied where it arrives; in parts, if it is longer than one.
  static constexpr std::size_t eager_limit = detail::most_parts * longest_part;
  /// So much may be on its way to a rank, or there, without having been asked for: of short messages, and without the check
  /// of longer ones that follow their headers at once. What MPI or the receiver keeps of them meanwhile is bounded.
  static constexpr std::size_t window = std::size_t{4} << 20;

  struct settings {
    native_check check = native_check::always;
    mpi_device_memory device_memory = mpi_device_memory::as_mpi_can;
    bool shared_memory = true;
    std::optional<copying> copies{};  ///< of long messages in shared memory; none: as is faster
    std::string host_id{};            ///< tells hosts apart besides what the kernel says
  };

  /// Collective: every rank of `base` makes its own. `base` is duplicated and not used afterwards.
  ///
  /// Errors: version_mismatch, or what MPI says
  mpi_endpoint(MPI_Comm base, const settings& wanted);
  COHORT_DECL ~mpi_endpoint() override;

  [[nodiscard]] std::string host() const override { return host_; }

  void start(request& r);
  [[nodiscard]] bool send_now(int to, const envelope& header, const piece& payload) override;
  void push_out() override;
  [[nodiscard]] bool receive_now(int from, const envelope& expected, const piece& into, std::uint64_t& came) override;
  [[nodiscard]] bool read_memory_of(int peer, const piece& from, const piece& into) override;
  [[nodiscard]] bool nothing_early() const noexcept override { return matcher_.nothing_early(); }
  [[nodiscard]] bool nothing_against(const group& g, std::int64_t sequence, const signature& s) override {
    // What came early by MPI is taken by a frame, which may as well send.
    return matcher_.nothing_early() || (neighbours_ != nullptr && matcher_.nothing_against(g.context(), sequence, s));
  }
  COHORT_DECL void withdraw(request& r) override;
  COHORT_DECL std::shared_ptr<const fault> report(fault f, const group& where) override;
  COHORT_DECL void entered(const call& c) override;
  /// Waits until every rank has left. False when the deadline came first.
  bool wait_until_all_left(clock::time_point deadline);

  // --- memory of a device: transport/device_memory.hpp
  [[nodiscard]] mpi_cuda_support cuda_support() const noexcept { return cuda_support_; }
  [[nodiscard]] bool takes_device_memory() const noexcept { return takes_device_memory_; }
  /// The other member of a group of two.
  [[nodiscard]] of_two other_of(const group& g) const noexcept {
    return g.size() == 2 ? of_two(g.rank(), greatest_tag_ + 1, device_memory_) : of_two();
  }
  [[nodiscard]] device_ranges& device_memory() noexcept { return device_memory_; }

  // --- collectives of MPI's own: native_turn.hpp and native.hpp
  [[nodiscard]] native_check check() const noexcept { return check_; }
  [[nodiscard]] native_reductions& reductions() noexcept { return reductions_; }
  void queue(native_turn& t);
  void unqueue(native_turn& t) noexcept;
  /// The turn's request completes when MPI has carried its collective out.
  void start_native(native_turn& t);

  // --- begun where they are called, before there is a frame: native_start.hpp
  /// MPI's communicator for it; null if something is in the way.
  [[nodiscard]] MPI_Comm comm_to_start_on(const group& g);
  /// Whether it ends while MPI is asked about it for a moment, which is longer for more bytes.
  [[nodiscard]] bool ends_soon(request_list_of_mpi& parts, std::size_t bytes, int& code) noexcept;
  /// For the frame that is made next.
  void keep_started(request_list_of_mpi parts, int code, detail::borrowed_buffer arriving = {}) noexcept;
  /// What that receives into; otherwise a buffer of as many bytes.
  [[nodiscard]] detail::borrowed_buffer take_kept(std::size_t bytes);
  /// Whether a frame hands MPI copies of what is short: not of what has been begun before it, with buffers that are given, nor
  /// of what may lie on a device.
  [[nodiscard]] bool keeps_values() const noexcept { return started_.empty() && !takes_device_memory_; }
  /// What no frame has taken over ends now, or keeps its buffers.
  void drop_started() noexcept;

 protected:
  COHORT_DECL bool progress() override;
  COHORT_DECL void sleep_until(clock::time_point until) override;
  COHORT_DECL void wake() noexcept override;
  COHORT_DECL void collect_faults(std::vector<std::shared_ptr<const fault>>& into) override;
  COHORT_DECL void group_added(group& g) override;
  COHORT_DECL void group_removed(group& g) override;
  COHORT_DECL void leave() override;

 private:
  static constexpr std::size_t slot_bytes = sizeof(mpi_packet) + longest_part;
  static constexpr std::size_t ring_size = 16;
  /// What every MPI copies when it is sent: so long a message may leave, or come, without a request.
  static constexpr std::size_t longest_at_once = (std::size_t{4} << 10) - sizeof(mpi_packet);
  /// So many may be on their way that MPI has not said to have sent.
  static constexpr std::size_t most_at_once = 4;
  /// How long a transfer that is given up may hold this thread, until MPI has let go of the buffer.
  static constexpr std::chrono::seconds patience{2};
  static constexpr std::chrono::milliseconds longest_taking_back{100};
  static constexpr std::chrono::milliseconds longest_inquiry{300};
  static constexpr std::chrono::seconds between_comparisons{1};
  /// In a query that is no inquiry of an overdue call, and in the answer.
  static constexpr std::uint64_t for_comparison = 1;

  /// A long message on its way.
  struct transfer {
    request* owner = nullptr;  ///< null: nobody waits for it any more
    int peer = -1;
    int tag = -1;
    bool receives = false;
    bool follows = false;  ///< its header, at once; else it has been asked for
    std::size_t size = 0;
    detail::mpi_bytes bytes{};
    detail::byte_buffer sink{};  ///< where the bytes of a receive that was given up go
    std::vector<piece> left{};   ///< of one that was given up, and that MPI did not let go of
  };
  struct unasked {
    int source;
    int tag;
    std::size_t size;
  };
  struct outgoing {
    MPI_Request sent = MPI_REQUEST_NULL;
    int peer = -1;
    detail::byte_buffer buffer{};
    request* owner = nullptr;  ///< the send that is complete when MPI has sent it
  };
  /// A message that comes in parts.
  struct coming {
    envelope header{};
    std::size_t come = 0;
    request* receive = nullptr;  ///< null: nobody has asked for it yet, or nobody does any more
    detail::byte_buffer kept{};  ///< what has come of one that nobody has asked for; none: nobody will
  };
  struct announced {
    request* send = nullptr;
    std::uint32_t generation = 0;
  };
  struct retirement {
    int rank;
    mpi_standing last;
    std::uint64_t natives;  ///< what natives_of said there
  };
  struct retirements {
    std::vector<retirement> of{};
    bool own = false;
    std::uint64_t natives = 0;
  };
  /// Asking everybody how far they are, when a deadline has passed.
  struct inquiry {
    fault what{};
    std::vector<int> members{};
    std::vector<std::optional<mpi_standing>> answers{};
    clock::time_point until{};
  };

  // memory
  void share_memory(const settings& wanted);
  void sleep_beside_memory(clock::time_point until);
  // connections in memory: impl/links.hpp
  [[nodiscard]] bool shares_memory_with(int peer) const noexcept { return pids_[static_cast<std::size_t>(peer)] != 0; }
  [[nodiscard]] peer_connection* link_to(int peer);
  [[nodiscard]] bool take_letters();
  void drop(const early_message& m);
  inline void on_message(peer_connection& c, const envelope& header) override;
  inline void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) override;
  inline bool on_notice(peer_connection& c, std::span<const std::byte> packet) override;
  void on_received(peer_connection&, request& r) override { complete(r); }
  void on_sent(request& r) override { complete(r); }
  void on_goodbye(peer_connection&) override {}  // who leaves says so by a packet
  inline void on_lost(peer_connection& c, const boost::system::error_code& why, const char* what) override;
  inline void on_stripe_lost(peer_connection& c, const boost::system::error_code& why, const char* what) override;
  [[nodiscard]] bool copies_with_senders() noexcept override { return true; }
  [[nodiscard]] bool shares_cores() noexcept override { return how_to_wait().crowded(); }

  // messages
  void start_send(request& send);
  void start_receive(request& receive);
  void start_probe(request& probe);
  void start_posted(request& receive);
  void refuse(const request& r, int culprit, errc code, std::string text);
  void refuse_departed(const request& r);
  [[nodiscard]] bool has_retired(std::uint64_t context, int world_rank) const;
  [[nodiscard]] bool others_retired(const group& g) const;
  void post(int peer, const mpi_packet& p, const piece* pieces = nullptr, std::size_t n = 0, request* owner = nullptr);
  void post(int peer, mpi_packet p, const void* data, std::size_t bytes);
  [[nodiscard]] outgoing send_copy(int peer, const mpi_packet& p, const piece* pieces, std::size_t n);
  void keep_outgoing(outgoing o, request* owner, bool last_of_many = false);
  void put(const request& receive, std::size_t offset, const std::byte* from, std::size_t bytes);
  // messages in parts: impl/parts.hpp
  void send_in_parts(request& send);
  [[nodiscard]] bool follows_another(const request& send) noexcept;
  void on_part(const envelope& header, const std::byte* data, std::size_t bytes);
  [[nodiscard]] bool continues(const envelope& header, std::size_t bytes) const noexcept;
  // long messages
  void announce(request& send);
  void grant(request& receive, int source, std::uint64_t ticket);
  void send_after_header(request& send);
  void listen(request& receive, int source, int tag, bool follows);
  void begin_receive(transfer t, int source, int tag);
  void sink(int source, int tag, std::size_t size);
  void recalled(int source, int tag);
  [[nodiscard]] bool recall(const transfer& t) noexcept;
  void leave_unasked(const early_message& m);
  // short messages without a request: impl/prompt.hpp
  [[nodiscard]] bool is_quiet() const noexcept;
  [[nodiscard]] bool send_by_mpi(int to, const envelope& header, const piece& payload);
  [[nodiscard]] bool receive_by_mpi(int from, const envelope& expected, const piece& into, std::uint64_t& came);
  template <class Taken>
  [[nodiscard]] bool take_one_or_sent(Taken taken);
  // what short messages take of the receiver's memory
  [[nodiscard]] static std::int64_t cost_of(std::size_t bytes) noexcept {
    return static_cast<std::int64_t>(bytes + sizeof(mpi_packet));
  }
  void return_credit(int source, std::size_t bytes);
  [[nodiscard]] bool nobody_asks(std::uint64_t context) const;
  [[nodiscard]] int take_tag();
  [[nodiscard]] bool owns_tag(const transfer& t) const noexcept { return t.receives != t.follows; }
  [[nodiscard]] MPI_Comm comm_of(const transfer& t) const noexcept { return t.follows ? control_ : data_; }
  void begin(transfer t, MPI_Request r);
  void let_go(std::size_t index) noexcept;
  void leave_to_mpi(transfer& t, const request& given_up) noexcept;
  void finish(std::size_t index, int code);

  // what arrives
  [[nodiscard]] bool take_arrivals();
  [[nodiscard]] bool take_held();
  template <class Taken>
  [[nodiscard]] bool take_one(Taken taken);
  template <class Taken>
  void take_from(std::size_t slot, const MPI_Status& status, Taken taken);
  void hear_recalls();
  void listen_again();
  void handle(int source, const std::byte* data, std::size_t bytes);
  void on_eager(const envelope& header, const std::byte* data, detail::byte_buffer* own = nullptr);
  void on_announce(const envelope& header, std::uint64_t ticket);
  void on_follows(const envelope& header, int tag);
  void on_unwanted(int source, int tag, std::uint64_t context);
  void on_grant(int source, const mpi_packet& p);
  void on_revoke(int source, const mpi_packet& p);
  void on_retired(int source, const mpi_packet& p, const mpi_standing& last);
  [[nodiscard]] bool settle_transfers();
  [[nodiscard]] bool settle_outgoing();
  void finish_outgoing(outgoing& o);
  void forget_oldest_outgoing();
  // the end
  void say_last_words() noexcept;
  void abandon_requests() noexcept;

  // faults
  void broadcast(const fault& f, const std::vector<int>& members);
  void spread(const fault& f);
  void note(std::shared_ptr<const fault> f);
  void mpi_failed(const std::string& what);
  void conclude_inquiry();
  // ranks that wait for long compare what they have called: impl/agreement.hpp
  void compare_calls(clock::time_point now);
  [[nodiscard]] int left_without_forming(const group& g) const;
  void on_calls_of(int source, std::uint64_t context, const mpi_standing& theirs);
  [[nodiscard]] std::vector<int> everybody() const;
  [[nodiscard]] standing standing_in(const group& g) const;

  // native collectives
  void pump(std::uint64_t context);
  [[nodiscard]] static bool tested(request_list_of_mpi& parts, int& code) noexcept;
  [[nodiscard]] bool settle_natives();
  void refuse_native(request& r, int code);
  void give_up(native_turn& t) noexcept;
  void wait_for_end(request_list_of_mpi& parts, native_line& line) noexcept;

  // MPI's communicators are made: impl/communicators.hpp
  void want_comm(std::uint64_t context, native_line& line);
  void ask_next_member(std::uint64_t context, native_line& line);
  void agree_to_next_comm();
  void on_agreed(int member, std::uint64_t context);
  void tell_of_comm(int member, mpi_packet::kind what, std::uint64_t context);
  void end_making();
  void abandon_comm(std::uint64_t context) noexcept;
  void forget_comms_of(int leader);
  void make_comm(std::uint64_t context);
  void on_comm(int source, const mpi_packet& p);
  // and given back: impl/giving_back.hpp
  [[nodiscard]] std::uint64_t natives_of(std::uint64_t context) const noexcept;
  void settle_retirements(std::uint64_t context, std::size_t members);
  [[nodiscard]] bool end_quietly(clock::time_point deadline);

  std::string host_;
  native_check check_;
  mpi_cuda_support cuda_support_;
  bool takes_device_memory_;
  bool makes_comms_ = true;  ///< of MPI's, for its groups
  device_ranges device_memory_{};
  MPI_Comm control_ = MPI_COMM_NULL;  ///< headers and short messages; MPI's other communicators are made of it
  MPI_Comm data_ = MPI_COMM_NULL;     ///< long messages, and MPI's own collectives of the world
  int greatest_tag_ = 32766;          // of a message; one more: collectives of two ranks, MPI's communicators
  int next_tag_ = 1;                  // 0 is that of headers
  std::vector<int> free_tags_{};
  matcher matcher_{};
  shm_links links_{};
  std::vector<long> pids_{};       // of the ranks that share memory with this one; 0 of others
  bool all_share_memory_ = false;  // every rank of the world

  std::vector<std::byte> ring_{};
  std::array<MPI_Request, ring_size> arriving_{};
  // Every slot is in one of these: listened in, in the order in which they were posted, or read.
  std::array<std::size_t, ring_size> listening_{};
  std::size_t next_listening_ = 0;
  std::size_t listening_count_ = 0;
  std::array<std::size_t, ring_size> taken_{};
  std::size_t taken_count_ = 0;
  struct held_packet {
    int source;
    std::vector<std::byte> bytes;
  };
  std::deque<held_packet> held_{};  // came while a buffer was waited for
  std::vector<coming> coming_{};    // of each rank
  int parted_to_ = -1;              // the last message that could go in parts, and in which turn it was sent
  unsigned parted_in_ = 0;
  detail::fifo<outgoing> outgoing_{};
  std::vector<unsigned> held_up_{};  // of each rank: the last settling in which its oldest had not ended
  unsigned settling_ = 0;
  std::vector<announced> announced_{};
  std::vector<std::uint32_t> free_announced_{};
  std::vector<transfer> transfers_{};
  std::vector<MPI_Request> transfer_requests_{};
  std::vector<std::size_t> following_{};  // bytes on their way to each rank that it may not have asked for yet
  std::vector<std::int64_t> credit_{};    // what short messages to each rank may still take
  std::vector<std::int64_t> owed_{};      // what those of each rank have given free here
  std::vector<prompt_answers> answers_{};
  std::vector<unasked> unasked_{};  // what follows a header whose communicator is gone here, or has failed
  std::vector<int> finished_{};
  std::vector<MPI_Status> statuses_{};

  std::unordered_map<std::uint64_t, retirements> retired_{};
  std::vector<std::shared_ptr<const fault>> faults_{};
  std::optional<inquiry> inquiry_{};
  clock::time_point compare_at_{};
  std::unordered_map<std::uint64_t, std::int64_t>
      waiting_in_{};  ///< the number of what was not complete when it was compared last
  std::vector<bool> left_{};
  int ranks_left_ = 0;
  int ranks_gone_ = 0;
  int gone_quietly_ = 0;                ///< of those, with nothing of theirs pending
  bool natives_of_world_even_ = false;  ///< every rank has begun and ended equally many
  bool has_left_ = false;
  bool broken_ = false;

  std::unordered_map<std::uint64_t, native_line> natives_{};
  std::vector<native_turn*> issued_{};
  request_list_of_mpi started_{};  ///< of the operation whose frame is made next
  int started_code_ = MPI_SUCCESS;
  detail::borrowed_buffer started_into_{};
  native_line* starting_ = nullptr;  ///< on which `started_` was begun
  unsigned starts_ = 0;
  std::size_t brief_tests_ = 1;
  struct comm_request {
    int leader;
    std::uint64_t context;
  };
  native_reductions reductions_{};
  std::deque<comm_request> comms_wanted_{};
  std::optional<comm_request> comm_in_making_{};  ///< in which this rank takes part

  // Other threads ring here.
  std::mutex mutex_{};
  std::condition_variable rung_{};
  bool woken_ = false;
  bool beside_memory_ = false;  ///< this rank sleeps where a letter wakes it up
  unsigned turns_ = 0;
  std::chrono::microseconds nap_{0};
  clock::time_point busy_until_{};
};

}  // namespace cohort::transport

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/mpi/impl/agreement.hpp>
#include <cohort/mpi/impl/communicators.hpp>
#include <cohort/mpi/impl/endpoint.hpp>
#include <cohort/mpi/impl/faults.hpp>
#include <cohort/mpi/impl/giving_back.hpp>
#include <cohort/mpi/impl/links.hpp>
#include <cohort/mpi/impl/memory.hpp>
#include <cohort/mpi/impl/messages.hpp>
#include <cohort/mpi/impl/native.hpp>
#include <cohort/mpi/impl/parts.hpp>
#include <cohort/mpi/impl/prompt.hpp>
#include <cohort/mpi/impl/transfers.hpp>
#endif
