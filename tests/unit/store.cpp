// SPDX-License-Identifier: BSL-1.0
// The stores without a network: in memory, in a file, under a prefix, type-erased; and the table and the book of
// waits that all servers share.
#include <doctest/doctest.h>

#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/store/prefix_store.hpp>
#include <cohort/store/wait_book.hpp>
#include <cohort/store/wire.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "../support/child_process.hpp"
#include "store_contract.hpp"

namespace {

using namespace std::chrono_literals;
using cohort::errc;
using store_test::failure;
using store_test::failure_of;
using store_test::in;
using store_test::soon;

/// A directory that goes with the test.
class scratch {
 public:
  scratch() {
    path_ = std::filesystem::temp_directory_path().string() + "/cohort-store-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("scratch: mkdtemp failed");
  }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;
  ~scratch() {
    for (int i = 0; i < count_; ++i) ::unlink((path_ + "/" + std::to_string(i)).c_str());
    ::rmdir(path_.c_str());
  }
  [[nodiscard]] std::string file() { return path_ + "/" + std::to_string(count_++); }

 private:
  std::string path_;
  int count_ = 0;
};

std::string contents(const std::string& path) {
  std::ifstream in_file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in_file), {}};
}
void overwrite(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace

TEST_CASE("store: memory_store keeps the contract") {
  store_test::check_store([] { return [s = cohort::memory_store()] { return s; }; });
}

TEST_CASE("store: any_store and prefix_store keep the contract") {
  store_test::check_store([] {
    cohort::memory_store shared;
    shared.set("p/not-mine", "", soon());
    shared.set("q", "", soon());
    return [shared] { return cohort::prefix_store("p/x/", cohort::any_store(shared)); };
  });
}

TEST_CASE("store: prefix_store refers to an lvalue and keeps keys apart") {
  cohort::any_store shared{cohort::memory_store()};
  cohort::prefix_store one("one/", shared);
  cohort::prefix_store two("two/", shared);
  one.set("k", "1", soon());
  two.set("k", "2", soon());
  CHECK(one.get("k", soon()) == "1");
  CHECK(shared.get("two/k", soon()) == "2");
  CHECK(one.num_keys("", soon()) == 1);
  CHECK(shared.num_keys("", soon()) == 2);
  CHECK(one.wait_until(std::vector<std::string>{"k", "z"}, in(0s)) == std::vector<std::string>{"z"});
  CHECK(failure_of([&] { one.wait(std::vector<std::string>{"z"}, in(0s)); }).says("\"one/z\" (1 of 1)"));
}

TEST_CASE("store: a table refuses what would exceed its limits and stays as it was") {
  cohort::store_limits small;
  small.keys = 3;
  small.bytes = 100;
  cohort::detail::store_table table(small);
  table.set("a", "1");
  table.set("b", "2");
  table.set("c", "3");
  const failure full = failure_of([&] { table.set("d", "4"); });
  CHECK(full.code == errc::store_failed);
  CHECK(full.text == "set: the store holds 3 keys, which is its limit; \"d\" is one too many");
  CHECK(failure_of([&] { table.add("d", 1); }).says("one too many"));
  CHECK(failure_of([&] { (void)table.compare_set("d", "", "1"); }).says("one too many"));
  table.set("a", "other");  // a key that it holds is not one more
  CHECK(table.bytes() == 3 + 5 + 1 + 1);
  CHECK(failure_of([&] { table.set("a", std::string(100, 'x')); }).text ==
        "set: \"a\" would fill the store to 105 bytes, the limit is 100");
  CHECK(*table.find("a") == "other");
  table.set("a", std::string(95, 'x'));
  CHECK(table.bytes() == 100);
  CHECK(table.erase("a"));
  CHECK(table.bytes() == 4);
}

TEST_CASE("store: the default number of keys") {
  cohort::memory_store s;
  for (std::size_t i = 0; i < cohort::store_limits{}.keys; ++i) s.set(std::to_string(i), "", soon());
  CHECK(failure_of([&] { s.set("x", "", soon()); }).says("holds 131072 keys, which is its limit"));
}

TEST_CASE("store: the book of waits wakes whom a key completes, once") {
  cohort::detail::store_table table;
  cohort::detail::wait_book book;
  const auto put = [&](const char* key) {
    table.set(key, "");
    return book.arrived(key, table);
  };
  using tickets = std::vector<std::uint64_t>;
  table.set("there", "");
  CHECK_FALSE(book.enter(1, {"there", "there"}, table));
  CHECK_FALSE(book.enter(2, {}, table));
  CHECK(book.size() == 0);
  CHECK(book.enter(3, {"a", "there", "b", "a"}, table));
  CHECK(book.enter(4, {"a"}, table));
  CHECK(book.missing(3, table) == std::vector<std::uint32_t>{0, 2, 3});
  CHECK(put("a") == tickets{4});
  CHECK(put("a").empty());
  CHECK(book.missing(3, table) == std::vector<std::uint32_t>{2});
  table.erase("a");
  CHECK(put("b").empty());  // a has gone again
  CHECK(book.missing(3, table) == std::vector<std::uint32_t>{0, 3});
  CHECK(put("a") == tickets{3});
  CHECK(book.size() == 0);
  CHECK(book.watched_keys() == 0);
  CHECK(book.enter(5, {"x", "y"}, table));
  CHECK(book.enter(6, {"y"}, table));
  book.leave(5);
  CHECK(book.watched_keys() == 1);
  book.leave(5);
  CHECK(put("x").empty());
  CHECK(put("y") == tickets{6});
  CHECK(book.watched_keys() == 0);
}

TEST_CASE("store: requests decode to what was encoded, and no other bytes do") {
  using cohort::detail::request_body;
  using cohort::detail::store_call;
  const cohort::store_limits limits;
  request_body body;
  body.key = "key";
  body.value = "value";
  body.expected = "expected";
  body.amount = -3;
  body.earlier = 77;
  const std::vector<std::string> keys{"a", "bc"};
  const std::vector<cohort::key_value> pairs{{"a", "1"}, {"bc", ""}};
  for (std::uint32_t number = 1; number <= cohort::detail::store_calls; ++number) {
    const auto call = static_cast<store_call>(number);
    CAPTURE(name_of(call));
    std::string bytes;
    encode(call, body, {keys, pairs}, bytes);
    const auto back = decode_request_body(call, bytes, limits);
    REQUIRE(back.has_value());
    const bool list = call == store_call::wait || call == store_call::multi_get;
    CHECK(back->keys == (list ? keys : std::vector<std::string>{}));
    CHECK(back->pairs == (call == store_call::multi_set ? pairs : std::vector<cohort::key_value>{}));
    const bool refers = call == store_call::queue_taken || call == store_call::forget;
    if (refers) {
      CHECK(back->earlier == 77);
    } else if (!list && call != store_call::multi_set) {
      CHECK(back->key == "key");
    }
    if (call == store_call::add) CHECK(back->amount == -3);
    const bool carries = call == store_call::set || call == store_call::append || call == store_call::queue_push;
    if (carries || call == store_call::compare_set) CHECK(back->value == "value");
    if (call == store_call::compare_set) CHECK(back->expected == "expected");
    for (std::size_t n = 0; n < bytes.size(); ++n) {
      CHECK_FALSE(decode_request_body(call, std::string_view(bytes).substr(0, n), limits).has_value());
    }
    CHECK_FALSE(decode_request_body(call, bytes + "x", limits).has_value());
    // A length that promises 4 GiB is judged by the bytes that are there.
    if (refers) continue;  // has none
    std::string liar = bytes;
    liar.replace(0, 4, "\xff\xff\xff\xff");
    CHECK_FALSE(decode_request_body(call, liar, limits).has_value());
  }
}

TEST_CASE("store: arbitrary bytes never decode out of bounds") {
  std::mt19937 random(7);
  const cohort::store_limits limits;
  int decoded = 0;
  for (int i = 0; i < 20000; ++i) {
    // A heap block of exactly this size lets AddressSanitizer see one byte too far.
    const std::vector<char> bytes = [&] {
      std::vector<char> b(random() % 40);
      for (char& c : b) c = static_cast<char>(random() % 4 == 0 ? random() : random() % 3);
      return b;
    }();
    const auto call = static_cast<cohort::detail::store_call>(1 + random() % cohort::detail::store_calls);
    const std::string_view view(bytes.data(), bytes.size());
    if (cohort::detail::decode_request_body(call, view, limits)) ++decoded;
  }
  CHECK(decoded > 0);
  CHECK(decoded < 20000);
}

TEST_CASE("store: file_store keeps the contract") {
  scratch dir;
  store_test::check_store([&] { return [path = dir.file()] { return cohort::file_store(path); }; });
}

TEST_CASE("store: a file is read back, and its permissions are the owner's") {
  scratch dir;
  const std::string path = dir.file();
  {
    cohort::file_store s(path, 7);
    s.set("a", "1", soon());
    s.set("b", "2", soon());
    s.delete_key("a", soon());
    s.add("n", 3, soon());
  }
  cohort::file_store again(path, 7);
  CHECK(again.num_keys("", soon()) == 2);
  CHECK(again.get("b", soon()) == "2");
  CHECK(again.add("n", 1, soon()) == 4);
  struct stat about {};
  REQUIRE(::stat(path.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
}

TEST_CASE("store: a file that is full is read by others as it was written") {
  scratch dir;
  const std::string path = dir.file();
  cohort::store_limits limits;
  limits.bytes = 100;
  cohort::file_store s(path, 0, soon(), limits);
  cohort::file_store other(path, 0, soon(), limits);
  s.set("a", "1", soon());
  s.set("b", std::string(60, 'b'), soon());
  // Between the two it would hold 122 bytes.
  s.multi_set(std::vector<cohort::key_value>{{"a", std::string(60, 'a')}, {"b", "1"}}, soon());
  CHECK(other.get("a", soon()) == std::string(60, 'a'));
  CHECK(cohort::file_store(path, 0, soon(), limits).get("b", soon()) == "1");
  CHECK(failure_of([&] {
          other.set("b", std::string(60, 'b'), soon());
        }).says("\"b\" would fill the store to 122 bytes, the limit is 100"));
}

TEST_CASE("store: a file keeps queues and what was appended, and forgets what a kill left half written") {
  scratch dir;
  const std::string path = dir.file();
  {
    cohort::file_store s(path);
    for (const char* item : {"a", "b", "c"}) s.queue_push("q", item, soon());
    CHECK(s.queue_pop("q", soon()) == "a");
    s.append("log", "one", soon());
    s.append("log", ",two", soon());
  }
  const std::string good = contents(path);
  cohort::file_store reader(path);
  CHECK(reader.queue_len("q", soon()) == 2);
  CHECK(reader.get("log", soon()) == "one,two");
  {
    cohort::file_store s(path);
    CHECK(s.queue_pop("q", soon()) == "b");
    s.multi_set(std::vector<cohort::key_value>{{"x", "1"}, {"y", "2"}}, soon());
  }
  // Killed before the end of the last whole record was moved: none of it has happened.
  std::string torn = contents(path);
  torn.replace(32, 8, good, 32, 8);
  for (std::size_t cut = good.size(); cut <= torn.size(); ++cut) {
    overwrite(path, torn.substr(0, cut));
    cohort::file_store s(path);
    CHECK(s.queue_len("q", soon()) == 2);
    CHECK_FALSE(s.check(std::vector<std::string>{"x"}, soon()));
    CHECK_FALSE(s.check(std::vector<std::string>{"y"}, soon()));
    CHECK(s.queue_pop("q", soon()) == "b");
    s.queue_push("q", "d", soon());
    CHECK(cohort::file_store(path).queue_len("q", soon()) == 2);
  }
}

TEST_CASE("store: a file of another job is refused") {
  scratch dir;
  const std::string path = dir.file();
  { cohort::file_store first(path, 7); }
  const failure other = failure_of([&] { cohort::file_store second(path, 8); });
  CHECK(other.code == errc::wrong_job);
  CHECK(other.text ==
        "the store in file " + path +
            " belongs to another job: it holds job id 7, this one is 8; remove it or choose another path");
}

TEST_CASE("store: a malformed file is refused, with the offset") {
  scratch dir;
  const auto opened = [](const std::string& path) {
    return failure_of([&] { (void)cohort::file_store(path).num_keys("", soon()); });
  };
  const std::string alien = dir.file();
  overwrite(alien, std::string(200, 'x'));
  CHECK(opened(alien).code == errc::store_failed);
  CHECK(opened(alien).says("is malformed at offset 0: not a file of this library"));
  overwrite(alien, "short");
  CHECK(opened(alien).says("is malformed at offset 0: too short"));

  const std::string path = dir.file();
  {
    cohort::file_store s(path);
    s.set("a", "1", soon());
    s.set("bb", "22", soon());
  }
  const std::string good = contents(path);
  REQUIRE(good.size() == 64 + 18 + 20);
  const auto changed = [&](std::size_t at, char to) {
    std::string bad = good;
    bad[at] = to;
    overwrite(path, bad);
    return opened(path);
  };
  CHECK(changed(64 + 18 + 16, 'x').says("is malformed at offset 82: a wrong check sum"));
  CHECK(changed(64, 9).says("is malformed at offset 64: a record of an unknown kind"));
  CHECK(changed(64 + 4, 0).says("is malformed at offset 64: a length out of bounds"));
  CHECK(changed(64 + 8 + 3, 1).says("is malformed at offset 64: a length out of bounds"));
  CHECK(changed(64 + 8 + 1, 1).says("is malformed at offset 64: a record that reaches past the end"));
  CHECK(changed(32, static_cast<char>(good.size() - 10)).says("is malformed at offset 82: half a record"));
  CHECK(changed(34, 1).says("is malformed at offset 32: an end at"));
  overwrite(path, good.substr(0, good.size() - 1));
  CHECK(opened(path).says("is malformed at offset 32: an end at 102 in a file of 101 bytes"));
  // Every single changed byte of the records is noticed.
  for (std::size_t at = 64; at < good.size(); ++at)
    CHECK(changed(at, static_cast<char>(good[at] ^ 0x40)).says("malformed at offset"));
  overwrite(path, good);
  CHECK(cohort::file_store(path).get("bb", soon()) == "22");
}

TEST_CASE("store: what a killed process left half written is ignored and overwritten") {
  scratch dir;
  const std::string path = dir.file();
  { cohort::file_store(path).set("a", "1", soon()); }
  overwrite(path, contents(path) + std::string(1000, '\x01'));
  cohort::file_store s(path);
  CHECK(s.num_keys("", soon()) == 1);
  s.set("b", "2", soon());
  cohort::file_store other(path);
  CHECK(other.get("b", soon()) == "2");
  CHECK(other.num_keys("", soon()) == 2);
}

TEST_CASE("store: a file that cannot be used is refused in the system's words") {
  CHECK(failure_of([] { cohort::file_store s("/nonexistent/dir/file"); }).says("No such file or directory"));
  CHECK(failure_of([] { cohort::file_store s(std::filesystem::temp_directory_path().string()); }).code ==
        errc::store_failed);
  CHECK(failure_of([] { cohort::file_store s("/dev/null"); }).says("is not a plain file"));
  scratch dir;
  const std::string path = dir.file();
  cohort::file_store s(path);
  s.set("a", "1", soon());
  s.remove();
  CHECK(failure_of([&] { (void)s.get("a", soon()); }).says("was deleted while it was in use"));
}

TEST_CASE("store: a lock that its owner never gives back ends in an error") {
  scratch dir;
  const std::string path = dir.file();
  cohort::file_store s(path);
  const int other = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  REQUIRE(other >= 0);
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_len = 1;
  REQUIRE(::fcntl(other, F_OFD_SETLK, &range) == 0);
  const failure late = failure_of([&] { s.set("a", "1", in(10ms)); });
  CHECK(late.code == errc::timed_out);
  CHECK(late.says("another process holds its lock since"));
  ::close(other);
  s.set("a", "1", soon());
}

TEST_CASE("store: processes share a file while others are killed at random moments") {
  scratch dir;
  const std::string path = dir.file();
  constexpr int survivors = 3;
  constexpr int rounds = 150;
  constexpr int victims = 12;
  std::vector<harness::child_process> working;
  for (int r = 0; r < survivors; ++r) {
    working.emplace_back([&path, r] {
      cohort::file_store s(path);
      for (int i = 1; i <= rounds; ++i) {
        s.add("total", 1, soon());
        if (s.add("own/" + std::to_string(r), 1, soon()) != i) return 1;
      }
      s.set("done/" + std::to_string(r), "", soon());
      s.wait(std::vector<std::string>{"done/0", "done/1", "done/2"}, soon());
      return 0;
    });
  }
  std::mt19937 random(11);
  for (int v = 0; v < victims; ++v) {
    harness::child_process victim([&path] {
      cohort::file_store s(path);
      const std::string large(300000, 'v');
      for (;;) {
        s.add("total", 1, soon());
        s.add("victims", 1, soon());
        s.set("large", large, soon());  // long enough to be killed in the middle of a write
      }
      return 0;
    });
    const timespec nap{0, static_cast<long>(random() % 20000000)};  // the random moment of the kill
    ::nanosleep(&nap, nullptr);
    victim.send_signal(SIGKILL);
    CHECK(victim.wait() == 128 + SIGKILL);
  }
  for (harness::child_process& p : working) CHECK(p.wait() == 0);
  cohort::file_store s(path);
  const std::int64_t by_victims = s.add("victims", 0, soon());
  const std::int64_t total = s.add("total", 0, soon());
  CHECK(total >= survivors * rounds + by_victims);
  CHECK(total <= survivors * rounds + by_victims + victims);  // each was killed between its two adds at most once
}
