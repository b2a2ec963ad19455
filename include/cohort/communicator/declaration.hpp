// SPDX-License-Identifier: BSL-1.0
// The name communicator<Backend> alone. Backends that send and receive bytes of the host share the class in
// communicator.hpp; one whose buffers lie elsewhere has a class of its own (backend/nccl.hpp).
#pragma once

namespace cohort {

template <class Backend>
class communicator;

}  // namespace cohort
