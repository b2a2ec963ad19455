// SPDX-License-Identifier: BSL-1.0
// Bodies of mpi/native.hpp.
#pragma once

#include <cohort/collective/execute.hpp>
#include <cohort/collective/schedule/barrier.hpp>
#include <cohort/mpi/native.hpp>
#include <cohort/mpi/native_bodies.hpp>
#include <cohort/mpi/native_turn.hpp>
#include <cohort/mpi/reduction_of_two.hpp>

#include <string>
#include <type_traits>
#include <utility>

namespace cohort::transport {
namespace detail_mpi {

/// Waits for its turn, starts it, and waits for its end. Unless told not to, the ranks make sure first that all have
/// come and mean the same: from then on MPI carries the collective out, and nobody is left alone in it. What is given up and
/// has not ended keeps the copies.
template <class Body, class... Copies>
task<> carry_out(call& c, Body& body, Copies&... copies) {
  auto& endpoint = static_cast<mpi_endpoint&>(c.engine());
  if constexpr (std::is_base_of_v<started, Body>) body.two = endpoint.other_of(c.home());
  native_turn turn(endpoint, c);
  turn.self = &body;
  turn.start = [](void* self, MPI_Comm comm, request_list_of_mpi& parts) {
    static_cast<Body*>(self)->start(comm, parts);
  };
  // The first on a communicator always: it makes MPI's own, and must not wait there for a rank that never comes.
  if (endpoint.check() == native_check::always || turn.first) {
    const channel<mpi_endpoint> ch(c);
    const collective::layouts nothing;
    co_await collective::execute(ch, collective::dissemination_barrier{ch.size(), ch.rank()}, nothing, nullptr);
  }
  request r;
  r.place = &turn;
  turn.waiting = &r;
  const auto ended = [&]() noexcept {
    const bool done = turn.parts.empty();
    body.end(done);
    if (!done) (copies.leave(), ...);
  };
  struct at_end {
    const decltype(ended)* what;
    explicit at_end(const decltype(ended)* w) noexcept : what(w) {}
    at_end(const at_end&) = delete;
    at_end& operator=(const at_end&) = delete;
    ~at_end() { (*what)(); }
  };
  const at_end finally(&ended);
  transfer_scope scope(c);
  scope.hold(&r, 1);
  scope.start(endpoint, 0);
  co_await scope.done();
}

/// The same of a reduction of two ranks, which the body has been told.
template <class... Copies>
task<> carry_out_of_two(call& c, reduction_of_two& body, Copies&... copies) {
  co_await carry_out(c, body, copies...);
  body.finish();
}

}  // namespace detail_mpi

COHORT_DECL task<> native_collectives<mpi_endpoint>::barrier(call& c) {
  detail_mpi::barrier_body body;
  co_await detail_mpi::carry_out(c, body);
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::broadcast(call& c, int root, std::byte* data, std::size_t bytes) {
  detail_mpi::gathered all(endpoint(c), data, bytes, c.home().rank() == root);
  detail_mpi::broadcast_body body;
  body.data = all.data();
  body.bytes = bytes;
  body.root = root;
  co_await detail_mpi::carry_out(c, body, all);
  if (c.home().rank() != root) all.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::all_reduce(call& c, const std::byte* in, std::byte* out,
                                                                std::size_t count, const reducer& op) {
  if (detail_mpi::reduction_of_two::suits(c.home(), count * op.element_bytes)) {
    detail_mpi::reduction_of_two body(endpoint(c), c.home(), op, count);
    body.all_reduce(in, out);
    co_await detail_mpi::carry_out_of_two(c, body);
    co_return;
  }
  detail_mpi::operands both(endpoint(c), in, out, count * op.element_bytes);
  detail_mpi::all_reduce_body body(endpoint(c), op);
  body.of(both, count);
  co_await detail_mpi::carry_out(c, body, both);
  both.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::reduce(call& c, int root, const std::byte* in, std::byte* out,
                                                            std::size_t count, const reducer& op) {
  if (detail_mpi::reduction_of_two::suits(c.home(), count * op.element_bytes)) {
    detail_mpi::reduction_of_two body(endpoint(c), c.home(), op, count);
    body.reduce(in, out, root);
    co_await detail_mpi::carry_out_of_two(c, body);
    co_return;
  }
  detail_mpi::operands both(endpoint(c), in, c.home().rank() == root ? out : nullptr, count * op.element_bytes);
  detail_mpi::reduce_body body(endpoint(c), op);
  body.of(both, count);
  body.root = root;
  co_await detail_mpi::carry_out(c, body, both);
  both.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::scan(call& c, const std::byte* in, std::byte* out,
                                                          std::size_t count, const reducer& op) {
  if (detail_mpi::reduction_of_two::suits(c.home(), count * op.element_bytes)) {
    detail_mpi::reduction_of_two body(endpoint(c), c.home(), op, count);
    body.scan(in, out);
    co_await detail_mpi::carry_out_of_two(c, body);
    co_return;
  }
  detail_mpi::operands both(endpoint(c), in, out, count * op.element_bytes);
  detail_mpi::scan_body body(endpoint(c), op);
  body.of(both, count);
  co_await detail_mpi::carry_out(c, body, both);
  both.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::exclusive_scan(call& c, const std::byte* in, std::byte* out,
                                                                    std::size_t count, const reducer& op) {
  if (detail_mpi::reduction_of_two::suits(c.home(), count * op.element_bytes)) {
    detail_mpi::reduction_of_two body(endpoint(c), c.home(), op, count);
    body.exclusive_scan(in, out);
    co_await detail_mpi::carry_out_of_two(c, body);
    co_return;
  }
  detail_mpi::operands both(endpoint(c), in, out, count * op.element_bytes);
  detail_mpi::scan_body body(endpoint(c), op);
  body.of(both, count);
  body.inclusive = false;
  co_await detail_mpi::carry_out(c, body, both);
  both.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::reduce_scatter(call& c, const layout& in, const layout& out,
                                                                    const reducer& op) {
  detail_mpi::gathered from(endpoint(c), in, true);
  const std::size_t block_bytes = in.bytes(0, 1);
  if (c.signature().kind == operation_kind::reduce_scatter &&
      detail_mpi::reduction_of_two::suits(c.home(), block_bytes)) {
    std::byte* to = nullptr;
    out.each_piece(0, 1, [&](std::byte* data, std::size_t) { to = data; });
    detail_mpi::reduction_of_two body(endpoint(c), c.home(), op, block_bytes / op.element_bytes);
    body.reduce_scatter(from.data(), to);
    co_await detail_mpi::carry_out_of_two(c, body, from);
    co_return;
  }
  detail_mpi::gathered to(endpoint(c), out, false);
  detail_mpi::reduce_scatter_body body(endpoint(c), op);
  detail_mpi::cuts where = detail_mpi::cuts::of(in, op.element_bytes);
  body.in = from.data();
  body.out = to.data();
  body.block = where.counts.front();
  body.counts = std::move(where.counts);
  body.even = where.even;
  co_await detail_mpi::carry_out(c, body, from, to);
  to.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::all_gather(call& c, const layout& out) {
  detail_mpi::gathered all(endpoint(c), out, true);
  detail_mpi::all_gather_body body;
  body.all = all.data();
  body.where = detail_mpi::cuts::of(out);
  body.block_bytes = out.bytes(0, 1);
  body.block = detail::mpi_bytes::of(nullptr, body.block_bytes);
  co_await detail_mpi::carry_out(c, body, all);
  all.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::gather(call& c, int root, const layout& in, const layout& out) {
  const bool here = c.home().rank() == root;
  if (here) require_small(c, out);
  const layout nothing;
  detail_mpi::gathered all(endpoint(c), here ? out : nothing, false);
  detail_mpi::rooted_body body;
  detail_mpi::gathered mine(endpoint(c), in, true);
  body.mine = detail::mpi_bytes::of(mine.data(), mine.bytes());
  body.block_bytes = mine.bytes();
  body.in_place = here && mine.within(all);
  body.all = all.data();
  body.in_v = c.signature().kind == operation_kind::gather_v;
  if (here && body.in_v) body.where = detail_mpi::cuts::of(out);
  body.root = root;
  co_await detail_mpi::carry_out(c, body, all, mine);
  if (here) all.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::scatter(call& c, int root, const layout& in, const layout& out) {
  const bool here = c.home().rank() == root;
  if (here) require_small(c, in);
  const layout nothing;
  detail_mpi::gathered all(endpoint(c), here ? in : nothing, true);
  detail_mpi::rooted_body body;
  detail_mpi::gathered mine(endpoint(c), out, false);
  body.mine = detail::mpi_bytes::of(mine.data(), mine.bytes());
  body.block_bytes = mine.bytes();
  body.in_place = here && mine.within(all);
  body.all = all.data();
  body.in_v = c.signature().kind == operation_kind::scatter_v;
  body.gathers = false;
  if (here && body.in_v) body.where = detail_mpi::cuts::of(in);
  body.root = root;
  co_await detail_mpi::carry_out(c, body, all, mine);
  mine.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::all_to_all(call& c, const layout& in, const layout& out) {
  if (c.signature().kind == operation_kind::all_to_all) return even_all_to_all(c, in, out);
  return uneven_all_to_all(c, in, out);
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::even_all_to_all(call& c, const layout& in, const layout& out) {
  detail_mpi::gathered from(endpoint(c), in, true);
  detail_mpi::gathered to(endpoint(c), out, false);
  detail_mpi::all_to_all_body body;
  body.in = from.data();
  body.out = to.data();
  body.block_bytes = in.bytes(0, 1);
  body.block = detail::mpi_bytes::of(nullptr, body.block_bytes);
  co_await detail_mpi::carry_out(c, body, from, to);
  to.give();
}

COHORT_DECL task<> native_collectives<mpi_endpoint>::uneven_all_to_all(call& c, const layout& in, const layout& out) {
  detail_mpi::all_to_all_v_body body;
  body.add(0, in);
  body.add(1, out);
  co_await detail_mpi::carry_out(c, body);
}

COHORT_DECL void native_collectives<mpi_endpoint>::require_small(call& c, const layout& where) {
  const bool in_v = c.signature().kind == operation_kind::gather_v || c.signature().kind == operation_kind::scatter_v;
  const std::size_t bytes = where.bytes(0, where.blocks());
  if (!in_v || bytes <= detail::most_mpi_count) return;
  const std::string kind{name(c.signature().kind)};
  c.engine().report_mismatch(c.home(), c.sequence(), c.engine().rank(), errc::limit_exceeded,
                             "the blocks have " + std::to_string(bytes) + " bytes together, and MPI's " + kind +
                                 " counts to 2147483647: choose " + kind + "=linear for it");
  throw c.failure();
}

}  // namespace cohort::transport
