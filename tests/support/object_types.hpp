// SPDX-License-Identifier: BSL-1.0
// Classes of every kind that has a codec, for tests of objects.
#pragma once

#include <cohort/codec.hpp>

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace objects {

struct nothing {
  friend bool operator==(const nothing&, const nothing&) = default;
};

struct point {
  float x = 0;
  float y = 0;
  friend bool operator==(const point&, const point&) = default;
};

/// Padded in memory, not in a message.
struct padded {
  std::int8_t small = 0;
  std::int64_t large = 0;
  friend bool operator==(const padded&, const padded&) = default;
};

struct person {
  std::string name{};
  int age = 0;
  std::optional<point> home{};
  std::map<std::string, std::vector<double>> scores{};
  friend bool operator==(const person&, const person&) = default;
};

/// Not default constructible, and its members cannot be assigned.
struct constant {
  const std::int32_t number;
  const std::string text;
  friend bool operator==(const constant&, const constant&) = default;
};

struct without_default {
  explicit without_default(int v) : value(v) {}
  int value;
  friend bool operator==(const without_default&, const without_default&) = default;
};

struct tree {
  int value = 0;
  std::vector<tree> children{};
  friend bool operator==(const tree&, const tree&) = default;
};

/// Two structs that hold each other.
struct file;
struct folder {
  std::string name{};
  std::vector<file> files;  // no initialiser: clang would need all of `file` for it
};
struct file {
  std::string name{};
  std::optional<std::vector<folder>> folders{};
};

struct chain {
  int value = 0;
  std::unique_ptr<chain> next{};
};

struct with_arrays {
  std::int16_t first = 0;
  char name[6] = {};
  double matrix[2][2] = {};
  std::string texts[2];
  std::vector<int> last{};
};
struct only_array {
  std::int32_t values[3] = {};
};

enum class shade : std::uint8_t { light, dark };
enum class truth : bool { no, yes };
enum plain_color { red, green, blue = 7 };
BOOST_DESCRIBE_ENUM(plain_color, red, green, blue)

struct described_base {
  int id = 0;
  friend bool operator==(const described_base&, const described_base&) = default;
};
BOOST_DESCRIBE_STRUCT(described_base, (), (id))

class account : private described_base {
 public:
  account() = default;
  account(int number, std::string owner, double balance) : owner_(std::move(owner)), balance_(balance) { id = number; }
  [[nodiscard]] int number() const { return id; }
  friend bool operator==(const account&, const account&) = default;

 private:
  std::string owner_{};
  double balance_ = 0;
  std::vector<account> linked_{};
  BOOST_DESCRIBE_CLASS(account, (described_base), (), (), (owner_, balance_, linked_))
};

class shape {
 public:
  virtual ~shape() = default;
  [[nodiscard]] virtual double area() const = 0;
  int color = 0;
};
BOOST_DESCRIBE_STRUCT(shape, (), (color))
class square final : public shape {
 public:
  [[nodiscard]] double area() const override { return side * side; }
  double side = 0;
};
BOOST_DESCRIBE_STRUCT(square, (shape), (side))

/// Has a codec of its own, which refuses some values.
class even {
 public:
  explicit even(int v) : value_(v) {}
  [[nodiscard]] int value() const { return value_; }
  friend bool operator==(const even&, const even&) = default;

 private:
  int value_;
};

/// A template with a codec of its own.
template <class T>
struct boxed {
  explicit boxed(T v) : value(std::move(v)) {}
  T value;
  friend bool operator==(const boxed&, const boxed&) = default;
};

}  // namespace objects

template <>
struct cohort::codec<objects::without_default> {
  static constexpr std::string_view name = "without_default";
  static constexpr std::size_t min_size = 4;
  static void encode(writer& to, const objects::without_default& v) { to.write(v.value); }
  static objects::without_default decode(reader& from) { return objects::without_default(from.read<int>()); }
};

template <>
struct cohort::codec<objects::even> {
  static void encode(writer& to, const objects::even& v) { to.write(v.value()); }
  static objects::even decode(reader& from) {
    const int value = from.read<int>();
    if (value % 2 != 0) from.fail("expected an even number, found " + std::to_string(value));
    return objects::even(value);
  }
};

template <class T>
struct cohort::codec<objects::boxed<T>> {
  static constexpr std::string_view name = "boxed";
  using contains = std::tuple<T>;
  static void encode(writer& to, const objects::boxed<T>& v) { to.write(v.value); }
  static objects::boxed<T> decode(reader& from) { return objects::boxed<T>(from.read<T>()); }
};
