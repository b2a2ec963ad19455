// SPDX-License-Identifier: BSL-1.0
// What `cohort run` prints of its ranks, what it keeps in files, and that no reader or writer can make it stand still.
#include "launcher_support.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>

using namespace launcher_test;

namespace {

std::size_t count_of(const std::string& text, char c) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), c));
}

struct channel {
  int reader = -1;
  int writer = -1;
  explicit channel(bool packets) {
    std::array<int, 2> ends{};
    const int made = packets ? ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data())
                             : ::pipe2(ends.data(), O_CLOEXEC);
    REQUIRE(made == 0);
    reader = ends[0];
    writer = ends[1];
  }
  channel(const channel&) = delete;
  channel& operator=(const channel&) = delete;
  ~channel() {
    close_reader();
    close_writer();
  }
  void close_reader() { close(reader); }
  void close_writer() { close(writer); }
  /// One read; empty at the end.
  std::string read() const {
    std::string text(256 * 1024, '\0');
    const ssize_t got = ::read(reader, text.data(), text.size());
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  static void close(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
};

}  // namespace

TEST_CASE("launcher: each line carries its rank, stdout stays stdout and stderr stays stderr") {
  const outcome result = run_tool(run_words(2, {}, {"out=to the left", "err=to the right"}));
  CHECK(result.code == 0);
  for (const char* rank : {"0", "1"}) {
    CHECK(contains(result.out, "[" + std::string(rank) + "] to the left\n"));
    CHECK(contains(result.err, "[" + std::string(rank) + "] to the right\n"));
  }
  CHECK(lines_of(result.out).size() == 2);
  CHECK(lines_of(result.err).size() == 2);
}

TEST_CASE("launcher: --tag says what stands before a line") {
  std::array<char, 256> host{};
  REQUIRE(::gethostname(host.data(), host.size() - 1) == 0);
  CHECK(run_tool(run_words(1, {"--tag", "rank"}, {"out=x"})).out == "[0] x\n");
  CHECK(run_tool(run_words(1, {"--tag", "host"}, {"out=x"})).out == "[" + std::string(host.data()) + ":0] x\n");
  CHECK(run_tool(run_words(1, {"--tag", "none"}, {"out=x"})).out == "x\n");
}

TEST_CASE("launcher: an empty line and a last line without newline are lines too") {
  const outcome result = run_tool(run_words(1, {}, {"out=", "out=b", "part=c"}));
  CHECK(result.out == "[0] \n[0] b\n[0] c\n");
}

TEST_CASE("launcher: a rank that dies in the middle of a line loses none of it") {
  const outcome result = run_tool(run_words(1, {}, {"part=half a li", "signal=9"}));
  CHECK(result.out == "[0] half a li\n");
}

TEST_CASE("launcher: a line of 64 KiB is whole, a longer one is cut and says so") {
  constexpr std::size_t longest = 64 * 1024;
  const std::string mark = " [cohort run: line longer than 65536 bytes, cut here]";
  const outcome whole = run_tool(run_words(1, {}, {"fill=65536"}));
  CHECK(whole.out == "[0] " + std::string(longest, 'x') + "\n");
  const outcome cut = run_tool(run_words(1, {}, {"fill=65537", "out=next"}));
  CHECK(cut.out == "[0] " + std::string(longest, 'x') + mark + "\n[0] x\n[0] next\n");
  const outcome twice = run_tool(run_words(1, {}, {"fill=131072"}));
  CHECK(twice.out == "[0] " + std::string(longest, 'x') + mark + "\n[0] " + std::string(longest, 'x') + "\n");
}

TEST_CASE("launcher: lines of many ranks are never mixed, lost or reordered within a rank") {
  constexpr int ranks = 4;
  constexpr int count = 5000;
  const outcome result = run_tool(run_words(ranks, {}, {"lines=" + std::to_string(count)}));
  CHECK(result.code == 0);
  std::map<int, int> next;
  for (const std::string& line : lines_of(result.out)) {
    const int rank = number_after(line, "[");
    const std::string expected = "[" + std::to_string(rank) + "] line " + std::to_string(next[rank]) + " of rank " +
                                 std::to_string(rank) + " end";
    REQUIRE(line == expected);
    ++next[rank];
  }
  for (int rank = 0; rank < ranks; ++rank) CHECK(next[rank] == count);
}

TEST_CASE("launcher: each line is written in one piece") {
  channel packets(true);
  setup how;
  how.output = packets.writer;
  running_tool running(run_words(2, {}, {"lines=200"}), how);
  packets.close_writer();
  std::size_t lines = 0;
  for (std::string packet = packets.read(); !packet.empty(); packet = packets.read()) {
    CHECK(packet.back() == '\n');
    CHECK(count_of(packet, '\n') == 1);
    ++lines;
  }
  CHECK(running.finish().code == 0);
  CHECK(lines == 400);
}

