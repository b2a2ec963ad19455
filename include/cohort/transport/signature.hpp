// SPDX-License-Identifier: BSL-1.0
// What a call claims to be. It travels in the header of every message, so that two ranks that call different
// things under one number are told so, with both sides named, instead of hanging or computing nonsense.
#pragma once

#include <cohort/collective/operation_kind.hpp>
#include <cohort/collective/select.hpp>
#include <cohort/element.hpp>
#include <cohort/reduction.hpp>

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

namespace cohort::transport {

/// The fingerprint of a call: 16 bytes that can be read back, not a hash.
struct signature {
  static constexpr std::uint16_t no_root = 0xffff;
  /// The count of a call whose receivers are not told theirs: the counts travel before the elements.
  static constexpr std::uint64_t negotiated = ~std::uint64_t{0};

  operation_kind kind{};
  collective::algorithm algorithm{};
  std::uint16_t type = 0;     ///< element_type_id
  std::uint16_t functor = 0;  ///< functor_id; 0 where nothing is reduced
  std::uint16_t root = no_root;
  std::uint64_t count = 0;  ///< elements; 0 where the counts of the ranks may differ; or `negotiated`

  [[nodiscard]] constexpr std::uint64_t packed() const noexcept {
    return std::uint64_t{static_cast<std::uint8_t>(kind)} | std::uint64_t{static_cast<std::uint8_t>(algorithm)} << 8 |
           std::uint64_t{type} << 16 | std::uint64_t{functor} << 32 | std::uint64_t{root} << 48;
  }
  /// The same of another kind of call.
  [[nodiscard]] constexpr std::uint64_t packed_as(operation_kind other) const noexcept {
    return (packed() & ~std::uint64_t{0xff}) | static_cast<std::uint8_t>(other);
  }
  /// Becomes what is packed there, but for the count, written as the word that `packed` soon reads: one that was written in
  /// parts, or with the word beside it, is not read before these have left for the cache, and all that was written before them, which
  /// may be to lines of another core.
  void set_packed(std::uint64_t bits) noexcept {
    if constexpr (std::endian::native == std::endian::little) {
      std::memcpy(this, &bits, sizeof bits);
    } else {
      *this = unpack(bits, count);
    }
  }
  void copy_by_words(const signature& from) noexcept {
    set_packed(from.packed());
    std::atomic_signal_fence(std::memory_order_seq_cst);  // or compilers make one access of both words
    count = from.count;
  }
  [[nodiscard]] static constexpr signature unpack(std::uint64_t bits, std::uint64_t count) noexcept {
    signature s;
    s.kind = static_cast<operation_kind>(static_cast<std::uint8_t>(bits));
    s.algorithm = static_cast<collective::algorithm>(static_cast<std::uint8_t>(bits >> 8));
    s.type = static_cast<std::uint16_t>(bits >> 16);
    s.functor = static_cast<std::uint16_t>(bits >> 32);
    s.root = static_cast<std::uint16_t>(bits >> 48);
    s.count = count;
    return s;
  }
  friend constexpr bool operator==(const signature&, const signature&) = default;
};

/// "all_reduce(1000 x float32, sum)": the call as its author wrote it.
[[nodiscard]] inline std::string describe(const signature& s) {
  std::string text{name(s.kind)};
  std::string inside;
  const auto add = [&inside](const std::string& part) { inside += (inside.empty() ? "" : ", ") + part; };
  const bool counted = s.count != 0 && s.count != signature::negotiated;
  if (s.type != 0)
    add(counted ? std::to_string(s.count) + " x " + element_type_name(s.type) : element_type_name(s.type));
  if (s.count == signature::negotiated) add("no counts at the receivers");
  if (s.functor != 0) add(functor_name(s.functor));
  if (s.root != signature::no_root) add("root " + std::to_string(s.root));
  return text + "(" + inside + ")";
}

/// As `describe`, with the algorithm: for two calls that differ in nothing else.
[[nodiscard]] inline std::string describe_fully(const signature& s) {
  return describe(s) + " by " + std::string{to_string(s.algorithm)};
}

/// Two ranks that gave different counts for one block.
[[nodiscard]] inline std::string describe_count_disagreement(int sender, std::uint64_t sent, int receiver,
                                                             std::uint64_t expected, const std::string& what) {
  return "rank " + std::to_string(sender) + " sent " + std::to_string(sent) + " bytes of " + what + ", rank " +
         std::to_string(receiver) + " expected " + std::to_string(expected) +
         ": the counts given by the two ranks differ";
}

/// Two ranks that called different things under one number; `whose` is what they are ranks of, if not obvious.
[[nodiscard]] inline std::string describe_disagreement(int one, const signature& its_call, int other,
                                                       const signature& other_call, const char* whose = "") {
  const bool alike = describe(its_call) == describe(other_call);
  const auto said = [alike, whose](int rank, const signature& s) {
    return whose + std::string{"rank "} + std::to_string(rank) + " called " + (alike ? describe_fully(s) : describe(s));
  };
  const char* mending = "; the ranks of a communicator call the same operations in the same order";
  if (alike) {
    mending = "; every rank must be given the same algorithms";
  } else if (its_call.kind == other_call.kind &&
             (its_call.count == signature::negotiated) != (other_call.count == signature::negotiated)) {
    mending = "; either all ranks call the form with counts at the receivers, or none does";
  }
  return said(one, its_call) + ", " + said(other, other_call) + mending;
}

}  // namespace cohort::transport
