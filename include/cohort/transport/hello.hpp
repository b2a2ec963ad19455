// SPDX-License-Identifier: BSL-1.0
// The first 96 bytes of every connection of a job, and the 96 bytes that accept or refuse it: pure encoding,
// decoding and judging, without sockets. The store and the data connections open with it; nothing else that a peer
// sends is looked at before it is accepted.
#pragma once

#include <cohort/detail/byte_codec.hpp>
#include <cohort/detail/sha256.hpp>
#include <cohort/error.hpp>
#include <cohort/version.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace cohort::transport {

/// Ranks understand each other when they are of one library version, up to the patch level, and of one protocol: both
/// are in the number that a hello begins with.
inline constexpr std::uint32_t protocol_revision = 24;
inline constexpr std::uint32_t protocol_version =
    (std::uint32_t{COHORT_VERSION_MAJOR} << 24) | (std::uint32_t{COHORT_VERSION_MINOR} << 16) | protocol_revision;
static_assert(COHORT_VERSION_MAJOR < 256 && COHORT_VERSION_MINOR < 256 && protocol_revision < 65536);

/// "cohort 0.1 (protocol 1)", of the version in a hello
[[nodiscard]] inline std::string version_in_words(std::int64_t version) {
  return "cohort " + std::to_string(version >> 24 & 0xff) + "." + std::to_string(version >> 16 & 0xff) +
         " (protocol " + std::to_string(version & 0xffff) + ")";
}

inline constexpr std::size_t hello_size = 96;
using hello_bytes = std::array<unsigned char, hello_size>;

/// The number that stands for a run id on the wire; 0 for none.
[[nodiscard]] constexpr std::uint64_t job_id(std::string_view run_id) noexcept {
  return run_id.empty() ? 0 : cohort::detail::fnv1a(run_id);
}

enum class connection_role : std::uint8_t { store = 1, data = 2, control = 3 };

[[nodiscard]] inline std::string to_string(connection_role role) {
  switch (role) {
    case connection_role::store:
      return "store";
    case connection_role::data:
      return "data";
    case connection_role::control:
      return "control";
  }
  return "role " + std::to_string(static_cast<int>(role));
}

/// Who opens a connection, and to what.
struct hello {
  std::uint32_t version = protocol_version;
  connection_role role = connection_role::store;
  std::uint16_t port = 0;  ///< where the sender listens; 0 when it does not
  std::uint64_t job = 0;
  std::uint32_t epoch = 0;
  std::uint32_t pid = 0;
  std::int32_t world_size = 0;
  std::int32_t rank = -1;    ///< of the sender; -1 for a tool that is no rank
  std::int32_t target = -1;  ///< the rank that the sender means to reach; -1 when it does not care
  std::uint32_t lane = 0;    ///< which of several connections between the same two ranks; 0: the first
  std::array<unsigned char, 16> nonce{};
  cohort::detail::sha256_digest proof{};  ///< zero without a secret
  friend bool operator==(const hello&, const hello&) = default;
};

/// What a hello is refused for. `none`: it is accepted.
enum class hello_field : std::uint16_t {
  none,
  magic,
  version,
  proof,
  role,
  job,
  epoch,
  world_size,
  rank,
  target,
  capacity,
  tls,
  lane
};

/// What the listener knows about itself.
struct hello_expectation {
  connection_role role = connection_role::store;
  std::uint64_t job = 0;
  std::uint32_t epoch = 0;
  std::int32_t world_size = 0;  ///< 0: any; then ranks are not compared with it either
  std::int32_t rank = -1;       ///< of the listener; -1: any target will do
  std::string_view secret{};
};

/// The listener's judgement, with the value that it expected and the one that it found.
struct hello_verdict {
  hello_field field = hello_field::none;
  std::int64_t expected = 0;
  std::int64_t found = 0;
  [[nodiscard]] bool accepted() const noexcept { return field == hello_field::none; }
  friend bool operator==(const hello_verdict&, const hello_verdict&) = default;
};

