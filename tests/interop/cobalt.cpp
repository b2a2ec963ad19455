// SPDX-License-Identifier: BSL-1.0
// The same operations inside Boost.Cobalt's tasks, on an io_context.
#include "conversation.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/cobalt/spawn.hpp>
#include <boost/cobalt/task.hpp>

#include <cstdio>
#include <exception>

int main() {
  const interop::two_ranks worlds;
  boost::asio::io_context io;
  int right = 0;
  int ended = 0;
  const auto count = [&](std::exception_ptr failure, int n) {
    right += failure ? 0 : n;
    ++ended;
  };
  boost::cobalt::spawn(io, interop::conversation<boost::cobalt::task<int>>(worlds.first), count);
  boost::cobalt::spawn(io, interop::conversation<boost::cobalt::task<int>>(worlds.second), count);
  worlds.drive_until([&] { return ended == 2; },
                     [&io] {
                       io.restart();
                       io.poll();
                     });
  std::printf("%d of 8 right\n", right);
  return right == 8 ? 0 : 1;
}
