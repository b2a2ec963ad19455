// SPDX-License-Identifier: BSL-1.0
#include "plot.hpp"

#include "font.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <vector>

namespace training {
namespace {

constexpr int dot_size = 2;  // pixels to a dot of the font
constexpr int character_width = 6 * dot_size;
constexpr int line_height = 7 * dot_size;

constexpr colour paper{255, 255, 255};
constexpr colour ink{50, 54, 62};
constexpr colour grid{228, 230, 234};
constexpr colour curve{31, 119, 180};

int text_width(const std::string& text) { return static_cast<int>(text.size()) * character_width - dot_size; }

// (x, y) is the upper left corner.
void draw_text(picture& on, int x, int y, const std::string& text) {
  for (const char c : text) {
    const auto is_c = [c](const glyph& candidate) { return candidate.character == c; };
    const auto* found = std::find_if(std::begin(font), std::end(font), is_c);
    const glyph& g = found != std::end(font) ? *found : unknown_glyph;
    for (int dot = 0; dot < 35; ++dot) {
      if ((g.rows[static_cast<std::size_t>(dot / 5)] >> (4 - dot % 5) & 1) == 0) continue;
      for (int pixel = 0; pixel < dot_size * dot_size; ++pixel) {
        const int down = dot / 5 + (g.descends ? 2 : 0);
        on.paint(x + dot % 5 * dot_size + pixel % dot_size, y + down * dot_size + pixel / dot_size, ink);
      }
    }
    x += character_width;
  }
}

// A tick every 1, 2 or 5 times a power of ten, `most` at most.
std::vector<double> linear_ticks(double low, double high, int most, double smallest_step) {
  double step = std::pow(10, std::floor(std::log10(std::max((high - low) / most, smallest_step))));
  for (const double factor : {2.0, 2.5, 2.0, 2.0}) {
    if ((high - low) / step <= most && step >= smallest_step) break;
    step *= factor;
  }
  std::vector<double> ticks;
  // + 0: never "-0"
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) ticks.push_back(i * step + 0.0);
  return ticks;
}

// The powers of ten, with 2 and 5 times them where there are few, or every other (third, ...) where there are many.
std::vector<double> logarithmic_ticks(double low, double high) {
  std::vector<double> ticks;
  const double decades = std::log10(high / low);
  const int stride = 1 + static_cast<int>(decades) / 10;
  for (int decade = static_cast<int>(std::floor(std::log10(low))); std::pow(10, decade) <= high; ++decade) {
    for (const double digit : {1.0, 2.0, 5.0}) {
      const double tick = digit * std::pow(10, decade);
      const bool wanted = digit == 1.0 ? decade % stride == 0 : decades < 2.5;
      if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9) && wanted) ticks.push_back(tick);
    }
  }
  return ticks;
}

struct axis {
  double low = 0;
  double high = 1;
  bool logarithmic = false;
  double from_pixel = 0;
  double to_pixel = 1;
  [[nodiscard]] double pixel(double value) const {
    const double part = logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from_pixel + part * (to_pixel - from_pixel);
  }
};

// The vertical axis: what is finite in `loss` and some air around it.
axis loss_axis(std::span<const double> loss) {
  std::vector<double> finite;
  std::copy_if(loss.begin(), loss.end(), std::back_inserter(finite), [](double v) { return std::isfinite(v); });
  axis y;
  if (finite.empty()) return y;
  const auto [low, high] = std::minmax_element(finite.begin(), finite.end());
  y.logarithmic = *low > 0 && *high > 10 * *low;
  y.low = y.logarithmic ? *low / 1.15 : 0;
  y.high = y.logarithmic ? *high * 1.15 : (*high > 0 ? 1.08 * *high : 1);
  return y;
}

struct point {
  double x;
  double y;
};

// The polyline and its points as one mask, so that a pixel that two segments share is not painted twice.
class stroke {
 public:
  explicit stroke(const picture& on)
      : width_(on.width()), mask_(static_cast<std::size_t>(on.width()) * static_cast<std::size_t>(on.height())) {}

