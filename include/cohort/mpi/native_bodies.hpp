// SPDX-License-Identifier: BSL-1.0
// How each of MPI's own collectives is begun: its arguments, as they live in the frame of an operation, and the call. Used
// by native.hpp.
#pragma once

#include <cohort/collective/layout.hpp>
#include <cohort/mpi/check.hpp>
#include <cohort/mpi/datatype.hpp>
#include <cohort/mpi/endpoint.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/native_buffers.hpp>
#include <cohort/mpi/native_turn.hpp>
#include <cohort/mpi/reduction.hpp>
#include <cohort/transport/call.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace cohort::transport::detail_mpi {

using collective::layout;
using detail::check_mpi;
using detail::mpi_bytes;

struct started {
  of_two two{};
  void end(bool) noexcept {}
};

struct barrier_body : started {
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    if (!two) return check_mpi(MPI_Ibarrier(comm, &parts.another()), "MPI_Ibarrier");
    two.give(nullptr, 0, MPI_BYTE, comm, parts);
    two.take(nullptr, 0, MPI_BYTE, comm, parts);
  }
};

/// In parts of at most 1 GiB: MPICH 4.0 loses count of one datatype that is longer than an int can say.
struct broadcast_body : started {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  int root = 0;
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    constexpr std::size_t most = std::size_t{1} << 30;
    std::size_t at = 0;
    do {
      const std::size_t n = std::min(most, bytes - at);
      const auto count = static_cast<int>(n);
      if (!two) {
        check_mpi(MPI_Ibcast(data + at, count, MPI_BYTE, root, comm, &parts.another()), "MPI_Ibcast");
      } else if (two.rank() == root) {
        two.give(data + at, count, MPI_BYTE, comm, parts);
      } else {
        two.take(data + at, count, MPI_BYTE, comm, parts);
      }
      at += n;
    } while (at < bytes);
  }
};

/// What the four reductions have in common: the operation, and chunks of at most 2^30 elements.
struct reduction_body {
  const void* in = nullptr;
  std::byte* out = nullptr;
  std::size_t count = 0;
  const detail::reducer* combine = nullptr;
  native_reductions* kept = nullptr;
  std::unique_ptr<native_reduction> own{};
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;

  reduction_body(const detail::reducer& r, const mpi_builtin& known) noexcept
      : combine(&r), type(known.type), op(known.op) {}
  reduction_body(mpi_endpoint& endpoint, const detail::reducer& r) : combine(&r), kept(&endpoint.reductions()) {
    if (const mpi_builtin known = builtin_for(r); known) {
      type = known.type;
      op = known.op;
    } else {
      own = kept->take(r);
      type = own->type.get();
      op = kept->op(r.commutative);
    }
  }
  void of(const operands& both, std::size_t n) noexcept {
    in = both.in();
    out = both.out();
    count = n;
  }
  void end(bool done) {
    if (!own) return;
    if (done) {
      kept->give_back(std::move(own));
    } else {
      native_reductions::disarm(std::move(own));
    }
  }
  template <class F>
  void in_chunks(F f) const {
    constexpr std::size_t most = std::size_t{1} << 30;
    std::size_t at = 0;
    do {
      const std::size_t n = std::min(most, count - at);
      const std::size_t offset = at * combine->element_bytes;
      // Of no elements both may be null, and only who has a result may have it in place.
      const bool same = in == MPI_IN_PLACE || (in == out && out != nullptr);
      const void* const from = same ? MPI_IN_PLACE : static_cast<const std::byte*>(in) + offset;
      f(from, out == nullptr ? nullptr : out + offset, static_cast<int>(n));
      at += n;
    } while (at < count);
  }
};

struct all_reduce_body : reduction_body {
  using reduction_body::reduction_body;
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    in_chunks([&](const void* from, void* to, int n) {
      check_mpi(MPI_Iallreduce(from, to, n, type, op, comm, &parts.another()), "MPI_Iallreduce");
    });
  }
};
struct reduce_body : reduction_body {
  using reduction_body::reduction_body;
  int root = 0;
  bool here = false;
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    in_chunks([&](const void* from, void* to, int n) {
      check_mpi(MPI_Ireduce(from, to, n, type, op, root, comm, &parts.another()), "MPI_Ireduce");
    });
  }
};
struct scan_body : reduction_body {
  using reduction_body::reduction_body;
  bool inclusive = true;
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    in_chunks([&](const void* from, void* to, int n) {
      if (inclusive) {
        check_mpi(MPI_Iscan(from, to, n, type, op, comm, &parts.another()), "MPI_Iscan");
      } else {
        check_mpi(MPI_Iexscan(from, to, n, type, op, comm, &parts.another()), "MPI_Iexscan");
      }
    });
  }
};
struct reduce_scatter_body : reduction_body {
  using reduction_body::reduction_body;
  std::vector<int> counts{};  ///< of uneven ones
  int block = 0;              ///< elements of an even one
  bool even = true;
  void end(bool done) {
    reduction_body::end(done);
    if (!done) leave(counts);
  }
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    if (even) {
      check_mpi(MPI_Ireduce_scatter_block(in, out, block, type, op, comm, &parts.another()),
                "MPI_Ireduce_scatter_block");
    } else {
      check_mpi(MPI_Ireduce_scatter(in, out, counts.data(), type, op, comm, &parts.another()), "MPI_Ireduce_scatter");
    }
  }
};

