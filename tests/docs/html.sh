#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# html.sh BUILD FOLDER: the documentation builds, and every link in it leads somewhere.
set -eu
command -v doxygen >/dev/null || { echo "SKIPPED: no doxygen here (Debian 12: apt-get install doxygen)"; exit 77; }
"$1" "$2"
