// SPDX-License-Identifier: BSL-1.0
// What moves bytes between ranks of one host by one copy instead of two: the kernel reads them out of the memory of who
// has them. Reductions are those of bare_memory.hpp. Used by bare.cpp.
#pragma once

#include "bare_memory.hpp"
#include "bare_shared.hpp"

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace bare {

class over_one_copy : public over_memory {
 public:
  over_one_copy(const std::string& name, rank_area* areas, int rank, int ranks)
      : over_memory(name, areas, rank, ranks), areas_(areas) {}

  template <class T>
  void broadcast(T* inout, std::size_t n, int root) {
    if (is_short<T>(n)) return over_memory::broadcast(inout, n, root);
    move(all(), root == rank() ? inout : nullptr, [&](const auto& read) {
      if (root != rank()) read(root, inout, 0, n * sizeof(T));
    });
  }
  template <class T>
  void all_gather(const T* in, std::size_t block, T* out) {
    if (is_short<T>(block)) return over_memory::all_gather(in, block, out);
    move(all(), in, [&](const auto& read) {
      std::memcpy(out + place(rank(), block), in, block * sizeof(T));
      each_other([&](int k) { read(k, out + place(k, block), 0, block * sizeof(T)); });
    });
  }
  template <class T>
  void all_to_all(const T* in, T* out, std::size_t block) {
    if (is_short<T>(block)) return over_memory::all_to_all(in, out, block);
    const std::size_t own = place(rank(), block);
    move(all(), in, [&](const auto& read) {
      std::memcpy(out + own, in + own, block * sizeof(T));
      each_other([&](int k) { read(k, out + place(k, block), own * sizeof(T), block * sizeof(T)); });
    });
  }
  template <class T>
  void gather(const T* in, std::size_t block, T* out, int root) {
    if (is_short<T>(block)) return over_memory::gather(in, block, out, root);
    move(all(), root == rank() ? nullptr : in, [&](const auto& read) {
      if (root != rank()) return;
      std::memcpy(out + place(root, block), in, block * sizeof(T));
      each_other([&](int k) { read(k, out + place(k, block), 0, block * sizeof(T)); });
    });
  }
  template <class T>
  void scatter(const T* in, std::size_t block, T* out, int root) {
    if (is_short<T>(block)) return over_memory::scatter(in, block, out, root);
    const std::size_t own = place(rank(), block);
    move(all(), root == rank() ? in : nullptr, [&](const auto& read) {
      if (root == rank()) std::memcpy(out, in + own, block * sizeof(T));
      else read(root, out, own * sizeof(T), block * sizeof(T));
    });
  }
  template <class T>
  void send(const T* data, std::size_t n, int peer) {
    if (is_short<T>(n)) return over_memory::send(data, n, peer);
    move(pair(), data, [](const auto&) {});
  }
  template <class T>
  void receive(T* data, std::size_t n, int peer) {
    if (is_short<T>(n)) return over_memory::receive(data, n, peer);
    move(pair(), static_cast<const T*>(nullptr), [&](const auto& read) { read(peer, data, 0, n * sizeof(T)); });
  }

 private:
  /// A system call for less takes longer than two copies.
  template <class T>
  static bool is_short(std::size_t n) {
    return n * sizeof(T) <= 4096;
  }
  static std::size_t place(int k, std::size_t block) { return static_cast<std::size_t>(k) * block; }
  template <class Each>
  void each_other(const Each& each) const {
    for (int i = 1; i < size(); ++i) each((rank() + i) % size());
  }

  /// One step: who gives says where, who takes reads there, and nobody leaves before all have read.
  template <class T, class Take>
  void move(steps& together, const T* given, const Take& take) {
    together.begin();
    if (given != nullptr) {
      const auto where = reinterpret_cast<std::uintptr_t>(given);
      std::memcpy(together.tiny(together.rank()), &where, sizeof where);
      together.raise();
    }
    take([&](int k, T* to, std::size_t from, std::size_t bytes) {
      together.wait_for(k);
      std::uintptr_t where = 0;
      std::memcpy(&where, together.tiny(k), sizeof where);
      const auto process = static_cast<pid_t>(areas_[k].process.load(std::memory_order_relaxed));
      for (std::size_t done = 0; done < bytes;) {
        const iovec here{reinterpret_cast<std::byte*>(to) + done, bytes - done};
        const iovec there{reinterpret_cast<void*>(where + from + done), bytes - done};
        const ssize_t moved = ::process_vm_readv(process, &here, 1, &there, 1, 0);
        if (moved <= 0) fail("reading another process's memory");
        done += static_cast<std::size_t>(moved);
      }
    });
    together.end();
    together.wait_for_ends();
  }

  rank_area* areas_;
};

}  // namespace bare
