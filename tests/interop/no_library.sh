#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# no_library.sh NAME HINT: the test of a library that is not here.
echo "SKIPPED: the headers of $1 are not here: $2"
exit 77
