// SPDX-License-Identifier: BSL-1.0
// The CUDA runtime's functions, for a host compiler as for nvcc. The one place that includes them; nothing of cohort's
// core does.
#pragma once

#include <cuda_runtime_api.h>

#if CUDART_VERSION < 12050
#error "cohort's GPU side needs the CUDA toolkit 12.5 or newer"
#endif

// What a functor needs before its operator() to run on a device too; nothing where no device compiler reads it.
#if defined(__CUDACC__)
#define COHORT_HOST_DEVICE __host__ __device__
#else
#define COHORT_HOST_DEVICE
#endif

// Before a loop of a few steps that a kernel is to have written out, whole or by four steps at a time; a host compiler would
// not know the words.
#if defined(__CUDACC__)
#define COHORT_UNROLL _Pragma("unroll")
#define COHORT_UNROLL_BY_4 _Pragma("unroll 4")
#else
#define COHORT_UNROLL
#define COHORT_UNROLL_BY_4
#endif
