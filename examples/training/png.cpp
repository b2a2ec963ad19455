// SPDX-License-Identifier: BSL-1.0
// PNG (RFC 2083) around zlib (RFC 1950) around deflate (RFC 1951). Of deflate it uses the fixed code and one kind of
// match, "the last pixel again": a chart is mostly runs, and that makes 20 kB of a megabyte.
#include "png.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

namespace training {
namespace {

void append_big_endian(std::string& out, std::uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xff);
}

std::uint32_t crc32(std::string_view data) {
  std::uint32_t crc = 0xffffffffu;
  for (const char c : data) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

std::uint32_t adler32(std::string_view data) {
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  for (const char c : data) {
    a = (a + static_cast<unsigned char>(c)) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

class deflate {
 public:
  explicit deflate(std::string_view data) {
    bits(1, 1);  // the last block
    bits(1, 2);  // with the fixed code
    for (std::size_t i = 0; i < data.size();) {
      std::size_t run = 0;
      while (i >= 3 && i + run < data.size() && run < 258 && data[i + run] == data[i + run - 3]) ++run;
      if (run >= 3) {
        repeat(static_cast<unsigned>(run));
        i += run;
      } else {
        literal(static_cast<unsigned char>(data[i++]));
      }
    }
    symbol(256);
    bits(0, 7);  // fills the last byte
  }
  [[nodiscard]] const std::string& bytes() const noexcept { return out_; }

 private:
  void bits(unsigned value, int count) {  // lowest bit first
    for (int i = 0; i < count; ++i) {
      pending_ |= (value >> i & 1u) << held_;
      if (++held_ == 8) {
        out_ += static_cast<char>(pending_);
        pending_ = 0;
        held_ = 0;
      }
    }
  }
  void code(unsigned value, int count) {  // Huffman codes go highest bit first
    for (int i = count - 1; i >= 0; --i) bits(value >> i & 1u, 1);
  }
  void literal(unsigned value) { value < 144 ? code(0x30 + value, 8) : code(0x190 + value - 144, 9); }
  void symbol(unsigned value) { value < 280 ? code(value - 256, 7) : code(0xc0 + value - 280, 8); }
  // Goes on as three bytes before: the symbol of the largest base that fits, the rest of the length, the distance.
  void repeat(unsigned length) {
    static constexpr unsigned bases[] = {3,  4,  5,  6,  7,  8,  9,  10, 11, 13,  15,  17,  19,  23, 27,
                                         31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    const auto above = std::upper_bound(std::begin(bases), std::end(bases), length);
    const int index = static_cast<int>(above - std::begin(bases)) - 1;
    symbol(257u + static_cast<unsigned>(index));
    bits(length - bases[index], index < 8 || index == 28 ? 0 : index / 4 - 1);
    code(2, 5);
  }

  std::string out_{};
  unsigned pending_ = 0;
  int held_ = 0;
};

void append_chunk(std::string& out, std::string_view type, std::string_view data) {
  append_big_endian(out, static_cast<std::uint32_t>(data.size()));
  std::string body(type);
  body += data;
  out += body;
  append_big_endian(out, crc32(body));
}

}  // namespace

picture::picture(int width, int height, colour background)
    : width_(width),
      height_(height),
      pixels_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), background) {}

void picture::paint(int x, int y, colour c, double coverage) {
  if (x < 0 || y < 0 || x >= width_ || y >= height_) return;
  colour& pixel = pixels_[index(x, y)];
  for (std::size_t i = 0; i < 3; ++i) {
    pixel[i] = static_cast<std::uint8_t>(std::lround(pixel[i] + coverage * (double(c[i]) - double(pixel[i]))));
  }
}

std::string encode_png(const picture& image) {
  std::string header;
  append_big_endian(header, static_cast<std::uint32_t>(image.width()));
  append_big_endian(header, static_cast<std::uint32_t>(image.height()));
  header += std::string_view("\x08\x02\x00\x00\x00", 5);  // 8 bits, red green blue, deflate, filters, no interlace

  std::string rows;
  for (int y = 0; y < image.height(); ++y) {
    rows += '\x02';  // the filter "up": each byte less the one above it
    for (int x = 0; x < image.width(); ++x) {
      const colour above = y == 0 ? colour{} : image.at(x, y - 1);
      for (std::size_t i = 0; i < 3; ++i) rows += static_cast<char>((image.at(x, y)[i] - above[i]) & 0xff);
    }
  }
  std::string data = "\x78\x01";
  data += deflate(rows).bytes();
  append_big_endian(data, adler32(rows));

  std::string out = "\x89PNG\r\n\x1a\n";
  append_chunk(out, "IHDR", header);
  append_chunk(out, "IDAT", data);
  append_chunk(out, "IEND", "");
  return out;
}

}  // namespace training
