// SPDX-License-Identifier: BSL-1.0
// TLS as the transports see it: a session turns bytes into sealed bytes on a socket that never blocks, a context makes
// sessions. Carried out by impl/tls_context_openssl.hpp where the component `tls` is linked; nothing here knows OpenSSL.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/tls_options.hpp>
#include <cohort/transport/piece.hpp>

#include <boost/system/error_code.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace cohort::transport {

enum class tls_side : std::uint8_t { client, server };

/// One connection. Sending never waits for the peer to send, and receiving never waits for it to receive.
class tls_session {
 public:
  enum class need : std::uint8_t { nothing, readable, writable };

  tls_session() = default;
  tls_session(const tls_session&) = delete;
  tls_session& operator=(const tls_session&) = delete;
  virtual ~tls_session() = default;

  /// Goes on with the handshake as far as it gets; what the socket must be before it gets further.
  virtual need shake_hands(boost::system::error_code& failure) = 0;
  /// As byte_stream::send. Of what waits sealed for room in the socket one byte counts as not taken, so that the caller
  /// comes again until the kernel has all of it.
  virtual std::size_t send(std::span<const piece> from, boost::system::error_code& failure) = 0;
  /// As byte_stream::receive.
  virtual std::size_t receive(std::span<const piece> into, boost::system::error_code& failure) = 0;
  /// Bytes have come that the socket no longer tells of: `receive` again before waiting for it.
  [[nodiscard]] virtual bool holds_bytes() const noexcept = 0;
  /// Tells the peer that nothing more comes.
  virtual void say_goodbye() noexcept = 0;
};

class tls_context {
 public:
  tls_context() = default;
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;
  virtual ~tls_context() = default;
  /// Any thread. The socket stays its owner's, and open as long as the session is used.
  [[nodiscard]] virtual std::unique_ptr<tls_session> open(int socket, tls_side side) const = 0;
};

/// Reads the files.
///
/// Result: null if none is named
/// Errors: tls_failed, naming the file and what is wrong: it cannot be read, is not in PEM form, is a key that others may
///         read or that is not the certificate's, or a certificate that this rank itself would refuse from another; or
///         the program was built without TLS. invalid_argument if some are named and not all
[[nodiscard]] std::shared_ptr<const tls_context> open_tls(const tls_options& files);

/// The failures of sessions; messages speak of the peer as "it".
class tls_category_type final : public boost::system::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "cohort.tls"; }
  [[nodiscard]] std::string message(int value) const override;
};
[[nodiscard]] inline const boost::system::error_category& tls_category() noexcept {
  static const tls_category_type instance;
  return instance;
}
[[nodiscard]] inline bool is_of_tls(const boost::system::error_code& code) noexcept {
  return code.category() == tls_category();
}

/// The value of a tls_category code is one of these, plus the number that OpenSSL has for it, below 2^24.
enum class tls_trouble : int {
  no_tls = 1 << 24,       ///< the other end speaks something else
  certificate = 2 << 24,  ///< its certificate was refused; X509_V_ERR_...
  alert = 3 << 24,        ///< it has refused; the number of the alert
  other = 4 << 24,        ///< a reason of OpenSSL's part for TLS; 0 for one of another part
};
[[nodiscard]] inline boost::system::error_code tls_error(tls_trouble what, int number = 0) noexcept {
  return {static_cast<int>(what) + number, tls_category()};
}

}  // namespace cohort::transport

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/tls.hpp>
#endif
