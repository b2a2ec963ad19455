// SPDX-License-Identifier: BSL-1.0
// Reductions that NCCL does not have: the contributions are exchanged as bytes, each rank combines its own block by one
// fold, in the order of the ranks, and the results are exchanged again. As many bytes on the wire as a ring, the same
// bits on every rank. Started by nccl/reductions.hpp.
#pragma once

#include <cohort/gpu/device_span.hpp>
#include <cohort/gpu/launch_fold.hpp>
#include <cohort/nccl/blocks.hpp>
#include <cohort/nccl/party.hpp>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace cohort::detail {

/// What becomes of a block when it has been combined.
enum class after_fold : unsigned char { stays, goes_to_all, goes_to_root };

/// A reduction in flight through the pipeline. Block r of `in` is combined on rank r; `out` is where its result goes.
template <class T, class Op>
struct fold_job {
  const char* operation;
  device_blocks<const T> in;
  device_blocks<T> out;  ///< block r is used on rank r; of all ranks where the results are gathered
  const Op* op;
  after_fold then;
  int root = 0;
};

/// Whichever communicator has opened the group.
inline void require_ungrouped(const nccl_party& p, const char* operation) {
  if (!in_open_group()) return;
  p.refuse(
      errc::invalid_argument, operation,
      "NCCL does not have this functor for these elements, and the fold that stands in for it must run between two "
      "exchanges: make this call outside of the group");
}

/// A fold of one rank's own elements: prepare and finish are still due. Functors that have neither copy.
template <class T, class Op>
void fold_alone(device_span<const T> in, device_span<T> out, const Op& op, cudaStream_t s) {
  using Applied = applied<Op, T>;
  if constexpr (!has_prepare<Applied, T> && !has_finish<Applied, T>) {
    if (in.empty() || in.data() == out.data()) return;
    check_cuda(cudaMemcpyAsync(out.data(), in.data(), in.size_bytes(), cudaMemcpyDeviceToDevice, s), "cudaMemcpyAsync");
  } else {
    launch_fold<T, Op>(fold_sources<T>::of_slots(nullptr, 0, 1, in.data(), 0), out.data(), in.size(), op, 1, s);
  }
}

/// Everything to everyone and one fold: two launches, for short vectors. `mine` is the part of the result that this rank
/// needs.
template <class T, class Op>
void fold_one_shot(nccl_party& p, const char* operation, device_span<const T> in, device_span<T> out, std::size_t first,
                   const Op& op, cudaStream_t s) {
  const auto n = static_cast<std::size_t>(p.size());
  auto* const slots = reinterpret_cast<T*>(p.scratch(s, n * in.size_bytes(), operation));
  p.check(ncclAllGather(in.data(), slots, in.size_bytes(), nccl_bytes::type, p.comm(), s), "ncclAllGather", operation);
  launch_fold<T, Op>(fold_sources<T>::of_slots(slots + first, in.size(), p.size(), nullptr, -1), out.data(), out.size(),
                     op, p.size(), s);
}

/// Elements `at` .. `at` + `chunk` of a block, as far as there are any.
template <class T>
[[nodiscard]] device_span<T> part_of(device_span<T> block, std::size_t at, std::size_t chunk) noexcept {
  if (at >= block.size()) return {};
  return block.subspan(at, std::min(chunk, block.size() - at));
}

/// The steps of one chunk, on the communicator's stream but for the fold.
template <class T, class Op>
class fold_pipeline {
 public:
  fold_pipeline(nccl_party& p, const fold_job<T, Op>& job, cudaStream_t s)
      : party_(&p), job_(&job), wire_(s), folds_(s), own_(static_cast<std::size_t>(p.rank())) {
    std::size_t longest = 0;
    for (const auto& b : job.in) longest = std::max(longest, b.size());
    // Two slots of a chunk from each rank, in no more than 64 MiB however many ranks there are.
    constexpr std::size_t most = std::size_t{64} << 20;
    const std::size_t bytes =
        std::clamp(p.chunk_bytes, std::size_t{4096}, std::max(std::size_t{65536}, most / 2 / ranks()));
    // Whole vectors of 16 bytes, so that every chunk but the last is folded by vectors.
    chunk_ = std::max<std::size_t>(bytes / sizeof(T) / 16 * 16, 16);
    chunk_ = std::min(chunk_, (longest + 15) / 16 * 16);
    rounds_ = chunk_ == 0 ? 0 : (longest + chunk_ - 1) / chunk_;
    overlapped_ = rounds_ > 1;
  }

