// SPDX-License-Identifier: BSL-1.0
// store: a table of bytes by name. Everything that the library ships as one is one.
#include <cohort/store.hpp>
#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/store/prefix_store.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace {

using names = std::span<const std::string>;

struct minimal {
  void set(std::string_view key, std::string_view value, cohort::deadline until);
  std::string get(std::string_view key, cohort::deadline until);
  std::optional<std::string> try_get(std::string_view key, cohort::deadline until);
  std::int64_t add(std::string_view key, std::int64_t amount, cohort::deadline until);
  std::string compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                          cohort::deadline until);
  std::size_t append(std::string_view key, std::string_view value, cohort::deadline until);
  std::vector<std::string> multi_get(names keys, cohort::deadline until);
  void multi_set(std::span<const cohort::key_value> pairs, cohort::deadline until);
  std::vector<std::string> wait_until(names keys, cohort::deadline until);
  void wait(names keys, cohort::deadline until);
  bool check(names keys, cohort::deadline until);
  bool delete_key(std::string_view key, cohort::deadline until);
  std::size_t num_keys(std::string_view prefix, cohort::deadline until);
  void queue_push(std::string_view key, std::string_view item, cohort::deadline until);
  std::string queue_pop(std::string_view key, cohort::deadline until);
  std::optional<std::string> try_queue_pop(std::string_view key, cohort::deadline until);
  std::size_t queue_len(std::string_view key, cohort::deadline until);
  std::string describe();
};

struct without_deadlines : minimal {
  std::string get(std::string_view key);
};
struct without_compare_set : minimal {
  void compare_set() = delete;
};
struct loses_absence : minimal {
  std::string try_get(std::string_view key, cohort::deadline until);
};

struct without_queues : minimal {
  void queue_pop() = delete;
};
struct pops_nothing : minimal {
  std::string try_queue_pop(std::string_view key, cohort::deadline until);
};

static_assert(cohort::store<minimal>);
static_assert(cohort::store<cohort::memory_store>);
static_assert(cohort::store<cohort::file_store>);
static_assert(cohort::store<cohort::prefix_store<minimal>>);
static_assert(!cohort::store<int>);
static_assert(!cohort::store<without_deadlines>);
static_assert(!cohort::store<without_compare_set>);
static_assert(!cohort::store<loses_absence>);
static_assert(!cohort::store<without_queues>);
static_assert(!cohort::store<pops_nothing>);

}  // namespace
