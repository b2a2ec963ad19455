// SPDX-License-Identifier: BSL-1.0
// When a message is looked for where its receive is called.
#include <cohort/transport/prompt_answers.hpp>

#include <doctest/doctest.h>

using cohort::transport::prompt_answers;

TEST_CASE("prompt answers: one of so many is looked for until one has come at once") {
  prompt_answers a;
  for (unsigned i = 1; i < 3 * prompt_answers::asked_between; ++i) {
    const bool tried = a.expected();
    CHECK(tried == (i % prompt_answers::asked_between == 0));
    if (tried) a.came(false);
  }
}

TEST_CASE("prompt answers: as long as they come they are looked for, and some in vain are forgiven") {
  prompt_answers a;
  a.came(true);
  CHECK(a.expected());
  a.came(false);
  CHECK_FALSE(a.expected());
  for (int i = 0; i < 1000; ++i) a.came(true);
  int in_vain = 0;
  while (a.expected()) {
    a.came(false);
    ++in_vain;
  }
  CHECK(in_vain > 1);
  CHECK(in_vain < 10);
}