  void run() {
    if (rounds_ == 0) return;
    const std::size_t slots = overlapped_ ? 2 : 1;
    slots_ = reinterpret_cast<T*>(party_->scratch(wire_, slots * ranks() * chunk_ * sizeof(T), job_->operation));
    if (overlapped_) folds_ = party_->overlap().second.get();
    // The exchange of the next chunk is on the wire while this one is combined. Every rank enqueues in this order.
    exchange(0);
    fold(0);
    for (std::size_t k = 1; k < rounds_; ++k) {
      exchange(k);
      fold(k);
      hand_on(k - 1);
    }
    hand_on(rounds_ - 1);
  }

 private:
  [[nodiscard]] std::size_t ranks() const noexcept { return static_cast<std::size_t>(party_->size()); }
  [[nodiscard]] T* slot(std::size_t round) const noexcept {
    return slots_ + (overlapped_ ? round % 2 : 0) * ranks() * chunk_;
  }

  void exchange(std::size_t k) {
    const std::size_t at = k * chunk_;
    const std::size_t mine = part_of(job_->in[own_], at, chunk_).size_bytes();
    // Slot k % 2 was last read by fold k - 2, which hand_on(k - 2) has made this stream wait for.
    in_nccl_group(*party_, job_->operation, [&] {
      for (std::size_t r = 0; r < ranks(); ++r) {
        if (r == own_) continue;
        const device_span<const T> theirs = part_of(job_->in[r], at, chunk_);
        send_bytes(*party_, job_->operation, theirs.data(), theirs.size_bytes(), static_cast<int>(r), wire_);
        receive_bytes(*party_, job_->operation, slot(k) + r * chunk_, mine, static_cast<int>(r), wire_);
      }
    });
    if (overlapped_) party_->overlap().exchanged[k % 2].record(wire_);
  }

  void fold(std::size_t k) {
    const device_span<const T> own = part_of(job_->in[own_], k * chunk_, chunk_);
    const device_span<T> to = part_of(job_->out[own_], k * chunk_, chunk_);
    if (overlapped_) party_->overlap().exchanged[k % 2].hold_back(folds_);
    launch_fold<T, Op>(fold_sources<T>::of_slots(slot(k), chunk_, party_->size(), own.data(), static_cast<int>(own_)),
                       to.data(), to.size(), *job_->op, party_->size(), folds_);
    if (overlapped_) party_->overlap().combined[k % 2].record(folds_);
  }

  void hand_on(std::size_t k) {
    if (overlapped_) party_->overlap().combined[k % 2].hold_back(wire_);
    if (job_->then == after_fold::stays) return;
    const std::size_t at = k * chunk_;
    const device_span<T> mine = part_of(job_->out[own_], at, chunk_);
    const bool to_all = job_->then == after_fold::goes_to_all;
    const auto root = static_cast<std::size_t>(job_->root);
    in_nccl_group(*party_, job_->operation, [&] {
      for (std::size_t r = 0; r < ranks(); ++r) {
        if (r == own_) continue;
        if (to_all || r == root) {
          send_bytes(*party_, job_->operation, mine.data(), mine.size_bytes(), static_cast<int>(r), wire_);
        }
        if (to_all || own_ == root) {
          const device_span<T> theirs = part_of(job_->out[r], at, chunk_);
          receive_bytes(*party_, job_->operation, theirs.data(), theirs.size_bytes(), static_cast<int>(r), wire_);
        }
      }
    });
  }

  nccl_party* party_;
  const fold_job<T, Op>* job_;
  cudaStream_t wire_;
  cudaStream_t folds_;
  std::size_t own_;
  std::size_t chunk_ = 0;
  std::size_t rounds_ = 0;
  bool overlapped_ = false;
  T* slots_ = nullptr;
};

/// Blocks of nearly one size, whole vectors each but for the last: where a vector is cut for its ranks.
template <class T>
[[nodiscard]] device_blocks<T> cut_for_ranks(device_span<T> all, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  const std::size_t block = ((all.size() + n - 1) / n + 15) / 16 * 16;
  device_blocks<T> blocks;
  blocks.reserve(n);
  for (std::size_t r = 0; r < n; ++r) blocks.push_back(part_of(all, r * block, block));
  return blocks;
}

}  // namespace cohort::detail
