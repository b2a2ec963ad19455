// SPDX-License-Identifier: BSL-1.0
// Copies past the caches: every byte arrives and none beside it is touched, whatever the addresses, by every width of
// store that this processor has.
#include <cohort/detail/stream_store.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using namespace cohort::detail;

namespace {

constexpr auto untouched = std::byte{0xa5};

struct memory {
  explicit memory(std::size_t bytes) : all(bytes + 3 * stream_line, untouched) {}
  /// At this distance from the beginning of a line, with bytes before it.
  [[nodiscard]] std::byte* at(std::size_t offset) {
    const auto address = reinterpret_cast<std::uintptr_t>(all.data());
    return all.data() + (stream_line - address % stream_line) % stream_line + stream_line + offset;
  }
  std::vector<std::byte> all;
};

void fill(memory& m) {
  for (std::size_t i = 0; i < m.all.size(); ++i) m.all[i] = static_cast<std::byte>(i * 7 + i / 251);
}

/// Whether `to` has got these bytes and nothing else.
bool arrived(const memory& whole, const std::byte* to, const std::byte* from, std::size_t bytes) {
  if (std::memcmp(to, from, bytes) != 0) return false;
  const std::byte* const end = whole.all.data() + whole.all.size();
  for (const std::byte* p = whole.all.data(); p != to; ++p) {
    if (*p != untouched) return false;
  }
  for (const std::byte* p = to + bytes; p != end; ++p) {
    if (*p != untouched) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("stream_copy: bytes at any address, of any number") {
  int wrong = 0;
  for (const std::size_t bytes : {0U, 1U, 15U, 63U, 64U, 65U, 127U, 128U, 200U, 512U, 1000U}) {
    for (std::size_t to = 0; to < stream_line; ++to) {
      for (const std::size_t from : {0U, 1U, 8U, 16U, 33U}) {
        memory source(bytes + stream_line);
        memory target(bytes + stream_line);
        fill(source);
        stream_copy(target.at(to), source.at(from), bytes);
        stream_fence();
        wrong += !arrived(target, target.at(to), source.at(from), bytes);
      }
    }
  }
  CHECK(wrong == 0);
}

#if COHORT_HAS_STREAM_STORE
#if defined(__x86_64__)
[[gnu::target("avx")]] void stream_blocks(std::byte* dst, const std::byte* src, std::size_t blocks, bool whole_lines) {
  for (; blocks > 0; --blocks, dst += stream_block, src += stream_block) stream_block_inline(dst, src, whole_lines);
  __builtin_ia32_vzeroupper();
}

TEST_CASE("streamed blocks: without a call, by stores of lines and of halves of them") {
  if (!__builtin_cpu_supports("avx")) {
    MESSAGE("this processor has no AVX, which such loops are compiled for");
    return;
  }
  for (const bool whole_lines : {false, true}) {
    if (whole_lines && !stores_whole_lines()) {
      MESSAGE("this processor has no store of a whole line");
      continue;
    }
    for (const std::size_t blocks : {0U, 1U, 3U}) {
      for (const std::size_t from : {0U, 1U, 16U, 40U}) {
        memory source(blocks * stream_block + stream_line);
        memory target(blocks * stream_block);
        fill(source);
        stream_blocks(target.at(0), source.at(from), blocks, whole_lines);
        stream_fence();
        CHECK(arrived(target, target.at(0), source.at(from), blocks * stream_block));
      }
    }
  }
}
#endif

TEST_CASE("streamed lines: by stores of every width that this processor has") {
  std::vector<line_streamer> all{&stream_lines_by_16};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx")) all.push_back(&stream_lines_by_32);
  if (__builtin_cpu_supports("avx512f")) all.push_back(&stream_lines_by_64);
#endif
  const bool chosen = widest_streamer() == all.back();
  CHECK(chosen);
  for (const line_streamer stream : all) {
    for (const std::size_t lines : {0U, 1U, 2U, 9U}) {
      for (const std::size_t from : {0U, 1U, 16U, 40U}) {
        memory source(lines * stream_line + stream_line);
        memory target(lines * stream_line);
        fill(source);
        stream(target.at(0), source.at(from), lines);
        stream_fence();
        CHECK(arrived(target, target.at(0), source.at(from), lines * stream_line));
      }
    }
  }
}
#endif
