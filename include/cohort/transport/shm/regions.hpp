// SPDX-License-Identifier: BSL-1.0
// Buffers of the ranks of one host that the others may read and write where they are. Used by the kernels in
// collective/shared/ and by communicator/memory.hpp.
#pragma once

#include <cohort/transport/shm/neighbours.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cohort::transport {

/// Where bytes lie that other ranks can reach: bytes [skip, skip + length) of some buffer are at `offset` of that
/// registered memory; number 0 is none.
struct region_place {
  std::uint64_t number = 0;
  std::uint64_t offset = 0;
  std::uint64_t skip = 0;
  std::uint64_t length = 0;
};

class regions {
 public:
  explicit regions(neighbours& here) noexcept : here_(&here) {}

  /// Puts the pages that a buffer has for itself into shared memory, at the addresses that they have, and hands them
  /// to these ranks. What it has of its first and its last page stays where it is: others may use these pages.
  ///
  /// Result: the number of the region; 0 when the buffer has no page for itself
  /// Needs:  no other thread touches the buffer meanwhile
  /// Errors: invalid_argument when part of it is registered already, out_of_memory, io_error; the buffer is as before
  [[nodiscard]] std::uint64_t promote(std::byte* data, std::size_t bytes, const std::vector<int>& to) {
    const auto address = reinterpret_cast<std::uintptr_t>(data);
    const std::uintptr_t first = shared_segment::rounded(address);
    const std::uintptr_t end = (address + bytes) / shared_segment::page * shared_segment::page;
    if (end <= first) return 0;
    auto* const from = reinterpret_cast<std::byte*>(first);
    const auto size = static_cast<std::size_t>(end - first);
    for (const own& o : mine_) {
      if (from < o.data + o.bytes && o.data < from + size) {
        throw error(errc::invalid_argument,
                    "register_memory: part of the buffer is registered already: keep one registration of the whole");
      }
    }
    shared_segment memory = shared_segment::create(size);
    const std::uint64_t number = offer(memory, to);
    mine_.push_back({number, from, size});
    std::memcpy(memory.data(), from, size);
    // From here on the same bytes are under the same addresses, and in the segment.
    if (!memory.move_to(from)) {
      const int why = errno;
      remove(number, to);
      throw error(errc::io_error,
                  std::string{"cannot put a registered buffer into shared memory: "} + std::strerror(why));
    }
    return number;
  }
  /// Memory that was made to be shared.
  [[nodiscard]] std::uint64_t add(const shared_segment& memory, const std::vector<int>& to) {
    const std::uint64_t number = offer(memory, to);
    mine_.push_back({number, memory.data(), memory.size()});
    return number;
  }
  /// The others forget it. The memory stays what it is.
  void remove(std::uint64_t number, const std::vector<int>& to) {
    mine_.erase(std::remove_if(mine_.begin(), mine_.end(), [number](const own& o) { return o.number == number; }),
                mine_.end());
    for (const int r : to) here_->send(r, letter_kind::buffer_gone, 0, number);
  }
  /// An operation has ended with an error while others reached these places: what they still do there is done to pages that
  /// are not this rank's any more. Pages of which a place has only a part stay, as what else is on them is not the
  /// operation's. What was registered there is so no more.
  void take_back(const region_place& in, const region_place& out) noexcept {
    for (const region_place& place : {in, out}) {
      const auto owner =
          std::find_if(mine_.begin(), mine_.end(), [&](const own& o) { return o.number == place.number; });
      if (owner == mine_.end()) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(owner->data) + place.offset;
      const std::uintptr_t first = shared_segment::rounded(begin);
      const std::uintptr_t end = (begin + place.length) / shared_segment::page * shared_segment::page;
      if (first < end) shared_segment::make_private(reinterpret_cast<std::byte*>(first), end - first);
    }
    std::erase_if(mine_, [&](const own& o) { return o.number == in.number || o.number == out.number; });
  }

  /// How much of this memory lies in a registered buffer of this rank: all, but for less than a page at either end.
  [[nodiscard]] region_place find(const void* data, std::size_t bytes) const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(data);
    for (const own& o : mine_) {
      const auto begin = reinterpret_cast<std::uintptr_t>(o.data);
      const std::uintptr_t from = std::max(first, begin);
      const std::uintptr_t to = std::min(first + bytes, begin + o.bytes);
      if (to <= from) continue;
      if (from - first >= shared_segment::page || first + bytes - to >= shared_segment::page) continue;
      return {o.number, from - begin, from - first, to - from};
    }
    return {};
  }
  [[nodiscard]] bool empty() const noexcept { return mine_.empty(); }

  /// Where that buffer of another rank would begin in this process, if all of it were there; null while its memory is
  /// not known.
  ///
  /// Errors: protocol_error when its letter was no such memory, or the place is not in it
  [[nodiscard]] std::byte* of(int rank, const region_place& place) {
    take_letters();
    const auto at = theirs_.find({rank, place.number});
    if (at == theirs_.end()) return nullptr;
    const std::size_t size = at->second.size();
    if (place.offset > size || place.length > size - place.offset || place.skip >= shared_segment::page) {
      throw error(errc::protocol_error, "rank " + std::to_string(rank) + " names a place of " +
                                            std::to_string(place.length) + " bytes outside of the " +
                                            std::to_string(size) + " that it registered");
    }
    return at->second.data() + place.offset - place.skip;
  }

 private:
  struct own {
    std::uint64_t number;
    std::byte* data;
    std::size_t bytes;
  };

  [[nodiscard]] std::uint64_t offer(const shared_segment& memory, const std::vector<int>& to) {
    const std::uint64_t number = ++last_;
    try {
      for (const int r : to) here_->send(r, letter_kind::buffer, 0, number, memory);
    } catch (...) {
      remove(number, to);  // some have it
      throw;
    }
    return number;
  }
  void take_letters() {
    const auto concerns = [](const letter& l) {
      return l.kind == letter_kind::buffer || l.kind == letter_kind::buffer_gone;
    };
    while (std::optional<received_letter> l = here_->take(concerns)) {
      const std::pair<int, std::uint64_t> key{l->text.from, l->text.number};
      if (l->text.kind == letter_kind::buffer_gone) {
        theirs_.erase(key);
      } else {
        theirs_.insert_or_assign(key, shared_segment::adopt(std::move(l->enclosed), l->text.bytes));
      }
    }
  }

  neighbours* here_;
  std::vector<own> mine_{};
  std::map<std::pair<int, std::uint64_t>, shared_segment> theirs_{};
  std::uint64_t last_ = 0;
};

}  // namespace cohort::transport
