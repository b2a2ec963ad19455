// SPDX-License-Identifier: BSL-1.0
// Bodies of transport/tcp_store.hpp: what touches the connection.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/transport/tcp_store.hpp>
#include <cohort/transport/tcp_store_link.hpp>

#include <boost/asio/buffer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace cohort {

COHORT_DECL tcp_store::tcp_store(const tcp_store_options& options, deadline until)
    : link_(std::make_unique<transport::tcp_store_link>(options, until)) {}
COHORT_DECL tcp_store::tcp_store(tcp_store&&) noexcept = default;
COHORT_DECL tcp_store& tcp_store::operator=(tcp_store&&) noexcept = default;
COHORT_DECL tcp_store::~tcp_store() = default;

COHORT_DECL std::string tcp_store::describe() const { return link_->describe(); }

COHORT_DECL void tcp_store::fail(std::string_view doing, errc code, const std::string& what) const {
  link_->fail(doing, code, what);
}

COHORT_DECL void tcp_store::confirm(std::string_view name, deadline until) {
  detail::request_head head;
  head.call = detail::store_call::queue_taken;
  detail::request_body body;
  body.earlier = last_id_;
  const auto now = std::chrono::steady_clock::now();
  const deadline last = link_->last_moment(until, now);
  must(name, link_->connection().write(boost::asio::buffer(detail::encoded_request(head, body, {})), last), now);
}

COHORT_DECL tcp_store::answer tcp_store::ask(detail::store_call call, const detail::request_body& body,
                                             const detail::request_lists& lists, deadline until, bool patient) {
  const std::string_view name = detail::name_of(call);
  if (!link_->connection().is_open()) fail(name, errc::store_failed, "is not connected: " + ended_);
  const auto now = std::chrono::steady_clock::now();
  const bool waits = patient && detail::may_wait(call);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(until, now) - now).count();

  detail::request_head head;
  head.id = ++last_id_;
  head.call = call;
  head.patience_ms = waits ? std::min(static_cast<std::uint64_t>(left), detail::most_patience_ms) : 0;
  const std::string bytes = detail::encoded_request(head, body, lists);
  if (bytes.size() > detail::request_head_size + detail::largest_request(limits_))
    fail(name, errc::store_failed, "takes no request of this size");

  const deadline last = link_->last_moment(until, now);
  must(name, link_->connection().write(boost::asio::buffer(bytes), last), now);
  std::array<unsigned char, detail::reply_head_size> reply{};
  must(name, link_->connection().read(boost::asio::buffer(reply), last), now);
  const detail::reply_head got = detail::decode_reply_head(reply);
  if (got.id != head.id || got.size > detail::largest_reply(limits_)) {
    end("it sent a reply that does not belong to any request");
    fail(name, errc::protocol_error, "sent a reply that does not belong to the request");
  }
  answer result{got.status, std::string(got.size, '\0')};
  must(name, link_->connection().read(boost::asio::buffer(result.body), last), now);
  if (got.status != 0 && got.status != static_cast<std::uint32_t>(errc::timed_out)) {
    error_details details;
    details.rank = link_->rank();
    details.operation = std::string(name);
    throw error(errc::store_failed, result.body, details);
  }
  return result;
}

COHORT_DECL void tcp_store::end(const std::string& why) {
  ended_ = why;
  link_->connection().close();
}

COHORT_DECL void tcp_store::must(std::string_view doing, const boost::system::error_code& code, deadline started) {
  if (!code) return;
  const std::string waited = detail::duration_text(std::chrono::steady_clock::now() - started);
  if (code == boost::asio::error::timed_out) {
    end("it did not answer an earlier call");
    fail(doing, errc::timed_out, "did not answer within " + waited);
  }
  end("it went away (" + code.message() + ")");
  fail(doing, errc::store_failed,
       "went away during the call (" + code.message() + "); has the process that serves it ended?");
}

}  // namespace cohort
