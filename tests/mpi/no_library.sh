#!/bin/sh
# SPDX-License-Identifier: BSL-1.0
# Stands for all tests of the MPI backend on a machine without MPI.
echo "SKIPPED: no MPI library here; Debian 12: apt-get install libopenmpi-dev openmpi-bin libmpich-dev mpich"
exit 77
