// SPDX-License-Identifier: BSL-1.0
// The transport of backend cpu: one connection per pair of ranks, made on demand: shared memory between ranks of one
// host, TCP over Boost.Asio otherwise. Its engine tries the system call first and uses the reactor to wait; on a
// caller's io_context everything runs from its handlers.
#pragma once

#include <cohort/transport/connection_arrival.hpp>
#include <cohort/transport/cpu_transport.hpp>
#include <cohort/transport/matching.hpp>
#include <cohort/transport/peer_connection.hpp>
#include <cohort/transport/prompt_answers.hpp>
#include <cohort/transport/retirements.hpp>
#include <cohort/transport/shm/copy_choice.hpp>
#include <cohort/transport/shm/links.hpp>
#include <cohort/transport/shm/window.hpp>
#include <cohort/transport/tcp_congestion.hpp>
#include <cohort/transport/tcp_doorway.hpp>
#include <cohort/transport/tcp_monitor.hpp>
#include <cohort/transport/tcp_stream.hpp>
#include <cohort/transport/tcp_stripes.hpp>
#include <cohort/transport/tcp_watched_socket.hpp>
#include <cohort/transport/tls_stream.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

/// Where a rank is, as the rendezvous told.
struct tcp_peer_address {
  boost::asio::ip::tcp::endpoint where{};
  std::string host{};
  long pid = 0;
};

struct tcp_settings {
  int rank = 0;
  int size = 1;
  boost::asio::ip::address bind_address = boost::asio::ip::address_v4::loopback();
  std::string host{};
  std::string run_id{};
  std::string secret{};
  tcp_link::context_pointer tls{};  ///< null: connections are not encrypted
  std::uint32_t epoch = 0;
  std::chrono::nanoseconds peer_timeout = std::chrono::seconds{10};
  bool shared_memory = true;        ///< with the ranks of this host
  std::optional<copying> copies{};  ///< of long messages in shared memory; none: as is faster
  std::string host_id{};            ///< tells hosts apart besides what the kernel says
  std::string congestion_control{};
  int stripes = 0;  ///< of a long message to one rank; 0: as many as the link needs
};

class tcp_transport final : public cpu_transport, private peer_connection_owner {
 public:
  using tcp = boost::asio::ip::tcp;

  /// With an `io_context` of the caller's, whoever runs that moves this world; without, whoever waits does.
  tcp_transport(tcp_settings s, boost::asio::io_context* io);
  inline ~tcp_transport() override;

  // --- joining, in this order
  /// Listens for the other ranks; gives the port.
  unsigned short listen();
  /// Rank 0: hosts the liveness service; gives the port.
  unsigned short host_monitor() { return monitor_->host(settings_.bind_address); }
  /// What the other ranks of this host must know, before `meet_neighbours`; "" in a world of one.
  [[nodiscard]] std::string open_host();
  /// Meets the ranks of this host; gives those whose memory this one can see.
  [[nodiscard]] std::vector<int> meet_neighbours(const std::vector<std::string>& what_they_said,
                                                 clock::time_point until);
  /// The same of every rank of this host, alike on all of them; nothing of others.
  void agree_on_neighbours(const std::vector<std::vector<int>>& seen_by);
  /// Everybody's address is known.
  void join(std::vector<tcp_peer_address> peers, const tcp::endpoint& monitor, clock::time_point deadline);

  /// Waits until every rank has left: what this rank sent has been used by then.
  inline bool wait_until_all_left(clock::time_point deadline) override;

  inline void start(request& r) override;
  [[nodiscard]] inline bool writes_to(int to) const override;

  inline void withdraw(request& r) override;
  inline std::shared_ptr<const fault> report(fault f, const group& where) override;
  inline void entered(const call& c) override;
  [[nodiscard]] inline bool send_now(int to, const envelope& header, const piece& payload) override;
  [[nodiscard]] inline bool receive_now(int from, const envelope& expected, const piece& into,
                                        std::uint64_t& came) override;
  [[nodiscard]] inline bool read_memory_of(int rank_of_peer, const piece& from, const piece& into) override;
  [[nodiscard]] bool nothing_early() const noexcept override { return matcher_.nothing_early(); }
  [[nodiscard]] bool nothing_against(const group& g, std::int64_t sequence, const signature& s) override {
    return matcher_.nothing_against(g.context(), sequence, s);
  }
  [[nodiscard]] std::string host() const override { return settings_.host; }
  [[nodiscard]] boost::asio::io_context& context() const noexcept { return *io_; }