/// The listener's answer to a hello.
struct hello_reply {
  std::uint32_t version = protocol_version;
  hello_verdict verdict{};
  std::int32_t rank = -1;  ///< of the listener
  std::uint32_t pid = 0;
  cohort::detail::sha256_digest proof{};
  friend bool operator==(const hello_reply&, const hello_reply&) = default;
};

namespace hello_layout {

inline constexpr std::string_view hello_magic{"cohort>\n", 8};
inline constexpr std::string_view reply_magic{"cohort<\n", 8};
inline constexpr std::size_t proof_offset = 64;

[[nodiscard]] inline hello_bytes framed(std::string_view magic, const std::string& fields) noexcept {
  hello_bytes bytes{};
  std::memcpy(bytes.data(), magic.data(), magic.size());
  std::memcpy(bytes.data() + magic.size(), fields.data(), std::min(fields.size(), hello_size - magic.size()));
  return bytes;
}

[[nodiscard]] inline std::string_view fields_of(std::span<const unsigned char, hello_size> bytes) noexcept {
  return cohort::detail::as_text(bytes).substr(8);
}

inline void put_proof(hello_bytes& bytes, const cohort::detail::sha256_digest& proof) noexcept {
  std::memcpy(bytes.data() + proof_offset, proof.data(), proof.size());
}

[[nodiscard]] inline cohort::detail::sha256_digest proof_of(std::string_view secret, std::string_view purpose,
                                                            std::string_view nonce, const hello_bytes& bytes) {
  if (secret.empty()) return {};
  std::string message(purpose);
  message += nonce;
  message += cohort::detail::as_text(std::span(bytes).first(proof_offset));
  return cohort::detail::hmac_sha256(secret, message);
}

}  // namespace hello_layout

[[nodiscard]] inline hello_bytes encode(const hello& h) {
  std::string fields;
  cohort::detail::byte_writer to(fields);
  to.number(h.version).number(static_cast<std::uint8_t>(h.role)).number(std::uint8_t{0}).number(h.port);
  to.number(h.job).number(h.epoch).number(h.pid);
  to.number(static_cast<std::uint32_t>(h.world_size)).number(static_cast<std::uint32_t>(h.rank));
  to.number(static_cast<std::uint32_t>(h.target)).number(h.lane);
  fields += cohort::detail::as_text(h.nonce);
  fields += cohort::detail::as_text(h.proof);
  return hello_layout::framed(hello_layout::hello_magic, fields);
}

/// The hello in `bytes`; nothing when they do not begin as one does.
[[nodiscard]] inline std::optional<hello> decode_hello(std::span<const unsigned char, hello_size> bytes) noexcept {
  if (cohort::detail::as_text(bytes).substr(0, 8) != hello_layout::hello_magic) return std::nullopt;
  cohort::detail::byte_reader from(hello_layout::fields_of(bytes));
  hello h;
  h.version = from.number<std::uint32_t>();
  h.role = static_cast<connection_role>(from.number<std::uint8_t>());
  (void)from.number<std::uint8_t>();
  h.port = from.number<std::uint16_t>();
  h.job = from.number<std::uint64_t>();
  h.epoch = from.number<std::uint32_t>();
  h.pid = from.number<std::uint32_t>();
  h.world_size = static_cast<std::int32_t>(from.number<std::uint32_t>());
  h.rank = static_cast<std::int32_t>(from.number<std::uint32_t>());
  h.target = static_cast<std::int32_t>(from.number<std::uint32_t>());
  h.lane = from.number<std::uint32_t>();
  std::memcpy(h.nonce.data(), bytes.data() + 48, h.nonce.size());
  std::memcpy(h.proof.data(), bytes.data() + hello_layout::proof_offset, h.proof.size());
  return h;
}

/// The bytes of `h` with the proof that its sender knows the secret; without a secret the proof stays zero.
///
/// Needs: a nonce that this job has not used before
[[nodiscard]] inline hello_bytes sealed(const hello& h, std::string_view secret) {
  hello_bytes bytes = encode(h);
  hello_layout::put_proof(bytes, hello_layout::proof_of(secret, "cohort hello", {}, bytes));
  return bytes;
}

