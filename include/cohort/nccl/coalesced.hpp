// SPDX-License-Identifier: BSL-1.0
// The calls of communicator<nccl> on several buffers at once, and groups of calls: what is asked of NCCL between the start
// and the end of a group goes to the device in one launch. A base of the communicator.
#pragma once

#include <cohort/nccl/blocks.hpp>
#include <cohort/nccl/front.hpp>
#include <cohort/nccl/reduction_map.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace cohort::detail {

template <class Communicator>
class nccl_group_calls {
 public:
  /// Makes the calls of `body` one operation of NCCL's: `world.group([&](auto& g) { g.send(a, to{1}); g.recv(b, from{1}); })`.
  ///
  /// Needs:     a body that does not co_await: groups belong to threads. Only calls that NCCL carries out itself, of this
  ///            communicator or of another: a fold (nccl_reduces<Op, T> is false) is refused, as is what waits on the host
  ///            (timeout{}, on_host(), what makes a communicator or a window)
  /// Order:     the calls of one body may run at the same time: none may need the result of another
  /// Completes: on the stream of the communicator, or on that of on{stream}, which the calls inside then name as well
  /// Errors:    those of the calls; an exception that leaves the body aborts the communicators that have calls in it,
  ///            because what was asked of NCCL before it waits for what was not
  template <class Body, class... Options>
    requires std::is_invocable_v<Body&, const Communicator&> stream_ordered group(Body&& body, Options&&... options)
  const {
    static_assert(std::is_void_v<std::invoke_result_t<Body&, const Communicator&>>,
                  "cohort: the body of group() returns nothing: it must not be a coroutine, because a group of NCCL's "
                  "belongs to the thread that opened it");
    constexpr const char* name = "group";
    return calls().start_by_nccl(name, device_options_of(options...), [&](nccl_party& p, cudaStream_t) {
      in_nccl_group(p, name, [&] { body(static_cast<const Communicator&>(*this)); });
    });
  }

  /// An all_reduce of every buffer of a list, in place, as one operation.
  ///
  /// Shapes: inout: a list of device buffers, of the same counts on every rank
  /// Errors: as all_reduce
  template <device_list List, class Op, class... Options>
  stream_ordered all_reduce_coalesced(List&& inout, Op op, Options&&... options) const {
    using T = device_element_t<std::ranges::range_reference_t<std::remove_reference_t<List>>>;
    return together("all_reduce_coalesced", nccl_reduces<Op, T>, device_options_of(options...), [&](const on& s) {
      for (auto& each : inout) static_cast<void>(self().all_reduce(view_on_device(each), op, s));
    });
  }
  /// An all_gather of every buffer of a list, as one operation.
  ///
  /// Shapes: out[k] has size() times the elements of in[k]
  template <device_list In, device_list Out, class... Options>
  stream_ordered all_gather_coalesced(In&& in, Out&& out, Options&&... options) const {
    return together("all_gather_coalesced", true, device_options_of(options...), [&](const on& s) {
      each_pair("all_gather_coalesced", in, out,
                [&](const auto& a, const auto& b) { static_cast<void>(self().all_gather(a, b, s)); });
    });
  }
  /// A reduce_scatter of every buffer of a list, as one operation.
  ///
  /// Shapes: in[k] has size() times the elements of out[k]
  template <device_list In, device_list Out, class Op, class... Options>
  stream_ordered reduce_scatter_coalesced(In&& in, Out&& out, Op op, Options&&... options) const {
    using T = device_element_t<std::ranges::range_reference_t<std::remove_reference_t<Out>>>;
    constexpr const char* name = "reduce_scatter_coalesced";
    return together(name, nccl_reduces<Op, T>, device_options_of(options...), [&](const on& s) {
      each_pair(name, in, out,
                [&](const auto& a, const auto& b) { static_cast<void>(self().reduce_scatter(a, b, op, s)); });
    });
  }

 private:
  [[nodiscard]] const Communicator& self() const noexcept { return static_cast<const Communicator&>(*this); }
  [[nodiscard]] const nccl_front& calls() const noexcept { return self().calls(); }

  template <class Each>
  stream_ordered together(const char* name, bool native, const device_options& o, const Each& each) const {
    return calls().start(name, o, [&](nccl_party& p, cudaStream_t s) {
      if (native && p.size() > 1) in_nccl_group(p, name, [&] { each(on{s}); });
      else each(on{s});
    });
  }
  template <class In, class Out, class F>
  void each_pair(const char* name, In& in, Out& out, const F& f) const {
    auto to = std::ranges::begin(out);
    std::size_t n = 0;
    for (auto& from : in) {
      if (to == std::ranges::end(out)) {
        calls().refuse(name, "out has " + std::to_string(n) + " buffers, fewer than in: expected as many");
      }
      f(view_on_device(from), view_on_device(*to));
      ++to;
      ++n;
    }
    if (to != std::ranges::end(out)) {
      calls().refuse(name, "in has " + std::to_string(n) + " buffers, fewer than out: expected as many");
    }
  }
};

}  // namespace cohort::detail
