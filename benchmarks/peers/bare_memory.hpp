// SPDX-License-Identifier: BSL-1.0
// What each operation needs at least between ranks that share memory: the bytes are copied in once and read from there,
// or not copied at all where both sides can reach the buffers. Used by bare.cpp.
#pragma once

#include "bare_fold.hpp"
#include "bare_shared.hpp"

#include <cohort/detail/hand_back.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace bare {

class over_memory {
 public:
  /// `areas`: those of all ranks, and behind them two for messages between the first two of them
  over_memory(const std::string& name, rank_area* areas, int rank, int ranks)
      : name_(name), all_(areas, rank, ranks), pair_(areas + ranks, std::min(rank, 1), 2) {}
  [[nodiscard]] int rank() const { return all_.rank(); }
  [[nodiscard]] int size() const { return all_.ranks(); }

  template <class T>
  std::shared_ptr<void> keep(T* data, std::size_t n) {
    if (std::getenv("MEASURE_REGISTER") == nullptr || n == 0) return nullptr;
    const auto made =
        std::make_shared<promoted>(name_ + "." + std::to_string(++promotions_), all_, data, n * sizeof(T));
    std::erase_if(promoted_, [](const auto& each) { return each.expired(); });
    promoted_.push_back(made);
    return made;
  }

  void barrier() {
    all_.begin_tiny();
    all_.raise();
    all_.wait_for_all();
    all_.end_tiny();
  }

