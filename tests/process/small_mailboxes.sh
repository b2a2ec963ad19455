#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# small_mailboxes.sh COMMAND...: in a network of its own, where a Unix socket has room for one letter and a second, instead of ten:
# ranks find each other's mailboxes full all the time. 77 where this user or machine cannot make such a network.
set -euo pipefail
in_small_network() {
  unshare --net sh -c 'ip link set lo up && echo 1 >/proc/sys/net/unix/max_dgram_qlen && exec "$@"' sh "$@"
}
if ! why=$(in_small_network true 2>&1); then
  echo "SKIPPED: there is no network of its own, with a max_dgram_qlen of its own: $why"
  exit 77
fi
in_small_network "$@"
