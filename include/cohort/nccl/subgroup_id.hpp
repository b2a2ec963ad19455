// SPDX-License-Identifier: BSL-1.0
// How the members of a subgroup, and nobody else, come to one id for NCCL: by messages between them on the communicator
// that they have. Used by subgroups.hpp.
#pragma once

#include <cohort/detail/mix_hash.hpp>
#include <cohort/error.hpp>
#include <cohort/gpu/buffer.hpp>
#include <cohort/gpu/excuse.hpp>
#include <cohort/gpu/on_host.hpp>
#include <cohort/nccl/blocks.hpp>
#include <cohort/nccl/check.hpp>
#include <cohort/nccl/front.hpp>
#include <cohort/nccl/header.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace cohort::detail {

/// What a member says of the call: first each to the lowest of them, then that one to each.
struct subgroup_word : excuse {
  errc condition = errc::invalid_argument;  ///< of the trouble, where there is any
  std::uint64_t list = 0;                   ///< the members in their order, as a hash
  ncclUniqueId id{};                        ///< from the lowest
};
static_assert(std::is_trivially_copyable_v<subgroup_word>);

/// A round of words: those of `from` to `to`, on this rank one of them alone.
inline void pass_subgroup_words(const nccl_front& calls, std::span<const int> from, std::span<const int> to,
                                std::vector<subgroup_word>& words) {
  constexpr const char* name = "subgroup";
  const auto sends = std::find(from.begin(), from.end(), calls.rank()) != from.end();
  const std::span<const int> partners = sends ? to : from;
  const std::size_t bytes = sizeof(subgroup_word) * partners.size();
  std::byte* memory = nullptr;
  const stream_ordered passed = calls.start(name, {}, [&](nccl_party& p, cudaStream_t s) {
    memory = p.scratch(s, bytes, name);
    if (sends) check_cuda(cudaMemcpyAsync(memory, words.data(), bytes, cudaMemcpyHostToDevice, s), "cudaMemcpyAsync");
    in_nccl_group(p, name, [&] {
      std::byte* at = memory;
      for (const int partner : partners) {
        if (sends) send_bytes(p, name, at, sizeof(subgroup_word), partner, s);
        else receive_bytes(p, name, at, sizeof(subgroup_word), partner, s);
        at += sizeof(subgroup_word);
      }
    });
  });
  // Only then the memory of the host: a copy to it would wait for the others without a deadline.
  on_host(passed).wait();
  if (!sends) {
    const device_scope here(device{calls.party()->device_index()});
    check_cuda(cudaMemcpyAsync(words.data(), memory, bytes, cudaMemcpyDeviceToHost, passed.stream()),
               "cudaMemcpyAsync");
    check_cuda(cudaStreamSynchronize(passed.stream()), "cudaStreamSynchronize");
  }
}

/// The id for the communicator of `list`, which this rank is in.
///
/// Completes: when all members have made the call; blocks until then
/// Errors:    on every member alike: invalid_argument naming two ranks whose lists differ, or what NCCL says when
///            it has no id; timed_out where a member does not come, which ends the communicator
/// Cost:      two messages of half a kilobyte for each member but one
[[nodiscard]] inline ncclUniqueId agree_on_subgroup(const nccl_front& calls, const std::vector<int>& list) {
  constexpr const char* name = "subgroup";
  std::vector<int> others = list;
  std::sort(others.begin(), others.end());
  const int lowest = others.front();
  others.erase(others.begin());
  const std::span<const int> one(&lowest, 1);

  subgroup_word mine;
  mine.list = list.size();
  for (const int r : list) mine.list = mix(mine.list, static_cast<std::uint64_t>(r));
  std::vector<subgroup_word> words(calls.rank() == lowest ? others.size() : 1, mine);
  if (!others.empty()) pass_subgroup_words(calls, others, one, words);

  if (calls.rank() == lowest) {
    for (std::size_t i = 0; i < words.size() && mine.reason().empty(); ++i) {
      if (words[i].list != mine.list) {
        mine.cannot("ranks " + std::to_string(lowest) + " and " + std::to_string(others[i]) +
                    " have called it with different lists of members: give the same list, in the same order, on each");
      }
    }
    if (mine.reason().empty()) {
      if (const ncclResult_t made = ncclGetUniqueId(&mine.id); made != ncclSuccess) {
        mine.condition = nccl_condition(made);
        mine.cannot(nccl_sentence(made, "ncclGetUniqueId on rank " + std::to_string(lowest), nullptr));
      }
    }
    words.assign(others.size(), mine);
  }
  if (!others.empty()) pass_subgroup_words(calls, one, others, words);

  const subgroup_word& verdict = calls.rank() == lowest ? mine : words.front();
  if (!verdict.reason().empty()) {
    calls.party()->refuse(verdict.condition, name, std::string(verdict.reason()));
  }
  return verdict.id;
}

}  // namespace cohort::detail
