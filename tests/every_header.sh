# SPDX-License-Identifier: BSL-1.0
# Sourced: one source file with every header that needs neither MPI nor CUDA nor another library.

# every_header SORT...: prints it, the headers in the order that SORT gives them.
every_header() {
  find include -name '*.hpp' | grep -vE '/(mpi|gpu|nccl)/|/backend/(mpi|nccl)\.hpp|/src\.hpp|/tls_.*openssl\.hpp|/codec/cereal\.hpp' | "$@" |
    sed 's|^include/\(.*\)|#include <\1>|'
}
