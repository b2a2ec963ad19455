// SPDX-License-Identifier: BSL-1.0
// Bytes in one direction between two processes: one writes, one reads, neither waits. Used by shm/stream.hpp.
#pragma once

#include <cohort/detail/copy_words.hpp>
#include <cohort/detail/fetch_line.hpp>
#include <cohort/detail/hand_back.hpp>
#include <cohort/transport/byte_stream.hpp>
#include <cohort/transport/piece.hpp>
#include <cohort/transport/shm/ring_room.hpp>
#include <cohort/transport/shm/segment.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace cohort::transport {

/// What stands before the bytes. Positions count bytes and only grow; each has one writer.
///
/// Each write has an entry, in turn: its word tells how far the bytes go now, and those of a short write stand beside it and
/// nowhere else; of others, where they are. Who waits for a write looks at the entry that will be the next, so that it gets
/// both with one line, and takes no line away that the writer is about to write again. An entry is used again when its bytes
/// have been read.
struct ring_head {
  static constexpr std::size_t line = 64;
  static constexpr std::size_t beside = 2 * line - sizeof(std::uint64_t);
  struct alignas(2 * line) entry {
    std::atomic<std::uint64_t> word{0};  ///< a position, and how many of the bytes before it stand beside it
    std::byte bytes[beside];

    /// Of an entry whose bytes stand elsewhere: where in the room they begin.
    void set_start(std::size_t start) noexcept {
      const auto narrow = static_cast<std::uint32_t>(start);
      std::memcpy(bytes, &narrow, sizeof narrow);
    }
    [[nodiscard]] std::size_t start() const noexcept {
      std::uint32_t narrow = 0;
      std::memcpy(&narrow, bytes, sizeof narrow);
      return narrow;
    }
  };
  static constexpr std::size_t entries = 64;

  alignas(128) std::atomic<std::uint32_t> full{0};  ///< the writer waits for room, and wants to be woken
  alignas(128) std::atomic<std::uint64_t> read{0};
  alignas(128) std::atomic<std::uint32_t> offers{0};  ///< the reader wants some messages offered that need not be
  alignas(128) byte_stream::cursor cursors[byte_stream::cursors]{};  ///< of long messages in this direction
  alignas(128) entry written[entries]{};

  static constexpr unsigned shift = 8;
  [[nodiscard]] static constexpr std::uint64_t word(std::uint64_t position, std::size_t bytes_beside) noexcept {
    return position << shift | bytes_beside;
  }
};

class ring {
 public:
  static constexpr std::size_t capacity = ring_room::capacity;
  /// Where the room begins: in the midst of a page, as buffers mostly begin with one. A copy that loads from the part of a
  /// page that it has just stored to in another waits for these stores.
  static constexpr std::size_t head_bytes =
      (sizeof(ring_head) + shared_segment::page - 1) / shared_segment::page * shared_segment::page + 1536;
  static constexpr std::size_t segment_bytes = head_bytes + capacity;

  ring() = default;
  explicit ring(shared_segment memory, const ring_room& room = ring_room{}) noexcept
      : memory_(std::move(memory)),
        head_(reinterpret_cast<ring_head*>(memory_.data())),
        bytes_(memory_.data() + head_bytes),
        room_(room) {}

  [[nodiscard]] static ring create(const ring_room& room = ring_room{}) {
    shared_segment s = shared_segment::create(segment_bytes);
    ::new (s.data()) ring_head;
    return ring(std::move(s), room);
  }
  explicit operator bool() const noexcept { return head_ != nullptr; }
  void close_descriptor() noexcept { memory_.close_descriptor(); }
  [[nodiscard]] const shared_segment& memory() const noexcept { return memory_; }
  [[nodiscard]] ring_head& head() const noexcept { return *head_; }

  struct outcome {
    std::size_t bytes;  ///< that were written
    bool all;
  };
  /// Writer: as much as there is room for.
  outcome write(std::span<const piece> from) noexcept {
    std::size_t wanted = 0;
    for (const piece& p : from) wanted += p.bytes;
    if (wanted == 0) return {0, true};
    const bool beside = wanted <= ring_head::beside;
    ring_room::place whole{room_.next(), wanted};
    if (!(beside ? room_.follow(wanted) : room_.fits(wanted)) || !is_free(next_)) {
      hear_reader();
      if (!is_free(next_)) return {0, false};
      whole = room_.find(wanted);
    }
    if (beside && whole.bytes == wanted) {
      write_beside(from, wanted);
      return {wanted, true};
    }
    if (whole.bytes == wanted && wanted <= part_bytes) {  // in one go: most messages
      std::byte* to = bytes_ + whole.start;
      for (const piece& p : from) {
        std::memcpy(to, p.data, p.bytes);
        to += p.bytes;
      }
      publish_at(whole);
      fetch_room_for(wanted);
      return {wanted, true};
    }
    return write_in_parts(from, wanted, whole);
  }
  /// Writer: where so many bytes stand beside a word, to be written there in words and then told of by `wrote_beside`; null where they
  /// do not, or the reader has not come far enough.
  [[nodiscard]] std::byte* place_beside(std::size_t bytes) noexcept {
    if (bytes > ring_head::beside) return nullptr;
    if (!room_.follow(bytes) || !is_free(next_)) {
      hear_reader();
      if (!room_.follow(bytes) || !is_free(next_)) return nullptr;
    }
    return entry(next_).bytes;
  }
  void wrote_beside(std::size_t bytes) noexcept { publish(bytes, bytes); }
  /// How much can be written now, all of it.
  [[nodiscard]] std::size_t room() noexcept {
    hear_reader();
    return is_free(next_) ? room_.room(is_free(next_ + 1) ? 2 : 1) : 0;
  }