/// Judges a hello: magic, version and proof first, and nothing further of one that fails them.
[[nodiscard]] inline hello_verdict judge(std::span<const unsigned char, hello_size> bytes,
                                         const hello_expectation& mine) {
  const std::optional<hello> decoded = decode_hello(bytes);
  if (!decoded) {
    const bool is_tls = bytes[0] == 0x16 && bytes[1] == 0x03;  // how a TLS connection begins
    return {is_tls ? hello_field::tls : hello_field::magic, 0, is_tls ? 1 : 0};
  }
  const hello& h = *decoded;
  const auto differs = [](hello_field field, auto expected, auto found) {
    return hello_verdict{field, static_cast<std::int64_t>(expected), static_cast<std::int64_t>(found)};
  };
  if (h.version != protocol_version) return differs(hello_field::version, protocol_version, h.version);
  hello_bytes copy{};
  std::copy(bytes.begin(), bytes.end(), copy.begin());
  if (!cohort::detail::same_digest(h.proof, hello_layout::proof_of(mine.secret, "cohort hello", {}, copy))) {
    return differs(hello_field::proof, mine.secret.empty() ? 0 : 1, h.proof == cohort::detail::sha256_digest{} ? 0 : 1);
  }
  if (h.role != mine.role) return differs(hello_field::role, mine.role, h.role);
  if (h.job != mine.job) return differs(hello_field::job, mine.job, h.job);
  if (h.epoch != mine.epoch) return differs(hello_field::epoch, mine.epoch, h.epoch);
  if (mine.world_size != 0) {
    if (h.world_size != mine.world_size) return differs(hello_field::world_size, mine.world_size, h.world_size);
    if (h.rank < -1 || h.rank >= mine.world_size) return differs(hello_field::rank, mine.world_size - 1, h.rank);
  }
  if (mine.rank >= 0 && h.target >= 0 && h.target != mine.rank)
    return differs(hello_field::target, mine.rank, h.target);
  return {};
}

/// The answer to `asked`, with the proof that the listener knows the secret too.
[[nodiscard]] inline hello_bytes sealed(const hello_reply& r, const hello& asked, std::string_view secret) {
  std::string fields;
  cohort::detail::byte_writer to(fields);
  to.number(r.version).number(static_cast<std::uint16_t>(r.verdict.field)).number(std::uint16_t{0});
  to.number(static_cast<std::uint64_t>(r.verdict.expected)).number(static_cast<std::uint64_t>(r.verdict.found));
  to.number(static_cast<std::uint32_t>(r.rank)).number(r.pid);
  hello_bytes bytes = hello_layout::framed(hello_layout::reply_magic, fields);
  hello_layout::put_proof(bytes,
                          hello_layout::proof_of(secret, "cohort reply", cohort::detail::as_text(asked.nonce), bytes));
  return bytes;
}

/// Whether the first bytes of an answer are those of a reply: what speaks another protocol is known by them.
[[nodiscard]] inline bool begins_as_reply(std::span<const unsigned char, 8> bytes) noexcept {
  return cohort::detail::as_text(bytes) == hello_layout::reply_magic;
}

/// The reply in `bytes`; nothing when they do not begin as one does.
[[nodiscard]] inline std::optional<hello_reply> decode_reply(
    std::span<const unsigned char, hello_size> bytes) noexcept {
  if (cohort::detail::as_text(bytes).substr(0, 8) != hello_layout::reply_magic) return std::nullopt;
  cohort::detail::byte_reader from(hello_layout::fields_of(bytes));
  hello_reply r;
  r.version = from.number<std::uint32_t>();
  const auto field = from.number<std::uint16_t>();
  r.verdict.field =
      field <= static_cast<std::uint16_t>(hello_field::lane) ? static_cast<hello_field>(field) : hello_field::magic;
  (void)from.number<std::uint16_t>();
  r.verdict.expected = static_cast<std::int64_t>(from.number<std::uint64_t>());
  r.verdict.found = static_cast<std::int64_t>(from.number<std::uint64_t>());
  r.rank = static_cast<std::int32_t>(from.number<std::uint32_t>());
  r.pid = from.number<std::uint32_t>();
  std::memcpy(r.proof.data(), bytes.data() + hello_layout::proof_offset, r.proof.size());
  return r;
}

