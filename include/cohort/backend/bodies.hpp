// SPDX-License-Identifier: BSL-1.0
// The bodies of the function templates that depend on a transport alone. Only a backend that src.hpp does not compile needs
// to include them: the headers that declare them bring them along unless COHORT_SEPARATE_COMPILATION is defined.
#pragma once

#include <cohort/collective/bodies/all_gather.hpp>
#include <cohort/collective/bodies/all_reduce.hpp>
#include <cohort/collective/bodies/all_to_all.hpp>
#include <cohort/collective/bodies/barrier.hpp>
#include <cohort/collective/bodies/broadcast.hpp>
#include <cohort/collective/bodies/form_group.hpp>
#include <cohort/collective/bodies/gather.hpp>
#include <cohort/collective/bodies/reduce.hpp>
#include <cohort/collective/bodies/reduce_scatter.hpp>
#include <cohort/collective/bodies/scan.hpp>
#include <cohort/collective/bodies/scatter.hpp>
#include <cohort/messages/bodies/transfer.hpp>