  [[nodiscard]] bool has_data() const noexcept { return end_ != read_ || look(); }
  /// Reader: the next bytes where they are, in a row; they stay until they are taken.
  [[nodiscard]] std::span<const std::byte> front() const noexcept {
    const std::size_t there = beside_ && end_ != read_ ? static_cast<std::size_t>(end_ - read_) : in_a_row();
    return {row_end_ - there, there};
  }
  /// Reader: takes `seen` bytes that it has looked at, and those of `into` behind them; all of them are there in a row.
  void take(std::size_t seen, const piece& into) noexcept {
    if (beside_) {
      detail::copy_words(row_end_ - (end_ - read_) + seen, into.data, into.bytes);
      read_ += seen + into.bytes;
    } else {
      take_from_room(seen, into);
    }
    give_room_back();
  }
  /// Reader: as much as has come and fits.
  std::size_t read(std::span<const piece> into) noexcept {
    std::size_t done = 0;
    for (const piece& p : into) {
      std::size_t filled = 0;
      while (filled < p.bytes) {
        const std::size_t part = std::min(p.bytes - filled, in_a_row());
        if (part == 0) break;
        const std::size_t block = std::min(part, detail::read_block(detail::readers::one));
        copy(read_, p.data + filled, block);
        done_with(block);
        filled += block;
      }
      done += filled;
      if (filled < p.bytes) break;
    }
    if (done > 0) give_room_back();
    return done;
  }
  /// Reader: what it has read may be written over. It says so by itself when that is much, or nothing else has come.
  void tell_read() const noexcept {
    told_ = read_;
    told_entry_ = seen_;
    head_->read.store(read_, std::memory_order_release);
  }

 private:
  static constexpr std::size_t part_bytes = std::size_t{32} << 10;