 protected:
  inline bool progress() override;
  inline void sleep_until(clock::time_point until) override;
  inline void wake() noexcept override;
  inline void schedule_turn() override;
  inline void deadline_moved(clock::time_point t) override;
  inline void collect_faults(std::vector<std::shared_ptr<const fault>>& into) override;
  inline void group_added(group& g) override;
  inline void group_removed(group& g) override;
  inline void leave() override;

 private:
  /// A message to this rank itself is copied when it is sent, if it is not longer.
  static constexpr std::size_t local_eager_limit = std::size_t{256} << 10;
  /// Turns ask so many sockets themselves, those that something is awaited from; of more the reactor tells.
  static constexpr std::size_t asked_directly = 16;
  /// So long a message is copied for longer than a short call takes.
  static constexpr std::uint64_t long_copy = std::uint64_t{256} << 10;

  enum class link : unsigned char { none, dialing, promised, open, lost };
  /// A connection beside the first one.
  struct lane {
    link state = link::none;
    std::shared_ptr<tcp_introduction> dialing{};
    watched_socket* socket = nullptr;
    bool read_armed = false;
    bool write_armed = false;
    bool reads_again = false;
  };
  struct peer {
    link state = link::none;
    bool awaited = true;  // each turn asks its socket: a receive may wait for what comes from it
    prompt_answers answers{};
    std::shared_ptr<peer_connection> connection{};
    watched_socket* socket = nullptr;  // what the connection runs over, one of the two
    shm_stream* memory = nullptr;
    tcp_peer_address address{};
    std::shared_ptr<tcp_introduction> dialing{};
    request_list waiting{};  // sends that wait for the connection
    bool read_armed = false;
    bool write_armed = false;
    bool reads_again = false;  // soon, without waiting for the socket
    bool left = false;         // in good order, as the monitor says; what it sent before may still be on its way
    int stripes = 0;           // of what is sent to it; 0: not looked at yet
    std::vector<lane> lanes{};
  };

  [[nodiscard]] static bool wants_reading(const peer& p) {
    return p.awaited || (p.connection->awaits_more() && !p.connection->rest_can_wait());
  }
  void read_awaited();
  [[nodiscard]] peer& peer_of(int rank) noexcept { return peers_[static_cast<std::size_t>(rank)]; }
  void turn_from_handler();
  void open_door();
  void watch_mail();
  void note_hosts(group& g) const;
  void read_mail();
  static constexpr std::chrono::microseconds shortest_pause{100};
  static constexpr std::chrono::microseconds longest_pause{10000};
  void await_room(std::chrono::microseconds pause = shortest_pause);
  peer& link_up(int rank);
  [[nodiscard]] hello_verdict decide_incoming(const hello& h);
  [[nodiscard]] hello greeting_for(int rank) const;
  [[nodiscard]] std::string describe_peer(int rank) const;
  void adopt(int rank, tcp_link wire);
  static void prepare(tcp::socket& socket);
  [[nodiscard]] static std::unique_ptr<byte_stream> stream_over(tcp_link wire, watched_socket*& socket,
                                                                std::function<void()> again);
  void read_again(int rank);
  void opened(int rank);
  [[nodiscard]] tcp::socket socket_towards(const tcp::endpoint& where) const;
  void dial(int rank);
  void arm_read(int rank);
  void arm_write(int rank);
  /// Whether turns ask the sockets, so that the reactor need not tell of them.
  [[nodiscard]] bool asks_sockets() const noexcept { return own_io_ && open_.size() <= asked_directly; }
  void watch_sockets();
  static void unwatch(peer& p);
  void pass_on(request& send);
  void choose_stripes(int rank);
  [[nodiscard]] hello_verdict decide_incoming_lane(const hello& h);
  void dial_lane(int rank, std::size_t index);
  void adopt_lane(int rank, std::size_t index, tcp_link wire);
  void read_lane(const std::shared_ptr<peer_connection>& c, std::size_t index);
  void read_lane_again(int rank, std::size_t index);
  void arm_lane_read(int rank, std::size_t index);
  void arm_lanes(int rank);
  static void drop_lanes(peer& p);
  void start_send(request& send);
  void start_receive(request& receive);
  void start_local(request& send);
  void start_probe(request& probe);
  void start_posted(request& receive);
  void note_look() noexcept;
  void look_for(int rank);
  void has_come(int rank, std::uint64_t context);
  [[nodiscard]] bool send_by_stream(int to, const envelope& header, const piece& payload);
  [[nodiscard]] bool receive_from_socket(peer& p, const envelope& expected, const piece& into, std::uint64_t& came);
  void refuse(const request& r, int culprit, errc code, std::string text);
  void suspect(int rank, std::string text);
  [[nodiscard]] bool is_gone(int rank) const;
  void check_departed(int rank);
  [[nodiscard]] bool needs(const group& g, int rank);
  // communicators that some have destroyed: impl/tcp_retirements.hpp
  void retire(const group& g) noexcept;
  void tell_retired(int to, std::uint64_t context);
  [[nodiscard]] bool comes_too_late(peer_connection& c, std::uint64_t context);
  [[nodiscard]] bool is_refused(const request& r) const;
  void refuse_retired(const request& r);
  [[nodiscard]] bool others_retired(const group& g) const;
  inline bool on_notice(peer_connection& c, std::span<const std::byte> what) override;

