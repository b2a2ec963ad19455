// SPDX-License-Identifier: BSL-1.0
// A picture in memory and its PNG file, without a library; what plot.hpp draws on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace training {

using colour = std::array<std::uint8_t, 3>;

class picture {
 public:
  picture(int width, int height, colour background);

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }
  [[nodiscard]] const colour& at(int x, int y) const { return pixels_[index(x, y)]; }

  /// Lays `c` over a pixel, `coverage` from 0 (nothing) to 1 (all of it); outside the picture it does nothing.
  void paint(int x, int y, colour c, double coverage = 1.0);

 private:
  [[nodiscard]] std::size_t index(int x, int y) const noexcept {
    return static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x);
  }
  int width_;
  int height_;
  std::vector<colour> pixels_;
};

/// The bytes of a PNG file: 8 bits per channel, lossless.
[[nodiscard]] std::string encode_png(const picture& image);

}  // namespace training
