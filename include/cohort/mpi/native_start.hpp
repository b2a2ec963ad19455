// SPDX-License-Identifier: BSL-1.0
// MPI's own collectives, begun where they are called: what collective/native_start.hpp asks for. Without the check of
// native.hpp, as that is a message, and where nothing is in the way that a frame would have to wait for.
#pragma once

#include <cohort/collective/algorithm.hpp>
#include <cohort/collective/native_start.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/native_bodies.hpp>
#include <cohort/mpi/reduction_of_two.hpp>

#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace cohort::collective {

template <>
class native_start<transport::mpi_endpoint> {
 public:
  explicit native_start(const cohort::detail::ticket& t) noexcept
      : home_(t.home.get()),
        sequence_(t.sequence),
        signature_(t.signature),
        may_(t.signature.algorithm == algorithm::native && !t.chosen.stop.stop_possible() && !home_->busy()) {}
  native_start(const native_start&) = delete;
  native_start& operator=(const native_start&) = delete;
  ~native_start() {
    if (begun_) endpoint().drop_started();
  }

  [[nodiscard]] bool barrier() {
    transport::detail_mpi::barrier_body body;
    return may_ && carried_out(body, 0);
  }
  [[nodiscard]] bool broadcast(std::byte* data, std::size_t bytes) {
    if (!may_ || bytes > longest) return false;
    transport::detail_mpi::broadcast_body body;
    body.data = data;
    body.bytes = bytes;
    body.root = signature_.root;
    return carried_out(body, bytes);
  }
  [[nodiscard]] bool all_reduce(const std::byte* in, std::byte* out, std::size_t count,
                                const cohort::detail::reducer& op) {
    return between_two(count, op, [&](auto& body) { body.all_reduce(in, out); });
  }
  [[nodiscard]] bool scan(const std::byte* in, std::byte* out, std::size_t count, const cohort::detail::reducer& op) {
    return between_two(count, op, [&](auto& body) { body.scan(in, out); });
  }
  [[nodiscard]] bool reduce(const std::byte* in, std::byte* out, std::size_t count, const cohort::detail::reducer& op) {
    if (is_between_two(count, op)) {
      return between_two(count, op, [&](auto& body) { body.reduce(in, out, signature_.root); });
    }
    const auto known = may_reduce(op, count * op.element_bytes);
    if (!known) return false;
    transport::detail_mpi::reduce_body body(op, known);
    body.in = in;
    body.out = out;
    body.count = count;
    body.root = signature_.root;
    return carried_out(body, count * op.element_bytes);
  }
  [[nodiscard]] bool gather(const layout& in, const layout& out) {
    return may_ && signature_.kind == operation_kind::gather && rooted(in, out, true);
  }
  [[nodiscard]] bool scatter(const layout& in, const layout& out) {
    return may_ && signature_.kind == operation_kind::scatter && rooted(out, in, false);
  }
  /// This rank's block is put in its place.
  [[nodiscard]] bool all_gather(const layout& in, const layout& out) {
    if (!may_ || signature_.kind != operation_kind::all_gather) return false;
    const layout::row all = out.as_row();
    const layout::row mine = in.as_row();
    const std::size_t bytes = of_all(mine.block_bytes);
    if (bytes == 0 || bytes > longest || all.block_bytes != mine.block_bytes) return false;
    transport::detail_mpi::all_gather_body body;
    body.all = all.data;
    body.block = cohort::detail::mpi_bytes::of(nullptr, mine.block_bytes);
    body.block_bytes = mine.block_bytes;
    std::byte* const place = all.data + mine.block_bytes * static_cast<std::size_t>(home_->rank());
    if (home_->size() == 2) {
      body.mine = mine.data;
    } else if (place != mine.data) {
      std::memcpy(place, mine.data, mine.block_bytes);
    }
    return carried_out(body, bytes);
  }
  [[nodiscard]] bool all_to_all(const layout& in, const layout& out) {
    if (!may_ || signature_.kind != operation_kind::all_to_all) return false;
    const layout::row from = in.as_row();
    const layout::row to = out.as_row();
    const std::size_t bytes = of_all(from.block_bytes);
    if (bytes == 0 || bytes > longest || to.block_bytes != from.block_bytes) return false;
    transport::detail_mpi::all_to_all_body body;
    body.in = from.data;
    body.out = to.data;
    body.block = cohort::detail::mpi_bytes::of(nullptr, from.block_bytes);
    body.block_bytes = from.block_bytes;
    return carried_out(body, bytes);
  }
  [[nodiscard]] bool reduce_scatter(const layout& in, const layout& out, const cohort::detail::reducer& op) {
    if (signature_.kind != operation_kind::reduce_scatter) return false;
    const layout::row from = in.as_row();
    const layout::row to = out.as_row();
    const std::size_t bytes = of_all(to.block_bytes);
    const std::size_t elements = to.block_bytes / op.element_bytes;
    if (bytes > 0 && from.block_bytes == to.block_bytes && is_between_two(elements, op)) {
      return between_two(elements, op, [&](auto& body) { body.reduce_scatter(from.data, to.data); });
    }
    const auto known = may_reduce(op, bytes);
    if (!known || bytes == 0 || from.block_bytes != to.block_bytes) return false;
    transport::detail_mpi::reduce_scatter_body body(op, known);
    body.in = from.data;
    body.out = to.data;
    body.block = static_cast<int>(to.block_bytes / op.element_bytes);
    return carried_out(body, bytes);
  }

