#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# skip.sh REASON: a test that cannot run here, by name.
echo "SKIPPED: $1"
exit 77