TEST_CASE("launcher: --ranks restricts the console, not the log files") {
  const scratch directory;
  const words options{"--ranks", "0,2-3", "--log-dir", directory.path()};
  const outcome result = run_tool(run_words(4, options, {"out=left", "err=right", "env=COHORT_RUN_ID"}));
  CHECK(result.code == 0);
  for (const int rank : {0, 1, 2, 3}) {
    const std::string tag = "[" + std::to_string(rank) + "] ";
    CHECK(contains(result.out, tag + "left\n") == (rank != 1));
    CHECK(contains(result.err, tag + "right\n") == (rank != 1));
  }
  const std::string id = line_with(result.out, "COHORT_RUN_ID=").substr(std::string("[0] COHORT_RUN_ID=").size());
  CHECK(contains(result.err, "cohort run: logs in " + directory.path() + "/" + id + "\n"));
  for (const int rank : {0, 1, 2, 3}) {
    const std::string logs = directory / (id + "/" + std::to_string(rank));
    CHECK(read_file(logs + "/stdout.log") == "left\nCOHORT_RUN_ID=" + id + "\n");
    CHECK(read_file(logs + "/stderr.log") == "right\n");
  }
}

TEST_CASE("launcher: log files hold what was written, byte for byte") {
  const scratch directory;
  const outcome result =
      run_tool(run_words(1, {"--log-dir", directory.path() + "/deep/er"}, {"fill=200000", "part=no newline"}));
  CHECK(result.code == 0);
  const auto runs = std::filesystem::directory_iterator(directory.path() + "/deep/er");
  CHECK(read_file(runs->path() / "0/stdout.log") == std::string(200000, 'x') + "\nno newline");
}

TEST_CASE("launcher: a log directory that cannot be made is an error before anything starts") {
  const scratch directory;
  std::ofstream(directory / "file").put('\n');
  const outcome result =
      run_tool(run_words(2, {"--log-dir", directory / "file"}, {"touch=" + (directory / "started")}));
  CHECK(result.code == 126);
  CHECK(contains(result.err, "cohort run: cannot create " + (directory / "file")));
  CHECK_FALSE(std::filesystem::exists(directory / "started"));
}

TEST_CASE("launcher: when nobody reads the output any more, the ranks are ended") {
  channel pipe(false);
  setup how;
  how.output = pipe.writer;
  running_tool running(run_words(2, {}, {"flood"}), how);
  pipe.close_writer();
  CHECK(contains(pipe.read(), "line 0 of rank"));
  pipe.close_reader();
  CHECK(running.finish().code == 128 + SIGPIPE);
}

TEST_CASE("launcher: a reader that pauses holds the ranks up, and loses nothing") {
  constexpr std::size_t count = 200'000;  // far more than the tool is willing to keep
  channel pipe(false);
  setup how;
  how.output = pipe.writer;
  running_tool running(run_words(1, {}, {"pid_to_stderr", "lines=" + std::to_string(count)}), how);
  pipe.close_writer();
  running.wait_for("pid ");
  const int rank = number_after(running.err(), "pid ");
  // Without anybody reading, the rank comes to rest: it writes no more, and it has not ended.
  std::string written;
  int times_the_same = 0;
  REQUIRE(eventually([&] {
    const std::string now = line_with(read_process_file(rank, "io"), "wchar");
    times_the_same = now == written ? times_the_same + 1 : 0;
    written = now;
    return times_the_same == 20 || is_gone(rank);
  }));
  CHECK_FALSE(is_gone(rank));
  std::size_t lines = 0;
  for (std::string more = pipe.read(); !more.empty(); more = pipe.read()) lines += count_of(more, '\n');
  CHECK(running.finish().code == 0);
  CHECK(lines == count);
}

TEST_CASE("launcher: with a reader that never reads, the tool still obeys") {
  channel pipe(false);
  setup how;
  how.output = pipe.writer;
  running_tool running(run_words(2, {}, {"err=about to flood", "flood"}), how);
  pipe.close_writer();
  running.wait_for("about to flood");
  running.send(SIGTERM);
  CHECK(running.finish().code == 128 + SIGTERM);
}

TEST_CASE("launcher: with a reader that never reads, --timeout still ends the run") {
  channel pipe(false);
  setup how;
  how.output = pipe.writer;
  running_tool running(run_words(2, {"--timeout", "0.5"}, {"flood"}), how);
  pipe.close_writer();
  CHECK(running.finish().code == 124);
}

TEST_CASE("launcher: a rank that is stopped holds nobody else up") {
  running_tool running(run_words(2, {}, {"ids", "0:signal=19", "1:lines=20000", "1:out=rank 1 is done", "1:hang"}));
  running.wait_for("rank 1 is done");
  const int stopped = number_after(line_with(running.out(), "[0] pid"), "pid ");
  CHECK(eventually([&] { return state_of(stopped) == 'T'; }));
  running.send(SIGTERM);
  CHECK(running.finish().code == 128 + SIGTERM);
}

TEST_CASE("launcher: closed standard streams are no obstacle") {
  setup how;
  how.before_start = [] {
    for (const int fd : {0, 1, 2}) ::close(fd);
  };
  CHECK(run_tool(run_words(2, {}, {"out=x", "err=y", "descriptors", "1:exit=5"}), how).code == 5);
}
