// SPDX-License-Identifier: BSL-1.0
// The all-reduce and the reduce of ranks that share memory: short vectors are read from everybody by everybody, long
// ones are combined slice by slice, each rank its own. Called by collective/all_reduce.hpp and collective/reduce.hpp.
#pragma once

#include <cohort/collective/shared/copy.hpp>
#include <cohort/collective/shared/open.hpp>

namespace cohort::collective {

/// Vectors up to this size are combined whole by every rank: cheaper than waiting once more for slices.
[[nodiscard]] constexpr std::size_t whole_vector_bytes(int ranks) noexcept {
  return ranks <= 2 ? std::size_t{64} << 10 : std::size_t{16} << 10;
}

/// Combines the vectors of all ranks into `dest`, which may be `source`; only on `root` unless that is -1.
///
/// Shapes: source, dest: layouts of one block of `bytes` bytes; dest is not used on ranks that get no result
/// Order:  that of the ranks, always
/// Cost:   a vector of up to 96 bytes costs two cache lines from each rank, one of 32 bytes a single one
template <class Channel, class Otherwise>
task<> reduce_in_window(Channel ch, layout source, layout dest, std::size_t bytes, const cohort::detail::reducer& op,
                        int root, Otherwise otherwise) {
  call& c = ch.current();
  transport::window_use use(c, ch.transport(), *c.home().window);
  co_await use.turn();
  bool open = op.element_bytes <= use.capacity();
  if (open && !use.open()) open = co_await open_window(use);
  if (!open) {
    use.finish();
    co_await otherwise();
    co_return;
  }
  const int p = use.size();
  const int r = use.rank();
  const bool takes = root < 0 || root == r;
  operands sources(p);
  for (int k = 1; k < p; ++k) co_await use.previous_of(use.other(k));
  for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
  use.announce();

  if (bytes <= whole_vector_bytes(p)) {
    const bool tiny = bytes <= transport::shm_window::inline_bytes;
    copy_in(source, 0, 0, bytes, tiny ? use.short_data(r) : use.mine());
    use.raise();
    if (takes) {
      for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
      sources.set([&use, tiny](int k) { return tiny ? use.short_data(k) : use.slot(k); });
      sources.fold_out(op, p, dest, 0, 0, bytes, false);
    }
    use.end_step();
    use.finish();
    co_return;
  }

  const bool streaming = bytes > streaming_bytes;
  const std::size_t chunk = whole_elements(use.capacity(), op.element_bytes);
  for (std::size_t at = 0; at < bytes; at += chunk) {
    const std::size_t here = std::min(chunk, bytes - at);
    const slices cut(here, p, op.element_bytes);
    for (int k = 1; k < p; ++k) co_await use.left_by(use.other(k));
    // Everything but this rank's own slice, which nobody else reads.
    const std::size_t own = cut.begin(r);
    const std::size_t behind = own + cut.size(r);
    copy_in(source, 0, at, own, use.mine());
    copy_in(source, 0, at + behind, here - behind, use.mine() + behind);
    use.raise();
    for (int k = 1; k < p; ++k) co_await use.arrived(use.other(k));
    std::size_t done = own;
    source.each_piece_within(0, at + own, cut.size(r), [&](const std::byte* data, std::size_t n) {
      sources.set([&](int k) { return k == r ? data : use.slot(k) + done; });
      op.fold_many(op.op, use.mine() + done, sources.data(), p, n / op.element_bytes, false);
      done += n;
    });
    use.raise_second();
    if (takes) {
      copy_out(use.mine() + own, dest, 0, at + own, cut.size(r), streaming);
      for (int k = 1; k < p; ++k) {
        const int from = use.other(k);
        co_await use.second_of(from);
        copy_out(use.slot(from) + cut.begin(from), dest, 0, at + cut.begin(from), cut.size(from), streaming);
      }
    }
    use.end_step();
  }
  use.finish();
}

}  // namespace cohort::collective
