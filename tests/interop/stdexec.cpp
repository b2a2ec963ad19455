// SPDX-License-Identifier: BSL-1.0
// The same operations as senders: stdexec takes whatever a coroutine can await.
#include "conversation.hpp"

#include <exec/async_scope.hpp>
#include <exec/task.hpp>
#include <stdexec/execution.hpp>

#include <cstdio>
#include <utility>

int main() {
  int right = 0;
  {
    const interop::two_ranks worlds;
    exec::async_scope scope;
    int ended = 0;
    const auto count = [&](int n) noexcept {
      right += n;
      ++ended;
    };
    const auto lost = [&](const auto&) noexcept { ++ended; };
    for (const interop::world_type* world : {&worlds.first, &worlds.second}) {
      scope.spawn(interop::conversation<exec::task<int>>(*world) | stdexec::then(count) | stdexec::upon_error(lost));
    }
    worlds.drive_until([&] { return ended == 2; });
    stdexec::sync_wait(scope.on_empty());
  }
  // An operation by itself, in an expression of senders.
  const interop::two_ranks worlds;
  exec::async_scope scope;
  int sum = 0;
  scope.spawn(stdexec::when_all(worlds.first.all_reduce(1, cohort::sum{}), worlds.second.all_reduce(2, cohort::sum{})) |
              stdexec::then([&](int a, int b) noexcept { sum = a + b; }) |
              stdexec::upon_error([&](const auto&) noexcept { sum = -1; }));
  worlds.drive_until([&] { return sum != 0; });
  stdexec::sync_wait(scope.on_empty());
  std::printf("tasks: %d of 8 right; senders: %d, expected 6\n", right, sum);
  return right == 8 && sum == 6 ? 0 : 1;
}