  template <class T, class Op>
  void all_reduce(const T* in, T* out, std::size_t n, const Op& op) {
    const int p = size();
    const std::size_t bytes = n * sizeof(T);
    if (bytes <= steps::tiny_bytes) {
      all_.begin_tiny();
      std::memcpy(all_.tiny(rank()), in, bytes);
      all_.raise();
      all_.wait_for_all();
      fold(
          out, [&](int k) -> const T* { return k == rank() ? in : as<T>(all_.tiny(k)); }, p, 0, n, op);
      all_.end_tiny();
      return;
    }
    const auto from = reachable(in), to = reachable(out);
    if (from != nullptr && to != nullptr && bytes >= 16 * page) return all_reduce_in_place<T>(*from, *to, n, op);
    if (bytes <= whole_bytes) {
      all_.begin(bytes);
      std::memcpy(all_.slot(rank()), in, bytes);
      all_.raise();
      all_.wait_for_all();
      fold(
          out, [&](int k) -> const T* { return k == rank() ? in : as<T>(all_.slot(k)); }, p, 0, n, op);
      have_read(as<T>(all_.slot(other())), n);
      all_.end();
      return;
    }
    each_chunk<T>(n, 1, [&](std::size_t at, std::size_t here) {
      reduce_slices(in + at, here, op, out + at, [&](const share& cut) {
        for (int i = 1; i < p; ++i) {
          const int k = (rank() + i) % p;
          all_.wait_for_second(k);
          std::memcpy(out + at + cut.begin(k), as<T>(all_.slot(k)) + cut.begin(k), cut.size(k) * sizeof(T));
          have_read(as<T>(all_.slot(k)) + cut.begin(k), cut.size(k));
        }
      });
    });
  }

  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    if (n * sizeof(T) <= steps::tiny_bytes) {
      all_.begin_tiny();
      if (root == rank()) {
        std::memcpy(all_.tiny(root), inout, n * sizeof(T));
        all_.raise();
      } else {
        all_.wait_for(root);
        std::memcpy(inout, all_.tiny(root), n * sizeof(T));
      }
      all_.end_tiny();
      return;
    }
    each_chunk<T>(n, 1, [&](std::size_t at, std::size_t here) {
      all_.begin();
      if (root == rank()) {
        std::memcpy(all_.slot(root), inout + at, here * sizeof(T));
        all_.raise();
      } else {
        all_.wait_for(root);
        take(inout + at, as<T>(all_.slot(root)), here, true);
      }
      all_.end();
    });
  }

  template <class T, class Op>
  void reduce(const T* in, T* out, std::size_t n, const Op& op, int root) {
    const int p = size();
    const std::size_t bytes = n * sizeof(T);
    if (bytes <= steps::tiny_bytes) {
      all_.begin_tiny();
      if (root != rank()) {
        std::memcpy(all_.tiny(rank()), in, bytes);
        all_.raise();
      } else {
        all_.wait_for_all();
        fold(
            out, [&](int k) -> const T* { return k == root ? in : as<T>(all_.tiny(k)); }, p, 0, n, op);
      }
      all_.end_tiny();
      return;
    }
    each_chunk<T>(n, 1, [&](std::size_t at, std::size_t here) {
      if (p > 2) {
        reduce_slices(in + at, here, op, root == rank() ? out + at : nullptr, [&](const share& cut) {
          if (root != rank()) return;
          for (int i = 1; i < p; ++i) {
            const int k = (root + i) % p;
            all_.wait_for_second(k);
            std::memcpy(out + at + cut.begin(k), as<T>(all_.slot(k)) + cut.begin(k), cut.size(k) * sizeof(T));
          }
        });
        return;
      }
      all_.begin();
      if (root != rank()) {
        std::memcpy(all_.slot(rank()), in + at, here * sizeof(T));
        all_.raise();
      } else {
        all_.wait_for_all();
        fold(
            out + at, [&](int k) -> const T* { return k == root ? in + at : as<T>(all_.slot(k)); }, p, 0, here, op);
        have_read(as<T>(all_.slot(other())), here);
      }
      all_.end();
    });
  }

  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    each_step<T>(block, 1, [&](std::size_t at, std::size_t here, const auto& place) {
      std::memcpy(place(rank()), in + at, here * sizeof(T));
      all_.raise();
      std::memcpy(out + static_cast<std::size_t>(rank()) * block + at, in + at, here * sizeof(T));
      all_.wait_for_all([&](int k) { take(out + static_cast<std::size_t>(k) * block + at, place(k), here, false); });
    });
  }
  template <class T, class Op>
  void reduce_scatter(const T* in, T* out, std::size_t block, const Op& op) {
    const auto own = static_cast<std::size_t>(rank());
    each_step<T>(block, size(), [&](std::size_t at, std::size_t here, const auto& place) {
      give_blocks(in, block, at, here, place(rank()));
      all_.raise();
      all_.wait_for_all();
      fold(
          out + at, [&](int k) -> const T* { return k == rank() ? in + own * block + at : place(k) + own * here; },
          size(), 0, here, op);
      have_read(place(other()) + own * here, here);
    });
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    const auto own = static_cast<std::size_t>(rank());
    each_step<T>(block, size(), [&](std::size_t at, std::size_t here, const auto& place) {
      give_blocks(in, block, at, here, place(rank()));
      all_.raise();
      std::memcpy(out + own * block + at, in + own * block + at, here * sizeof(T));
      all_.wait_for_all([&](int k) {
        std::memcpy(out + static_cast<std::size_t>(k) * block + at, place(k) + own * here, here * sizeof(T));
        have_read(place(k) + own * here, here);
      });
    });
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    each_step<T>(block, 1, [&](std::size_t at, std::size_t here, const auto& place) {
      if (root != rank()) {
        std::memcpy(place(rank()), in + at, here * sizeof(T));
        all_.raise();
        return;
      }
      std::memcpy(out + static_cast<std::size_t>(root) * block + at, in + at, here * sizeof(T));
      all_.wait_for_all([&](int k) {
        std::memcpy(out + static_cast<std::size_t>(k) * block + at, place(k), here * sizeof(T));
        have_read(place(k), here);
      });
    });
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    const auto own = static_cast<std::size_t>(rank());
    each_step<T>(block, size(), [&](std::size_t at, std::size_t here, const auto& place) {
      if (root == rank()) {
        give_blocks(in, block, at, here, place(root));
        all_.raise();
        std::memcpy(out + at, in + own * block + at, here * sizeof(T));
        return;
      }
      all_.wait_for(root);
      std::memcpy(out + at, place(root) + own * here, here * sizeof(T));
      have_read(place(root) + own * here, here);
    });
  }
  template <class T, class Op>
  void scan(const T* in, T* out, std::size_t n, const Op& op) {
    each_step<T>(n, 1, [&](std::size_t at, std::size_t here, const auto& place) {
      if (rank() != size() - 1) {
        std::memcpy(place(rank()), in + at, here * sizeof(T));
        all_.raise();
      }
      for (int k = rank() - 1; k >= 0; --k) all_.wait_for(k);
      fold(
          out + at, [&](int k) -> const T* { return k == rank() ? in + at : place(k); }, rank() + 1, 0, here, op);
      if (rank() == 1) have_read(place(0), here);
    });
  }

  template <class T>
  void send(const T* data, std::size_t n, int) {
    each_part(pair_, n * sizeof(T), [&](std::size_t at, std::size_t here, std::byte* to) {
      std::memcpy(to, reinterpret_cast<const std::byte*>(data) + at, here);
      pair_.raise();
    });
  }
  template <class T>
  void receive(T* data, std::size_t n, int peer) {
    each_part(pair_, n * sizeof(T), [&](std::size_t at, std::size_t here, std::byte*) {
      pair_.wait_for(peer);
      std::byte* const from = n * sizeof(T) <= steps::tiny_bytes ? pair_.tiny(peer) : pair_.slot(peer);
      std::memcpy(reinterpret_cast<std::byte*>(data) + at, from, here);
      have_read(from, here);
    });
  }

 protected:
  [[nodiscard]] steps& all() { return all_; }
  [[nodiscard]] steps& pair() { return pair_; }

 private:
  /// Up to here everybody reads everything: one word to wait for instead of two.
  static constexpr std::size_t whole_bytes = 8192;
  static constexpr std::size_t part_bytes = std::size_t{64} << 10;

  template <class T>
  static T* as(std::byte* data) {
    return reinterpret_cast<T*>(data);
  }

  [[nodiscard]] int other() const { return (rank() + 1) % size(); }
  /// Of two ranks the other one alone has read what this one writes next (cohort/detail/hand_back.hpp).
  template <class T>
  void have_read(T* data, std::size_t n) const {
    if (size() != 2 || n * sizeof(T) <= steps::tiny_bytes) return;
    cohort::detail::hand_back(reinterpret_cast<std::byte*>(data), n * sizeof(T));
  }

  /// Copies what all others read. Where these are on two processors, each leaves it modified, unless many give.
  template <class T>
  void take(T* to, T* from, std::size_t n, bool given_by_one) const {
    const std::size_t bytes = n * sizeof(T);
    if (size() == 2 || !on_two_ || !(given_by_one || size() <= 4) || bytes <= steps::tiny_bytes) {
      std::memcpy(to, from, bytes);
      return have_read(from, n);
    }
    for (std::size_t at = 0; at < bytes; at += page) {
      const std::size_t here = std::min(page, bytes - at);
      std::byte* const part = reinterpret_cast<std::byte*>(from) + at;
      std::memcpy(reinterpret_cast<std::byte*>(to) + at, part, here);
      cohort::detail::hand_on(part, here);
    }
  }

  /// calls(at, elements) until n are done, `blocks` at a time of which fit into a slot.
  template <class T, class Call>
  void each_chunk(std::size_t n, int blocks, const Call& call) {
    const std::size_t most = steps::slot_bytes / static_cast<std::size_t>(blocks) / 64 * 64 / sizeof(T);
    for (std::size_t at = 0; at < n; at += most) call(at, std::min(most, n - at));
  }
  /// The same, each one a step: call(at, elements, where a rank's bytes are).
  template <class T, class Call>
  void each_step(std::size_t n, int blocks, const Call& call) {
    if (n * static_cast<std::size_t>(blocks) * sizeof(T) <= steps::tiny_bytes) {
      all_.begin_tiny();
      call(std::size_t{0}, n, [this](int k) { return as<T>(all_.tiny(k)); });
      all_.end_tiny();
      return;
    }
    each_chunk<T>(n, blocks, [&](std::size_t at, std::size_t here) {
      all_.begin(here * static_cast<std::size_t>(blocks) * sizeof(T));
      call(at, here, [this](int k) { return as<T>(all_.slot(k)); });
      all_.end();
    });
  }
  template <class Call>
  static void each_part(steps& s, std::size_t bytes, const Call& call) {
    if (bytes <= steps::tiny_bytes) {
      s.begin_tiny();
      call(std::size_t{0}, bytes, s.tiny(s.rank()));
      s.end_tiny();
      return;
    }
    for (std::size_t at = 0; at < bytes; at += part_bytes) {
      s.begin();
      call(at, std::min(part_bytes, bytes - at), s.slot(s.rank()));
      s.end();
    }
  }
  /// All blocks but this rank's own.
  template <class T>
  void give_blocks(const T* in, std::size_t block, std::size_t at, std::size_t here, T* to) {
    for (int k = 0; k < size(); ++k) {
      const auto there = static_cast<std::size_t>(k);
      if (k != rank()) std::memcpy(to + there * here, in + there * block + at, here * sizeof(T));
    }
  }
  /// Every rank combines its slice of a chunk in its slot, and has it in `out` unless that is null; `use(slices)` is called once
  /// the others may have it too.
  template <class T, class Op, class Use>
  void reduce_slices(const T* in, std::size_t n, const Op& op, T* out, const Use& use) {
    const share cut(n, size());
    const std::size_t own = cut.begin(rank()), behind = own + cut.size(rank());
    all_.begin(n * sizeof(T));
    T* const mine = as<T>(all_.slot(rank()));
    std::memcpy(mine, in, own * sizeof(T));
    std::memcpy(mine + behind, in + behind, (n - behind) * sizeof(T));
    all_.raise();
    all_.wait_for_all();
    fold(
        mine + own, [&](int k) -> const T* { return k == rank() ? in : as<T>(all_.slot(k)); }, size(), own,
        cut.size(rank()), op);
    const auto take_own = [&] {
      if (out != nullptr) std::memcpy(out + own, mine + own, cut.size(rank()) * sizeof(T));
    };
    // The other one of two hands it back.
    const bool before = size() == 2;
    if (before) take_own();
    all_.raise_second();
    if (!before) take_own();
    have_read(as<T>(all_.slot(other())) + own, cut.size(rank()));
    use(cut);
    all_.end();
  }

  std::shared_ptr<promoted> reachable(const void* data) const {
    for (const auto& each : promoted_) {
      const auto found = each.lock();
      if (found != nullptr && found->is_at(data)) return found;
    }
    return nullptr;
  }
  template <class T, class Op>
  void all_reduce_in_place(const promoted& from, const promoted& to, std::size_t n, const Op& op) {
    const share cut(n, size());
    all_.begin();
    all_.raise();
    all_.wait_for_all();
    // Up to here what is written stays in the last cache: sooner, 2 MiB of 4 ranks take 1.6 times as long, later, of 8 ranks, 1.8 times.
    const bool past_caches = 2 * n * sizeof(T) * static_cast<std::size_t>(size()) > (std::size_t{24} << 20);
    fold_to_all<T>([&](int k) { return as<T>(to.of(k)); }, [&](int k) { return as<T>(from.of(k)); }, rank(), size(),
                   cut.begin(rank()), cut.size(rank()), past_caches, op);
    all_.raise_second();
    for (int k = 0; k < size(); ++k) all_.wait_for_second(k);
    all_.end();
  }

  std::string name_;
  steps all_, pair_;
  bool on_two_ = ::sysconf(_SC_NPROCESSORS_ONLN) == 2;
  int promotions_ = 0;
  std::vector<std::weak_ptr<promoted>> promoted_{};
};

}  // namespace bare