/// Whether the sender of a reply knows the secret and answers this hello, not another one.
[[nodiscard]] inline bool is_genuine(std::span<const unsigned char, hello_size> reply, const hello& asked,
                                     std::string_view secret) {
  hello_bytes copy{};
  std::copy(reply.begin(), reply.end(), copy.begin());
  cohort::detail::sha256_digest proof{};
  std::memcpy(proof.data(), copy.data() + hello_layout::proof_offset, proof.size());
  return cohort::detail::same_digest(
      proof, hello_layout::proof_of(secret, "cohort reply", cohort::detail::as_text(asked.nonce), copy));
}

[[nodiscard]] constexpr errc error_code_of(hello_field field) noexcept {
  switch (field) {
    case hello_field::version:
      return errc::version_mismatch;
    case hello_field::proof:
    case hello_field::job:
    case hello_field::epoch:
      return errc::wrong_job;
    case hello_field::world_size:
      return errc::world_size_mismatch;
    case hello_field::capacity:
      return errc::store_failed;
    case hello_field::tls:
      return errc::tls_failed;
    case hello_field::none:
    case hello_field::magic:
    case hello_field::role:
    case hello_field::rank:
    case hello_field::target:
    case hello_field::lane:
      break;
  }
  return errc::protocol_error;
}

/// What to do when one end of a connection speaks TLS and the other does not.
inline constexpr std::string_view tls_everywhere =
    "set COHORT_TLS_CERTIFICATE, COHORT_TLS_KEY and COHORT_TLS_AUTHORITY on every rank or on none";

/// What a listener that speaks TLS alone answers to who does not, in plain text.
[[nodiscard]] inline hello_bytes refusal_of_plain_text(std::int32_t rank) {
  hello_reply reply;
  reply.verdict = {hello_field::tls, 1, 0};
  reply.rank = rank;
  return sealed(reply, hello{}, {});
}

/// The refusal in words for the side that was refused: "mine" is the sender of the hello.
[[nodiscard]] inline std::string explain(const hello_verdict& v) {
  const std::string both = "it has " + std::to_string(v.expected) + ", this process has " + std::to_string(v.found);
  switch (v.field) {
    case hello_field::none:
      return "accepted";
    case hello_field::magic:
      return "it does not recognise this connection as one of cohort";
    case hello_field::version:
      return "it is " + version_in_words(v.expected) + ", this process is " + version_in_words(v.found) +
             ": build every rank with the same version";
    case hello_field::proof:
      if (v.expected == 0) return "it has no secret, this process has one: set COHORT_SECRET on every rank or on none";
      if (v.found == 0) return "it has a secret, this process has none: set COHORT_SECRET on every rank or on none";
      return "it has another secret than this process, or has seen this hello before";
    case hello_field::role:
      return "it serves " + to_string(static_cast<connection_role>(v.expected)) + " connections, not " +
             to_string(static_cast<connection_role>(v.found)) + " ones";
    case hello_field::job:
      return "it belongs to another job (its run id differs): job ids: " + both;
    case hello_field::epoch:
      return "it is in another epoch of the job: " + both;
    case hello_field::world_size:
      return "the world sizes differ: " + both;
    case hello_field::rank:
      return "it knows ranks up to " + std::to_string(v.expected) + ", this process is rank " + std::to_string(v.found);
    case hello_field::target:
      return "it is rank " + std::to_string(v.expected) + ", this process meant to reach rank " +
             std::to_string(v.found);
    case hello_field::capacity:
      return "it has " + std::to_string(v.found) + " clients, which is its limit";
    case hello_field::tls:
      return "it speaks TLS 1.3 alone, this process does not: " + std::string(tls_everywhere);
    case hello_field::lane:
      return "it takes " + std::to_string(v.expected) + " connections beside the first one, this is number " +
             std::to_string(v.found);
  }
  return "it refused for a reason that this version does not know";
}

}  // namespace cohort::transport