  void segment(point a, point b, double thickness) {
    const double reach = thickness / 2 + 1;
    const int height = static_cast<int>(mask_.size()) / width_;
    const int left = std::max(0, static_cast<int>(std::min(a.x, b.x) - reach));
    const int right = std::min(width_ - 1, static_cast<int>(std::max(a.x, b.x) + reach));
    const int top = std::max(0, static_cast<int>(std::min(a.y, b.y) - reach));
    const int bottom = std::min(height - 1, static_cast<int>(std::max(a.y, b.y) + reach));
    const double dx = b.x - a.x;
    const double dy = b.y - a.y;
    const double squared = std::max(dx * dx + dy * dy, 1e-12);
    for (int y = top; y <= bottom; ++y) {
      for (int x = left; x <= right; ++x) {
        const double along = std::clamp(((x - a.x) * dx + (y - a.y) * dy) / squared, 0.0, 1.0);
        const double distance = std::hypot(x - a.x - along * dx, y - a.y - along * dy);
        double& covered = mask_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + std::size_t(x)];
        covered = std::max(covered, std::clamp(thickness / 2 + 0.5 - distance, 0.0, 1.0));
      }
    }
  }

  void paint(picture& on, colour c) const {
    for (std::size_t i = 0; i < mask_.size(); ++i) {
      if (mask_[i] > 0) on.paint(static_cast<int>(i) % width_, static_cast<int>(i) / width_, c, mask_[i]);
    }
  }

 private:
  int width_;
  std::vector<double> mask_;
};

std::string label_of(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%g", value);
  return text.data();
}

}  // namespace

picture plot_loss(std::span<const double> loss, const std::string& title) {
  picture image(800, 480, paper);
  const int left = 92;
  const int right = image.width() - 28;
  const int top = 78;
  const int bottom = image.height() - 68;

  const double epochs = static_cast<double>(std::max<std::size_t>(loss.size(), 2));
  const axis x{1, epochs, false, left + 12.0, right - 12.0};
  axis y = loss_axis(loss);
  y.from_pixel = bottom;
  y.to_pixel = top;

  for (const double tick : linear_ticks(x.low, x.high, 10, 1)) {
    const int at = static_cast<int>(std::lround(x.pixel(tick)));
    for (int row = top; row < bottom + 6; ++row) image.paint(at, row, row < bottom ? grid : ink);
    const std::string label = label_of(tick);
    draw_text(image, at - text_width(label) / 2, bottom + 13, label);
  }
  for (const double tick : y.logarithmic ? logarithmic_ticks(y.low, y.high) : linear_ticks(y.low, y.high, 8, 1e-300)) {
    const int at = static_cast<int>(std::lround(y.pixel(tick)));
    for (int column = left - 5; column < right; ++column) image.paint(column, at, column < left ? ink : grid);
    const std::string label = label_of(tick);
    draw_text(image, left - 12 - text_width(label), at - line_height / 2, label);
  }
  for (int column = left; column <= right; ++column) image.paint(column, bottom, ink);
  for (int row = top; row <= bottom; ++row) image.paint(left, row, ink);

  draw_text(image, left, 18, title);
  draw_text(image, left, 50, y.logarithmic ? "training loss (logarithmic)" : "training loss");
  draw_text(image, (left + right - text_width("epoch")) / 2, bottom + 40, "epoch");

  stroke line(image);
  const auto place = [&](std::size_t i) { return point{x.pixel(static_cast<double>(i + 1)), y.pixel(loss[i])}; };
  const bool dots = loss.size() <= 60;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    if (!std::isfinite(loss[i])) continue;
    if (dots) line.segment(place(i), place(i), 6.5);
    if (i > 0 && std::isfinite(loss[i - 1])) line.segment(place(i - 1), place(i), 2.4);
  }
  line.paint(image, curve);
  return image;
}

}  // namespace training