  inline void on_message(peer_connection& c, const envelope& header) override;
  inline void on_announce(peer_connection& c, const envelope& header, std::uint64_t ticket) override;
  inline void on_received(peer_connection& c, request& r) override;
  void on_sent(request& r) override { complete(r); }
  [[nodiscard]] std::uint64_t times_looked() const noexcept override { return times_looked_; }
  void on_burst(peer_connection&) noexcept override { in_bursts_ = true; }
  // On a caller's io_context there may be no other turn before there is room.
  void on_output(peer_connection& c) override {
    if (!own_io_) arm_write(c.peer());
  }
  // On a caller's io_context nobody looks at memory between two handlers.
  [[nodiscard]] bool copies_with_senders() noexcept override { return own_io_ != nullptr; }
  [[nodiscard]] std::chrono::nanoseconds longest_silence() const noexcept override { return settings_.peer_timeout; }
  [[nodiscard]] bool shares_cores() noexcept override { return how_to_wait().crowded(); }
  [[nodiscard]] bool awaits_another(const peer_connection& c) noexcept override { return peer_of(c.peer()).awaited; }
  void on_goodbye(peer_connection& c) override { check_departed(c.peer()); }
  inline void on_lost(peer_connection& c, const boost::system::error_code& why, const char* what) override;
  inline void on_stripe_lost(peer_connection& c, const boost::system::error_code& why, const char* what) override;
  [[nodiscard]] std::string loss_text(int rank, const boost::system::error_code& why, const char* what) const;

  tcp_settings settings_;
  std::unique_ptr<boost::asio::io_context> own_io_;
  boost::asio::io_context* io_;
  std::optional<boost::asio::executor_work_guard<boost::asio::io_context::executor_type>> work_{};
  // Handlers outlive this object on a caller's io_context: they look here first.
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  congestion_choice congestion_;
  tcp::acceptor acceptor_;
  std::shared_ptr<tcp_doorway> door_{};
  boost::asio::steady_timer deadline_timer_;
  std::optional<boost::asio::posix::stream_descriptor> mail_{};
  boost::asio::steady_timer room_timer_;
  std::vector<peer> peers_{};
  std::vector<int> host_marks_{};  // of every rank; equal for those of one host
  int ranks_on_machine_ = 1;
  std::vector<int> open_{};  // connected by sockets
  std::uint64_t times_looked_ = 0;
  bool in_bursts_ = false;  // messages of this rank may wait in sockets
  matcher matcher_{};
  retirements retirements_{};
  shm_links links_{};  // connected by memory
  std::unique_ptr<tcp_monitor> monitor_{};
  unsigned turn_ = 0;
  unsigned reactor_turns_awake_ = 0;  // since a socket was last watched
  bool turn_scheduled_ = false;
  bool awaits_room_ = false;
  bool in_reactor_ = false;  // handlers run inside a turn
  bool look_again_ = false;  // one of them has something for this turn
  bool joined_ = false;
  bool left_ = false;
  bool lost_world_ = false;  // a rank was lost: nobody is waited for

  std::mutex mutex_{};
  // Below: with mutex_ held.
  std::vector<std::shared_ptr<const fault>> faults_{};
  std::vector<int> departed_{};
};

}  // namespace cohort::transport

#include <cohort/transport/impl/tcp.hpp>
#include <cohort/transport/impl/tcp_lanes.hpp>
#include <cohort/transport/impl/tcp_neighbours.hpp>
#include <cohort/transport/impl/tcp_retirements.hpp>
