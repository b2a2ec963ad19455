// SPDX-License-Identifier: BSL-1.0
// A process that may not read the memory of others, or not write to it, whatever its user. For tests/process.
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <iterator>

namespace harness {

namespace detail {

[[nodiscard]] inline bool forbid(std::uint32_t call) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offsetof(seccomp_data, nr))),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(rules)), rules};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace detail

/// As in a container that does not let processes read each other's memory.
[[nodiscard]] inline bool forbid_reading_of_others() { return detail::forbid(SYS_process_vm_readv); }
[[nodiscard]] inline bool forbid_writing_to_others() { return detail::forbid(SYS_process_vm_writev); }

}  // namespace harness
