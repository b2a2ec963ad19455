// SPDX-License-Identifier: BSL-1.0
#include <cohort/codec.hpp>
#include <cohort/half.hpp>

#include <any>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

namespace {

using namespace cohort;

struct plain {
  int a;
  std::string b;
};
class closed {
 public:
  closed();

 private:
  int value_;
};
class own {
 public:
  own();
};
enum color { red };
enum class fixed { red };
union either {
  int i;
  float f;
};

}  // namespace

template <>
struct cohort::codec<own> {
  static void encode(writer& to, const own& value);
  static own decode(reader& from);
};

namespace {

static_assert(has_codec<bool> && has_codec<char> && has_codec<int> && has_codec<unsigned long> && has_codec<float>);
static_assert(has_codec<long double> && has_codec<wchar_t> && has_codec<std::byte> && has_codec<half> &&
              has_codec<fixed>);
static_assert(has_codec<std::string> && has_codec<std::vector<bool>> && has_codec<std::optional<int>> &&
              has_codec<std::variant<int>>);
static_assert(has_codec<std::unique_ptr<plain>> && has_codec<std::tuple<>> && has_codec<std::monostate>);
static_assert(has_codec<plain> && has_codec<own> && has_codec<std::vector<own>> && has_codec<std::chrono::seconds>);

static_assert(!has_codec<int*> && !has_codec<const char*> && !has_codec<std::nullptr_t> && !has_codec<int plain::*>);
static_assert(!has_codec<int&> && !has_codec<std::string_view> && !has_codec<std::span<int>> &&
              !has_codec<std::reference_wrapper<int>>);
static_assert(!has_codec<std::shared_ptr<int>> && !has_codec<std::weak_ptr<int>> && !has_codec<std::unique_ptr<int[]>>);
static_assert(!has_codec<std::unique_ptr<int, void (*)(int*)>>);
static_assert(!has_codec<closed> && !has_codec<color> && !has_codec<either> && !has_codec<int[3]> && !has_codec<int()>);
static_assert(!has_codec<std::any> && !has_codec<std::function<void()>> && !has_codec<std::thread>);

// It looks at the type alone: what is in it is refused where it is used.
static_assert(has_codec<std::vector<int*>> && has_codec<std::optional<closed>>);

}  // namespace