 private:
  /// Longer ones take so long that a frame makes no difference.
  static constexpr std::size_t longest = std::size_t{256} << 10;

  [[nodiscard]] std::size_t of_all(std::size_t block_bytes) const noexcept {
    return block_bytes * static_cast<std::size_t>(home_->size());
  }
  [[nodiscard]] transport::mpi_endpoint& endpoint() const noexcept {
    return static_cast<transport::mpi_endpoint&>(home_->engine());
  }
  /// What MPI would have to call back for is left to a frame, which keeps the functor.
  [[nodiscard]] transport::mpi_builtin may_reduce(const cohort::detail::reducer& op, std::size_t bytes) const noexcept {
    return may_ && bytes <= longest && op.prepare == nullptr ? transport::builtin_for(op) : transport::mpi_builtin{};
  }
  [[nodiscard]] bool is_between_two(std::size_t count, const cohort::detail::reducer& op) const noexcept {
    return transport::detail_mpi::reduction_of_two::suits(*home_, count * op.element_bytes);
  }
  /// `give` tells the body which reduction it is.
  template <class Give>
  [[nodiscard]] bool between_two(std::size_t count, const cohort::detail::reducer& op, const Give& give) {
    if (!may_ || op.prepare != nullptr || !is_between_two(count, op)) return false;
    transport::detail_mpi::reduction_of_two body(endpoint(), *home_, op, count);
    give(body);
    if (!carried_out(body, count * op.element_bytes)) return false;
    body.finish();
    return true;
  }
  /// `block` here, and on the root one of every rank in `blocks`.
  [[nodiscard]] bool rooted(const layout& block, const layout& blocks, bool gathers) {
    const bool here = home_->rank() == signature_.root;
    const layout::row mine = block.as_row();
    const layout::row all = here ? blocks.as_row() : layout::row{};
    const std::size_t bytes = of_all(mine.block_bytes);
    if (bytes == 0 || bytes > longest || (here && all.block_bytes != mine.block_bytes)) return false;
    transport::detail_mpi::rooted_body body;
    body.mine = cohort::detail::mpi_bytes::of(mine.data, mine.block_bytes);
    body.block_bytes = mine.block_bytes;
    body.all = all.data;
    body.in_place = here && mine.data >= all.data && mine.data < all.data + bytes;
    body.gathers = gathers;
    body.root = signature_.root;
    return carried_out(body, bytes);
  }

  template <class Body>
  [[nodiscard]] bool carried_out(Body& body, std::size_t bytes) {
    const MPI_Comm comm = endpoint().comm_to_start_on(*home_);
    if (comm == MPI_COMM_NULL) return false;
    transport::request_list_of_mpi parts;
    if constexpr (std::is_base_of_v<transport::detail_mpi::started, Body>) body.two = endpoint().other_of(*home_);
    try {
      body.start(comm, parts);
    } catch (const error&) {
      return false;  // the frame tries again, and fails its communicator with what MPI says
    }
    int code = MPI_SUCCESS;
    if (endpoint().ends_soon(parts, bytes, code)) {
      home_->note_entered(sequence_, signature_);
      home_->note_completed(sequence_);
      return true;
    }
    if constexpr (requires { body.arrived; }) {
      endpoint().keep_started(std::move(parts), code, std::move(body.arrived));
    } else {
      endpoint().keep_started(std::move(parts), code);
    }
    begun_ = true;
    return false;
  }

  group* home_;
  std::int64_t sequence_;
  const transport::signature signature_;  // the frame takes the ticket
  bool may_;
  bool begun_ = false;
};

}  // namespace cohort::collective
