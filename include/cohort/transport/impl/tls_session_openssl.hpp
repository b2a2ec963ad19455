// SPDX-License-Identifier: BSL-1.0
// One TLS connection by OpenSSL on a socket that never blocks. OpenSSL writes into memory, from where whole batches of
// records go to the kernel: it never sees a full socket, and no write of it has to be repeated.
#pragma once

#include <cohort/transport/tls.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/error_code.hpp>

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace cohort::transport::tls_detail {

class session final : public tls_session {
 public:
  static constexpr std::size_t record = std::size_t{16} << 10;  ///< the most that TLS seals in one piece
  static constexpr std::size_t batch = std::size_t{128} << 10;  ///< sealed before it is given to the kernel
  static constexpr std::size_t turn = std::size_t{1} << 20;     ///< moved before others have theirs
  /// RFC 8446 lets AES-GCM seal 2^24.5 records with one key.
  static constexpr std::uint64_t records_per_key = std::uint64_t{1} << 23;

  session(SSL_CTX* context, int socket, tls_side side, std::uint64_t key_lasts = records_per_key)
      : socket_(socket), key_lasts_(key_lasts), ssl_(SSL_new(context)) {
    BIO* const below = ssl_ == nullptr ? nullptr : BIO_new(bio_method());
    if (below == nullptr) {
      SSL_free(ssl_);
      ERR_clear_error();
      throw std::bad_alloc();
    }
    BIO_set_data(below, this);
    BIO_set_init(below, 1);
    SSL_set_bio(ssl_, below, below);
    if (side == tls_side::server) {
      SSL_set_accept_state(ssl_);
    } else {
      SSL_set_connect_state(ssl_);
    }
  }
  ~session() override { SSL_free(ssl_); }

  need shake_hands(boost::system::error_code& failure) override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_);
    const bool waits = result != 1 && SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ;
    if (result != 1 && !waits) failure = what_failed(result);
    boost::system::error_code unsent;
    flush(unsent);  // after a failure too: the alert that tells the peer
    if (!failure) failure = unsent;
    if (failure) return need::nothing;
    return has_unsent() ? need::writable : waits ? need::readable : need::nothing;
  }

  std::size_t send(std::span<const piece> from, boost::system::error_code& failure) override {
    if (!flush(failure)) return 0;
    std::size_t sent = std::exchange(sealed_, 0);
    cursor rest(from, sent);
    while (sent < turn && !rest.at_end()) {
      while (sealed_ < batch && !rest.at_end()) {
        const std::span<const std::byte> next = rest.take(scratch_);
        std::size_t taken = 0;
        ERR_clear_error();
        renew_key();
        const int result = SSL_write_ex(ssl_, next.data(), next.size(), &taken);
        if (result != 1) {
          failure = what_failed(result);
          return sent;
        }
        sealed_ += taken;
      }
      const bool all_gone = flush(failure);
      const std::size_t held_back = all_gone ? 0 : 1;
      sent += sealed_ - held_back;
      sealed_ = held_back;
      if (!all_gone) return sent;
    }
    return sent;
  }

  std::size_t receive(std::span<const piece> into, boost::system::error_code& failure) override {
    // The answer to a peer that wants new keys; if there is no room for it now, the next call tries again. A socket that is
    // broken says so when it is read.
    boost::system::error_code ignored;
    if (has_unsent()) flush(ignored);
    holds_bytes_ = false;
    std::size_t got = 0;
    for (const piece& p : into) {
      for (std::size_t at = 0; at < p.bytes;) {
        if (got >= turn) {
          holds_bytes_ = true;
          return got;
        }
        std::size_t read = 0;
        ERR_clear_error();
        const int result = SSL_read_ex(ssl_, p.data + at, p.bytes - at, &read);
        if (result != 1) {
          // What came before a failure is given first; the next call fails with the same.
          const bool waits = !failure_ && SSL_get_error(ssl_, result) == SSL_ERROR_WANT_READ;
          if (!waits && !failure_) what_failed(result);
          if (got == 0 && failure_) failure = failure_;
          holds_bytes_ = got > 0 && failure_.failed();
          return got;
        }
        at += read;
        got += read;
      }
    }
    holds_bytes_ = SSL_has_pending(ssl_) == 1;
    return got;
  }

  [[nodiscard]] bool holds_bytes() const noexcept override { return holds_bytes_; }

  void say_goodbye() noexcept override {
    // Half a record may wait for the kernel: then the connection ends where it is, and the peer sees that.
    if (failure_ || has_unsent() || SSL_is_init_finished(ssl_) != 1) return;
    ERR_clear_error();
    (void)SSL_shutdown(ssl_);
    ERR_clear_error();
    boost::system::error_code ignored;
    flush(ignored);
  }

 private:
  /// Bytes of several pieces, a record at a time.
  class cursor {
   public:
    cursor(std::span<const piece> pieces, std::size_t skip) noexcept : pieces_(pieces), at_(skip) { settle(); }
    [[nodiscard]] bool at_end() const noexcept { return pieces_.empty(); }

    /// The bytes of the next record: where they lie if they lie together, else gathered in `scratch`.
    [[nodiscard]] std::span<const std::byte> take(std::unique_ptr<std::byte[]>& scratch) {
      const std::size_t here = std::min(pieces_.front().bytes - at_, record);
      const bool together_already = here == record || pieces_.size() == 1;
      if (!together_already && !scratch) scratch.reset(new (std::nothrow) std::byte[record]);
      if (together_already || !scratch) {
        const std::span<const std::byte> together(pieces_.front().data + at_, here);
        advance(here);
        return together;
      }
      std::size_t filled = 0;
      while (filled < record && !at_end()) {
        const std::size_t part = std::min(pieces_.front().bytes - at_, record - filled);
        std::memcpy(scratch.get() + filled, pieces_.front().data + at_, part);
        filled += part;
        advance(part);
      }
      return {scratch.get(), filled};
    }

   private:
    void advance(std::size_t bytes) noexcept {
      at_ += bytes;
      settle();
    }
    void settle() noexcept {
      while (!pieces_.empty() && at_ >= pieces_.front().bytes) {
        at_ -= pieces_.front().bytes;
        pieces_ = pieces_.subspan(1);
      }
    }
    std::span<const piece> pieces_;
    std::size_t at_;
  };

  void renew_key() noexcept {
    if (++records_ % key_lasts_ != 0) return;
    (void)SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);  // it leaves in front of the next record
  }

  [[nodiscard]] bool has_unsent() const noexcept { return given_ < out_.size(); }

  /// True when the kernel has taken everything.
  bool flush(boost::system::error_code& failure) noexcept {
    while (has_unsent()) {
      const ssize_t n = ::send(socket_, out_.data() + given_, out_.size() - given_, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) failure.assign(errno, boost::system::system_category());
        return false;
      }
      given_ += static_cast<std::size_t>(n);
    }
    out_.clear();
    given_ = 0;
    return true;
  }

  /// Of the call that has just returned `result`; the queue of errors is empty afterwards.
  boost::system::error_code what_failed(int result) noexcept { return failure_ = reason_of(result); }
  [[nodiscard]] boost::system::error_code reason_of(int result) noexcept {
    const int kind = SSL_get_error(ssl_, result);
    const unsigned long first = ERR_peek_error();
    ERR_clear_error();
    if (is_foreign_) return tls_error(tls_trouble::no_tls);
    if (system_error_ != 0) return {system_error_, boost::system::system_category()};
    if (is_at_end_ || kind == SSL_ERROR_ZERO_RETURN) return boost::asio::error::eof;
    const int reason = ERR_GET_REASON(first);
    if (ERR_GET_LIB(first) != ERR_LIB_SSL) return tls_error(tls_trouble::other);
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
      return tls_error(tls_trouble::certificate, static_cast<int>(SSL_get_verify_result(ssl_)));
    }
    if (reason > SSL_AD_REASON_OFFSET) return tls_error(tls_trouble::alert, reason - SSL_AD_REASON_OFFSET);
    return tls_error(tls_trouble::other, reason);
  }

  // --- what OpenSSL reads from and writes to

  static int put(BIO* below, const char* bytes, std::size_t count, std::size_t* taken) noexcept try {
    auto& self = *static_cast<session*>(BIO_get_data(below));
    self.out_.insert(self.out_.end(), bytes, bytes + count);
    *taken = count;
    return 1;
  } catch (const std::bad_alloc&) {
    static_cast<session*>(BIO_get_data(below))->system_error_ = ENOMEM;
    return 0;
  }

  static int get(BIO* below, char* into, std::size_t room, std::size_t* got) noexcept {
    auto& self = *static_cast<session*>(BIO_get_data(below));
    BIO_clear_retry_flags(below);
    ssize_t n = 0;
    do {
      n = ::recv(self.socket_, into, room, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      BIO_set_retry_read(below);
    } else if (n < 0) {
      self.system_error_ = errno;
    } else if (n == 0) {
      self.is_at_end_ = true;
    } else {
      // A handshake, or an alert that there will be none: nothing else begins a TLS connection.
      if (!std::exchange(self.has_heard_, true) && into[0] != 0x16 && into[0] != 0x15) self.is_foreign_ = true;
      if (self.is_foreign_) return 0;
      *got = static_cast<std::size_t>(n);
      return 1;
    }
    return 0;
  }

  static long control(BIO*, int what, long, void*) noexcept { return what == BIO_CTRL_FLUSH ? 1 : 0; }

  [[nodiscard]] static BIO_METHOD* bio_method() {
    static BIO_METHOD* const method = [] {  // for as long as the process runs
      BIO_METHOD* const m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "a socket of cohort");
      if (m == nullptr) throw std::bad_alloc();
      BIO_meth_set_write_ex(m, &put);
      BIO_meth_set_read_ex(m, &get);
      BIO_meth_set_ctrl(m, &control);
      return m;
    }();
    return method;
  }

  int socket_;
  std::uint64_t key_lasts_;
  SSL* ssl_;
  std::vector<char> out_{};  // sealed, for the kernel
  std::size_t given_ = 0;    // of out_, which the kernel has
  std::size_t sealed_ = 0;  // bytes of the caller's that are sealed and not yet told as sent: between calls at most one
  std::uint64_t records_ = 0;
  std::unique_ptr<std::byte[]> scratch_{};
  boost::system::error_code failure_{};
  int system_error_ = 0;
  bool is_at_end_ = false;
  bool is_foreign_ = false;
  bool has_heard_ = false;
  bool holds_bytes_ = false;
};

}  // namespace cohort::transport::tls_detail
