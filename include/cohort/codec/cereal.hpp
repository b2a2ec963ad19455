// SPDX-License-Identifier: BSL-1.0
// Classes that cereal serialises, as objects: an opt-in, one line a class, for programs that have them already.
// Needs cereal (Debian: libcereal-dev), without which the header is empty and COHORT_HAS_CEREAL is 0.
#pragma once

#if __has_include(<cereal/cereal.hpp>)
#define COHORT_HAS_CEREAL 1
#else
#define COHORT_HAS_CEREAL 0
#endif

#if COHORT_HAS_CEREAL

#include <cohort/codec/reader.hpp>
#include <cohort/codec/scalars.hpp>
#include <cohort/codec/writer.hpp>

#include <cereal/cereal.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

namespace cohort {

/// The archive that a class is saved to. As cereal's portable binary one, and with the sizes of this library's codecs.
class cereal_output : public cereal::OutputArchive<cereal_output, cereal::AllowEmptyClassElision> {
 public:
  explicit cereal_output(writer& to) : OutputArchive(this), to_(&to) {}
  [[nodiscard]] writer& to() const noexcept { return *to_; }

  /// The number of elements of a container.
  void count(std::size_t n) {
    to_->count(n);
    believed_from_ = std::max(believed_from_, to_->size() + n);
  }
  /// Throws unless the reader will believe every count: each element must have saved a byte.
  void finish() const {
    if (to_->size() >= believed_from_) return;
    throw error(errc::invalid_argument,
                "cereal saved a container of elements that save no bytes, of which a reader believes no number: "
                "save their number instead, or at least one byte in each");
  }

 private:
  writer* to_;
  std::size_t believed_from_ = 0;  ///< how many bytes have to be saved in all
};

/// The archive that a class is loaded from. Where cereal's own believe every count that they read, this one checks each
/// against the bytes that remain, before the container is resized.
class cereal_input : public cereal::InputArchive<cereal_input, cereal::AllowEmptyClassElision> {
 public:
  explicit cereal_input(reader& from) : InputArchive(this), from_(&from) {}
  [[nodiscard]] reader& from() const noexcept { return *from_; }

 private:
  reader* from_;
};

template <class T>
  requires std::is_arithmetic_v<T>
void CEREAL_SAVE_FUNCTION_NAME(cereal_output& archive, const T& value) { archive.to().write(value); }
template <class T>
  requires std::is_arithmetic_v<T>
void CEREAL_LOAD_FUNCTION_NAME(cereal_input& archive, T& value) { value = archive.from().read<T>(); }

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(cereal_output& archive, const cereal::SizeTag<T>& tag) {
  archive.count(static_cast<std::size_t>(tag.size));
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(cereal_input& archive, cereal::SizeTag<T>& tag) {
  tag.size = archive.from().count(1, 1);
}

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(cereal_output& archive, const cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(cereal_input& archive, cereal::NameValuePair<T>& pair) {
  archive(pair.value);
}

namespace detail {

/// What cereal's binary data is an array of.
template <class Pointer>
using cereal_element =
    std::conditional_t<std::is_void_v<std::remove_pointer_t<std::remove_cvref_t<Pointer>>>, std::byte,
                       std::remove_cv_t<std::remove_pointer_t<std::remove_cvref_t<Pointer>>>>;

}  // namespace detail

template <class T>
void CEREAL_SAVE_FUNCTION_NAME(cereal_output& archive, const cereal::BinaryData<T>& data) {
  using element = detail::cereal_element<T>;
  const auto* const first = static_cast<const element*>(data.data);
  for (std::size_t i = 0; i < data.size / sizeof(element); ++i) archive.to().write(first[i]);
}
template <class T>
void CEREAL_LOAD_FUNCTION_NAME(cereal_input& archive, cereal::BinaryData<T>& data) {
  using element = detail::cereal_element<T>;
  if constexpr (detail::is_bulk<element>()) {
    archive.from().copy_to(data.data, static_cast<std::size_t>(data.size));
  } else {
    auto* const first = static_cast<element*>(data.data);
    for (std::size_t i = 0; i < data.size / sizeof(element); ++i) first[i] = archive.from().template read<element>();
  }
}

/// The codec of a class that cereal serialises: by its member or free functions serialize, save and load.
///
///     template <>
///     struct cohort::codec<app::model> : cohort::cereal_codec<app::model> {
///       static constexpr std::string_view name = "app::model";
///     };
///
/// Result: a length, then what the class saves. The type hash has `name` in it, and nothing of what the class saves
/// Needs:  a default constructor; headers cereal/types/... for the members, as always with cereal
/// Errors: invalid_argument, on saving, for a container of elements that save no bytes; bad_message where the class
///         reads more or less than there is, or throws cereal::Exception
/// Source: for peers that are trusted. Protected is what cereal asks the archive for: no byte is read beyond the
///         object's own, a bool is 0 or 1, and no count exceeds the bytes that remain, so that each resize allocates at
///         most that many elements. Not protected is what happens inside cereal and the class: an element's size counts
///         against codec_limits::memory as one byte, however large it is in memory; depth is not limited, so that a
///         recursive class can exhaust the stack; and load functions may believe other numbers than counts.
template <class T>
struct cereal_codec {
  static void encode(writer& to, const T& value) {
    std::vector<std::byte> saved;
    writer inside(saved, to.limits());
    cereal_output archive(inside);
    archive(value);
    archive.finish();
    to.length(saved.size());
    to.bytes(saved);
  }

  static T decode(reader& from) {
    static_assert(std::is_default_constructible_v<T>,
                  "cohort: cereal loads into an object: give the class a default constructor");
    const std::uint64_t size = from.length();
    if (size > from.remaining()) {
      from.fail("expected " + std::to_string(size) + " bytes that cereal saved, found " +
                std::to_string(from.remaining()));
    }
    codec_limits limits = from.limits();
    limits.memory = from.memory_left();
    reader inside(from.bytes(static_cast<std::size_t>(size)), limits);
    T value{};
    try {
      cereal_input archive(inside);
      archive(value);
    } catch (const cereal::Exception& e) {
      inside.fail(std::string("expected what cereal saved, found something else: ") + e.what());
    }
    inside.finish();
    from.charge(limits.memory - inside.memory_left());
    return value;
  }
};

}  // namespace cohort

CEREAL_REGISTER_ARCHIVE(cohort::cereal_output)
CEREAL_REGISTER_ARCHIVE(cohort::cereal_input)

#endif
