// SPDX-License-Identifier: BSL-1.0
// The calls of the other backends that NCCL cannot carry out, each as a compile error that says what to call instead. A base
// of communicator<nccl>. What is missing of a call that it has is refused beside that call.
#pragma once

#include <cohort/element.hpp>
#include <cohort/gpu/stream_ordered.hpp>
#include <cohort/memory.hpp>
#include <cohort/types.hpp>

#include <cstddef>
#include <memory>

namespace cohort::detail {

template <class Communicator>
class nccl_refused_calls {
 public:
  template <class... Arguments>
  stream_ordered probe(Arguments&&...) const {
    return unknown_message<Arguments...>();
  }
  template <class... Arguments>
  stream_ordered try_probe(Arguments&&...) const {
    return unknown_message<Arguments...>();
  }

  template <class... Arguments>
  stream_ordered send_object(Arguments&&...) const {
    return object<Arguments...>();
  }
  template <class... Arguments>
  stream_ordered send_objects(Arguments&&...) const {
    return object<Arguments...>();
  }
  template <class T, class... Arguments>
  stream_ordered recv_object(Arguments&&...) const {
    return object<T>();
  }
  template <class T, class... Others, class... Arguments>
  stream_ordered recv_objects(Arguments&&...) const {
    return object<T>();
  }
  template <class... Arguments>
  stream_ordered broadcast_object(Arguments&&...) const {
    return object<Arguments...>();
  }
  template <class... Arguments>
  stream_ordered gather_object(Arguments&&...) const {
    return object<Arguments...>();
  }
  template <class... Arguments>
  stream_ordered all_gather_object(Arguments&&...) const {
    return object<Arguments...>();
  }
  template <class... Arguments>
  stream_ordered scatter_object(Arguments&&...) const {
    return object<Arguments...>();
  }

  template <class... Options>
  stream_ordered monitored_barrier(Options&&...) const {
    static_assert(always_false<Options...>,
                  "cohort: NCCL cannot say which rank has not come: call monitored_barrier on the communicator of the "
                  "host that this one was made of; barrier() here is one of the streams");
    return refused_operation();
  }

  template <class... Arguments>
  stream_ordered register_memory(Arguments&&...) const {
    return registered<Arguments...>();
  }
  template <class T, class... Arguments>
  stream_ordered make_shared_vector(Arguments&&...) const {
    return registered<T>();
  }

 private:
  template <class... Arguments>
  [[nodiscard]] static stream_ordered unknown_message() noexcept {
    static_assert(
        always_false<Arguments...>,
        "cohort: NCCL tells nobody of a message before it is received: agree on its source and size beforehand, "
        "or announce it over the communicator of the host that this one was made of, which has probe");
    return refused_operation();
  }
  template <class... Arguments>
  [[nodiscard]] static stream_ordered object() noexcept {
    static_assert(always_false<Arguments...>,
                  "cohort: an object is encoded in the memory of the host, and NCCL moves memory of devices: make this "
                  "call on the communicator of the host that this one was made of (world.broadcast_object(settings, "
                  "root{0})); where there was only a store, connect<cpu>() makes one");
    return refused_operation();
  }
  template <class... Arguments>
  [[nodiscard]] static stream_ordered registered() noexcept {
    static_assert(always_false<Arguments...>,
                  "cohort: memory that NCCL has registered with all ranks must be allocated for it: make it by "
                  "make_window<T>(count)");
    return refused_operation();
  }
};

}  // namespace cohort::detail
