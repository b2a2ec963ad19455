// SPDX-License-Identifier: BSL-1.0
// The one error type of the library: what went wrong, on which rank, in which operation, and what to do.
// Thrown at `co_await` (or returned by `as_result`); every layer above the sockets speaks these codes.
#pragma once

#include <cohort/detail/config.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace cohort {

/// Every way in which a call can fail. The text of each is in `error_category::message`.
enum class errc : int {
  aborted = 1,           ///< another rank gave up: it dropped an operation, threw, or left
  cancelled,             ///< this rank asked for it, through a stop token or a cancellation slot
  timed_out,             ///< a deadline passed; the text lists who has not arrived
  peer_lost,             ///< a rank died or closed its connections without saying goodbye
  peer_unresponsive,     ///< a rank sends no heartbeat: stopped, or cut off
  mismatch,              ///< two ranks called different things under the same number
  truncated,             ///< a message is longer than the buffer that was posted for it
  invalid_argument,      ///< an argument was refused before a byte was sent
  not_a_member,          ///< the calling process is not in this communicator
  closed,                ///< the communicator was moved from, or has left its world
  bad_environment,       ///< a launcher's variables are missing, half set, or malformed
  rendezvous_timeout,    ///< not every rank joined in time; the text names those missing
  duplicate_rank,        ///< two processes claim the same rank
  world_size_mismatch,   ///< two processes disagree on the number of ranks
  wrong_job,             ///< a connection from another job, or from an older epoch
  version_mismatch,      ///< two ranks are of different versions of the library or of its protocol
  protocol_error,        ///< bytes that no version of this protocol sends
  cannot_resolve,        ///< a host name has no address
  connection_refused,    ///< nothing listens at an address
  address_in_use,        ///< a port to listen on is taken
  insecure_network,      ///< a non-loopback address without a job secret
  user_function_failed,  ///< a reduction functor or another function of the caller's threw
  store_failed,          ///< the rendezvous store refused a request or went away
  out_of_memory,         ///< no memory for a message or for scratch space
  io_error,              ///< the operating system refused; the text carries its words
  bad_message,           ///< the bytes of an object message are not what its type needs
  wrong_type,            ///< an object message holds another type than the call asks for; the text names both
  limit_exceeded,        ///< an object is larger or nested deeper than `codec_limits` allows
  forked,                ///< a call in a child of the process that joined the world
  concurrent_use,        ///< a call while another thread is inside the same world
  tls_failed,            ///< a connection could not be encrypted, or a certificate was refused; the text says why
};

class error_category_type final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "cohort"; }
  [[nodiscard]] COHORT_DECL std::string message(int value) const override;
};

[[nodiscard]] const std::error_category& error_category() noexcept;

[[nodiscard]] inline std::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), error_category()};
}

/// Where an error happened. Ranks are ranks of the world; -1 and "" mean "does not apply".
struct error_details {
  int rank = -1;                       ///< the rank on which it was thrown
  int peer = -1;                       ///< the rank at fault, when one is known
  std::string host{};                  ///< the host of `rank`
  std::string operation{};             ///< "all_reduce", "connect", ...
  std::string group{};                 ///< name of the communicator
  std::int64_t sequence = -1;          ///< number of the collective on its communicator
  std::chrono::nanoseconds elapsed{};  ///< from the call to the failure
};

/// An error of the library.
///
/// Result:   `code()` compares equal to an `errc`; `what()` is one sentence that names rank and operation
/// Lifetime: copies are cheap and never throw
class error : public std::system_error {
 public:
  error(errc code, const std::string& text);
  error(errc code, const std::string& text, error_details details);

  [[nodiscard]] const char* what() const noexcept override { return text_->c_str(); }
  [[nodiscard]] errc condition() const noexcept { return static_cast<errc>(code().value()); }
  [[nodiscard]] int rank() const noexcept { return details_->rank; }
  [[nodiscard]] int peer() const noexcept { return details_->peer; }
  [[nodiscard]] const std::string& host() const noexcept { return details_->host; }
  [[nodiscard]] const std::string& operation() const noexcept { return details_->operation; }
  [[nodiscard]] const std::string& group() const noexcept { return details_->group; }
  [[nodiscard]] std::int64_t sequence() const noexcept { return details_->sequence; }
  [[nodiscard]] std::chrono::nanoseconds elapsed() const noexcept { return details_->elapsed; }

 private:
  std::shared_ptr<const std::string> text_;
  std::shared_ptr<const error_details> details_;
};

}  // namespace cohort

template <>
struct std::is_error_code_enum<cohort::errc> : std::true_type {};

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/impl/error.hpp>
#endif
