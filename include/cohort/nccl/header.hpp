// SPDX-License-Identifier: BSL-1.0
// <nccl.h>, and the version that this library is written for. The one place that includes it.
#pragma once

#include <nccl.h>

#if !defined(NCCL_VERSION_CODE) || NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 0)
#error "cohort's NCCL backend needs NCCL 2.28 or newer: set NCCL_ROOT to the folder that has its include/nccl.h"
#endif