struct all_gather_body : started {
  std::byte* all = nullptr;
  std::byte* mine = nullptr;  ///< this rank's block, if it is not in its place yet: only of two ranks
  cuts where{};
  mpi_bytes block{};  ///< of an even one, which has no address
  std::size_t block_bytes = 0;
  void end(bool done) noexcept {
    if (!done) leave(where);
  }
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    if (two && where.even) return exchange(comm, parts);
    MPI_Request& r = parts.another();
    if (where.even) {
      check_mpi(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, all, block.count, block.type, comm, &r), "MPI_Iallgather");
    } else {
      check_mpi(
          MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_BYTE, all, where.counts.data(), where.places.data(), MPI_BYTE, comm, &r),
          "MPI_Iallgatherv");
    }
  }
  void exchange(MPI_Comm comm, request_list_of_mpi& parts) const {
    std::byte* const place = all + block_bytes * static_cast<std::size_t>(two.rank());
    const std::byte* const from = mine != nullptr ? mine : place;
    two.give(from, block.count, block.type, comm, parts);
    two.take(all + block_bytes * static_cast<std::size_t>(two.other()), block.count, block.type, comm, parts);
    two.keep(place, from, block_bytes);
  }
};

/// gather and scatter: one block here, on the root one of every rank.
struct rooted_body : started {
  mpi_bytes mine{};
  std::size_t block_bytes = 0;
  std::byte* all = nullptr;
  cuts where{};
  bool in_v = false;
  bool gathers = true;
  bool in_place = false;
  int root = 0;
  void end(bool done) noexcept {
    if (!done) leave(where);
  }
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    if (two && !in_v) return pass(comm, parts);
    MPI_Request& r = parts.another();
    void* const own = in_place ? MPI_IN_PLACE : mine.address;
    if (gathers && in_v) {
      check_mpi(MPI_Igatherv(own, mine.count, mine.type, all, where.counts.data(), where.places.data(), MPI_BYTE, root,
                             comm, &r),
                "MPI_Igatherv");
    } else if (gathers) {
      check_mpi(MPI_Igather(own, mine.count, mine.type, all, mine.count, mine.type, root, comm, &r), "MPI_Igather");
    } else if (in_v) {
      check_mpi(MPI_Iscatterv(all, where.counts.data(), where.places.data(), MPI_BYTE, own, mine.count, mine.type, root,
                              comm, &r),
                "MPI_Iscatterv");
    } else {
      check_mpi(MPI_Iscatter(all, mine.count, mine.type, own, mine.count, mine.type, root, comm, &r), "MPI_Iscatter");
    }
  }
  void pass(MPI_Comm comm, request_list_of_mpi& parts) const {
    const bool here = two.rank() == root;
    std::byte* const theirs = here ? all + block_bytes * static_cast<std::size_t>(two.other()) : nullptr;
    if (gathers == here) {
      two.take(here ? theirs : mine.address, mine.count, mine.type, comm, parts);
    } else {
      two.give(here ? theirs : mine.address, mine.count, mine.type, comm, parts);
    }
    if (!here || in_place) return;
    std::byte* const ours = all + block_bytes * static_cast<std::size_t>(root);
    two.keep(gathers ? ours : mine.address, gathers ? mine.address : ours, block_bytes);
  }
};

struct all_to_all_body : started {
  std::byte* in = nullptr;
  std::byte* out = nullptr;
  mpi_bytes block{};
  std::size_t block_bytes = 0;
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    if (two) return exchange(comm, parts);
    check_mpi(MPI_Ialltoall(in, block.count, block.type, out, block.count, block.type, comm, &parts.another()),
              "MPI_Ialltoall");
  }
  void exchange(MPI_Comm comm, request_list_of_mpi& parts) const {
    const std::size_t own = block_bytes * static_cast<std::size_t>(two.rank());
    const std::size_t theirs = block_bytes * static_cast<std::size_t>(two.other());
    two.give(in + theirs, block.count, block.type, comm, parts);
    two.take(out + theirs, block.count, block.type, comm, parts);
    two.keep(out + own, in + own, block_bytes);
  }
};
/// Every block is a datatype of its own at its own address: any sizes, anywhere.
struct all_to_all_v_body : started {
  std::vector<mpi_bytes> blocks{};
  std::vector<int> counts[2];
  std::vector<int> places[2];
  std::vector<MPI_Datatype> types[2];

  void end(bool done) noexcept {
    if (done) return;
    for (int side = 0; side < 2; ++side) {
      leave(counts[side]);
      leave(places[side]);
      leave(types[side]);
    }
  }
  void add(int side, const layout& where) {
    for (int b = 0; b < where.blocks(); ++b) {
      std::vector<piece> runs;
      where.each_piece(b, 1, [&](std::byte* data, std::size_t n) { runs.push_back({data, n}); });
      // Two runs at least, of which one may be empty, make a type with absolute addresses.
      runs.push_back({runs.empty() ? nullptr : runs.front().data, 0});
      runs.push_back({runs.front().data, 0});
      blocks.push_back(mpi_bytes::of_runs(runs.data(), runs.size()));
      counts[side].push_back(where.bytes(b, 1) > 0 ? 1 : 0);
      places[side].push_back(0);
      types[side].push_back(blocks.back().type);
    }
  }
  void start(MPI_Comm comm, request_list_of_mpi& parts) {
    check_mpi(MPI_Ialltoallw(MPI_BOTTOM, counts[0].data(), places[0].data(), types[0].data(), MPI_BOTTOM,
                             counts[1].data(), places[1].data(), types[1].data(), comm, &parts.another()),
              "MPI_Ialltoallw");
  }
};

}  // namespace cohort::transport::detail_mpi