  [[nodiscard]] ring_head::entry& entry(std::uint64_t number) const noexcept {
    return head_->written[number % ring_head::entries];
  }
  void hear_reader() noexcept { room_.note_read(head_->read.load(std::memory_order_acquire)); }
  /// Writer: whether that entry may be written, as far as is known. Entries are asked for in turn.
  [[nodiscard]] bool is_free(std::uint64_t number) const noexcept {
    return room_.written() - ends_[number % ring_head::entries] >= room_.written() - room_.read();
  }
  outcome write_in_parts(std::span<const piece> from, std::size_t wanted, ring_room::place here) noexcept {
    std::size_t done = 0;
    std::size_t in_piece = 0;
    while (here.bytes > 0) {
      std::size_t told = 0;
      for (std::size_t at = 0; at < here.bytes;) {
        const piece& p = from.front();
        const std::size_t part = std::min({p.bytes - in_piece, here.bytes - at, part_bytes});
        std::memcpy(bytes_ + here.start + at, p.data + in_piece, part);
        at += part;
        in_piece += part;
        if (in_piece == p.bytes) {
          from = from.subspan(1);
          in_piece = 0;
        }
        // The reader begins with the first of a long run while the rest is written. The last entries are for the end of it,
        // and for what goes elsewhere.
        const std::uint64_t kept = done + here.bytes < wanted ? 2 : 1;
        if (at - told >= part_bytes && at < here.bytes && is_free(next_ + kept)) {
          publish_at({here.start + told, at - told});
          told = at;
        }
      }
      publish_at({here.start + told, here.bytes - told});
      done += here.bytes;
      if (done == wanted || !is_free(next_)) break;
      here = room_.find(wanted - done);
    }
    return {done, done == wanted};
  }
  /// Not with each message: a writer that waits for room looks at the word all the time, and would get room for one.
  void give_room_back() const noexcept {
    if (read_ - told_ >= ring_room::lap / 4 || seen_ - told_entry_ >= ring_head::entries / 4) tell_read();
  }
  /// Reader: how many bytes there are that can be copied from one place.
  [[nodiscard]] std::size_t in_a_row() const noexcept {
    if (end_ == read_) (void)look();
    // A long run comes in parts.
    while (end_ - read_ >= part_bytes && !beside_ && look()) {}
    return static_cast<std::size_t>(end_ - read_);
  }
  /// Whether there is more than what is known. Bytes beside a word are not taken while there are others before them.
  bool look() const noexcept {
    const ring_head::entry& next = entry(seen_);
    const std::uint64_t word = next.word.load(std::memory_order_acquire);
    const std::uint64_t more = ((word >> ring_head::shift) - end_) & positions;
    // An entry of the last time round tells of what has long been read. A position that cannot be is a peer's mistake, and
    // not believed.
    if (more == 0 || more > capacity - (end_ - read_)) {
      if (told_ != read_) tell_read();
      return false;
    }
    const bool beside = (word & ((std::uint64_t{1} << ring_head::shift) - 1)) == more && more <= ring_head::beside;
    const std::byte* from = next.bytes;
    if (!beside) {
      const std::size_t start = next.start();
      if (start > capacity || more > capacity - start) return false;
      from = bytes_ + start;
    }
    if (end_ != read_ && (beside || beside_ || from != row_end_)) return false;
    beside_ = beside;
    row_end_ = from + more;
    end_ += more;
    ++seen_;
    if (!beside) fetch_first();
    // Of a writer that is ahead. Not the next one, which it may be writing.
    __builtin_prefetch(&entry(seen_ + 2));
    return true;
  }
  /// What is read first comes from the other core while its header is looked at.
  void fetch_first() const noexcept {
    const std::byte* const from = row_end_ - (end_ - read_);
    const auto bytes = std::min<std::size_t>(static_cast<std::size_t>(end_ - read_), 16 * ring_head::line);
    for (std::size_t at = 0; at < bytes; at += ring_head::line) __builtin_prefetch(from + at);
  }
  /// Bytes [at, at + bytes), all of which are there in a row.
  void copy(std::uint64_t at, std::byte* into, std::size_t bytes) const noexcept {
    if (bytes == 0) return;
    const std::byte* const from = row_end_ - (end_ - at);
    if (beside_) return detail::copy_words(from, into, bytes);
    std::memcpy(into, from, bytes);
  }
  /// What has been read may be written to again, where it does not stand beside a word.
  void done_with(std::size_t bytes) noexcept {
    if (!beside_) detail::hand_back(bytes_ + (row_end_ - bytes_ - static_cast<std::ptrdiff_t>(end_ - read_)), bytes);
    read_ += bytes;
  }
  [[gnu::noinline]] void take_from_room(std::size_t seen, const piece& into) noexcept {
    copy(read_ + seen, into.data, into.bytes);
    done_with(seen + into.bytes);
  }
  void publish_at(const ring_room::place& p) noexcept {
    entry(next_).set_start(p.start);
    publish(p.bytes, 0);
  }
  void publish(std::size_t bytes, std::size_t bytes_beside) noexcept {
    room_.advance(bytes);
    ends_[next_ % ring_head::entries] = room_.written();
    entry(next_).word.store(ring_head::word(room_.written(), bytes_beside), std::memory_order_release);
    ++next_;
    // The next one may be looked at already. That behind it comes while the next is made; what is written after those to a
    // line that is elsewhere waits for it.
    std::byte* const lines = reinterpret_cast<std::byte*>(&entry(next_ + 1));
    detail::fetch_line_to_write(lines);
    detail::fetch_line_to_write(lines + ring_head::line);
  }
  /// The next message is often like the last: its lines, which the reader has had, come while it is made. The one that the
  /// last ends in is still to be read.
  void fetch_room_for(std::size_t bytes) const noexcept {
    const std::size_t lines = std::min<std::size_t>(bytes / ring_head::line + 2, 64);
    const std::size_t next = room_.fits(bytes) ? room_.next() + ring_head::line : 0;
    for (std::size_t i = 0; i < lines; ++i) {
      detail::fetch_line_to_write(bytes_ + (next + i * ring_head::line) % capacity);
    }
  }
  void write_beside(std::span<const piece> from, std::size_t bytes) noexcept {
    std::byte* to = entry(next_).bytes;
    for (const piece& p : from) {
      detail::copy_words(p.data, to, p.bytes);
      to += p.bytes;
    }
    publish(bytes, bytes);
  }
  /// What a word has room for of a position: more bytes than will ever be written.
  static constexpr std::uint64_t positions = ~std::uint64_t{0} >> ring_head::shift;

  shared_segment memory_{};
  ring_head* head_ = nullptr;
  std::byte* bytes_ = nullptr;
  // The writer's own: where its bytes go, its next entry, and the position that each entry was last written with.
  ring_room room_{};
  std::uint64_t next_ = 0;
  std::array<std::uint64_t, ring_head::entries> ends_{};
  // The reader's own: how far it has read and may read, the entry behind that, and what those bytes end before.
  std::uint64_t read_ = 0;
  mutable std::uint64_t end_ = 0;
  mutable std::uint64_t seen_ = 0;
  mutable const std::byte* row_end_ = nullptr;
  mutable bool beside_ = false;
  // What the writer has been told of that.
  mutable std::uint64_t told_ = 0;
  mutable std::uint64_t told_entry_ = 0;
};

}  // namespace cohort::transport
