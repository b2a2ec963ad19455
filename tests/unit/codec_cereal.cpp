// SPDX-License-Identifier: BSL-1.0
// Classes that cereal serialises, and that its blind faith in counts ends at this library's archive.
#include <doctest/doctest.h>

#include <cohort/codec/cereal.hpp>

#if COHORT_HAS_CEREAL

#include <cohort/codec.hpp>

#include "support/object_bytes.hpp"
#include "support/tracking_allocator.hpp"

#include <cereal/types/array.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/memory.hpp>
#include <cereal/types/polymorphic.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace {

using harness::error_of;
using harness::hex;
using harness::round_trip;
using harness::tracked_memory;
using harness::unhex;
using harness::value_bytes;
using harness::value_of;

struct layer {
  std::vector<double> weights{};
  std::string name{};
  std::map<int, std::vector<bool>> flags{};
  long count = 0;
  bool frozen = false;

  template <class Archive>
  void serialize(Archive& archive) {
    archive(weights, CEREAL_NVP(name), flags, count, frozen);
  }
  friend bool operator==(const layer&, const layer&) = default;
};

/// Saves and loads through other functions, and is private about them.
class counter {
 public:
  counter() = default;
  explicit counter(int v) : value_(v) {}
  [[nodiscard]] int value() const { return value_; }

 private:
  friend class cereal::access;
  template <class Archive>
  void save(Archive& archive) const {
    archive(value_ + 1);
  }
  template <class Archive>
  void load(Archive& archive) {
    archive(value_);
    --value_;
    if (value_ == 13) throw cereal::Exception("13 is refused");
  }
  int value_ = 0;
};

struct tracked {
  std::vector<std::array<double, 4>, harness::tracking_allocator<std::array<double, 4>>> rows{};
  std::vector<std::uint8_t, harness::tracking_allocator<std::uint8_t>> bytes{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(rows, bytes);
  }
};

struct animal {
  virtual ~animal() = default;
  [[nodiscard]] virtual std::string says() const = 0;
};
struct dog final : animal {
  [[nodiscard]] std::string says() const override { return word; }
  std::string word{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(word);
  }
};
struct farm {
  std::vector<std::shared_ptr<animal>> animals{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(animals);
  }
};

struct saves_nothing {
  template <class Archive>
  void serialize(Archive& /*archive*/) {}
};
struct crowd {
  std::vector<saves_nothing> people{};
  std::string name{};
  template <class Archive>
  void serialize(Archive& archive) {
    archive(people, name);
  }
};

}  // namespace

CEREAL_REGISTER_TYPE(dog)
CEREAL_REGISTER_POLYMORPHIC_RELATION(animal, dog)

template <>
struct cohort::codec<layer> : cohort::cereal_codec<layer> {
  static constexpr std::string_view name = "layer";
};
template <>
struct cohort::codec<counter> : cohort::cereal_codec<counter> {};
template <>
struct cohort::codec<tracked> : cohort::cereal_codec<tracked> {};
template <>
struct cohort::codec<farm> : cohort::cereal_codec<farm> {};
template <>
struct cohort::codec<saves_nothing> : cohort::cereal_codec<saves_nothing> {};
template <>
struct cohort::codec<crowd> : cohort::cereal_codec<crowd> {};

TEST_CASE("codec: cereal's classes arrive, alone and among other objects") {
  const layer sent{{1, 2.5}, "first", {{1, {true, false}}, {2, {}}}, -7, true};
  CHECK(round_trip(sent) == sent);
  CHECK(round_trip(std::map<int, std::vector<layer>>{{1, {sent, {}}}}).at(1).at(0) == sent);
  CHECK(round_trip(counter(5)).value() == 5);
  CHECK(round_trip(std::vector<saves_nothing>(3)).size() == 3);
  CHECK(cohort::object_type_name<std::vector<layer>>() == "vector<codec layer>");
  // length, then what it saves
  CHECK(hex(value_bytes(counter(5))) == "0406000000");
}

TEST_CASE("codec: cereal's polymorphic pointers arrive") {
  farm sent;
  auto rex = std::make_shared<dog>();
  rex->word = "woof";
  sent.animals = {rex, nullptr, rex};
  const farm arrived = round_trip(sent);
  REQUIRE(arrived.animals.size() == 3);
  CHECK(arrived.animals[0]->says() == "woof");
  CHECK(arrived.animals[1] == nullptr);
  CHECK(arrived.animals[2] == arrived.animals[0]);
}

TEST_CASE("codec: what cereal's classes cannot read is an error") {
  CHECK(error_of([] { static_cast<void>(value_of<counter>(unhex("040e000000"))); }) ==
        "malformed object message: expected what cereal saved, found something else: 13 is refused, at byte 4 of 4");
  CHECK(error_of([] {
          static_cast<void>(value_of<counter>(unhex("050600000000")));
        }).starts_with("malformed object message: expected the end"));
  CHECK(error_of([] {
          static_cast<void>(value_of<counter>(unhex("03060000")));
        }).starts_with("malformed object message: expected 4 bytes, found 3"));
  CHECK(error_of([] {
          static_cast<void>(value_of<counter>(unhex("7f06000000")));
        }).starts_with("malformed object message: expected 127 bytes that cereal saved"));
  const auto bytes = value_bytes(layer{{1, 2.5}, "first", {{1, {true, false}}}, -7, true});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    CHECK_FALSE(error_of([&] { static_cast<void>(value_of<layer>(std::span(bytes).first(size))); }).empty());
  }
}

TEST_CASE("codec: what the reader would not believe is refused where it is saved") {
  // The empty name takes a byte, its length.
  CHECK(round_trip(crowd{std::vector<saves_nothing>(1), ""}).people.size() == 1);
  CHECK(round_trip(crowd{{}, "nobody"}).name == "nobody");
  CHECK(error_of([] {
          static_cast<void>(value_bytes(crowd{std::vector<saves_nothing>(2), ""}));
        }).find("cereal saved a container of elements that save no bytes, of which a reader believes no number") !=
        std::string::npos);
}

TEST_CASE("codec: cereal does not allocate for counts that the message cannot hold") {
  // A vector of 2^28 rows in a message of 24 bytes, which cereal's own archive takes 8.6 GB for.
  tracked_memory = {};
  CHECK(error_of([] { static_cast<void>(value_of<tracked>(unhex("17ffffff7f" + std::string(38, '0')))); }) ==
        "malformed object message: expected 268435455 elements of at least 1 bytes, found 19 bytes, at byte 4 of 23");
  CHECK(tracked_memory.peak == 0);
  tracked sample;
  sample.rows.resize(2);
  sample.bytes.resize(5);
  auto bytes = value_bytes(sample);
  for (std::byte& b : bytes) {
    const std::byte original = b;
    for (unsigned other = 0; other < 256; ++other) {
      b = static_cast<std::byte>(other);
      tracked_memory = {};
      static_cast<void>(error_of([&] { static_cast<void>(value_of<tracked>(bytes)); }));
      if (tracked_memory.peak > 2 * sizeof(sample.rows[0]) * bytes.size()) FAIL(tracked_memory.peak);
    }
    b = original;
  }
}

#else

TEST_CASE("codec: cereal") { MESSAGE("SKIPPED: cereal is not installed (Debian: libcereal-dev)"); }

#endif
