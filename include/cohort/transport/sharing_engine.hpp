// SPDX-License-Identifier: BSL-1.0
// An engine whose rank may share memory with others of its host: what windows, registered buffers and calls without a frame need
// of a transport, whatever carries its messages. cpu_transport and the MPI endpoint derive from it; the bodies are in impl/.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/transport/engine.hpp>
#include <cohort/transport/shm/flag_wait.hpp>

#include <concepts>
#include <memory>
#include <string>
#include <vector>

namespace cohort::transport {

class neighbours;
class regions;
struct host_address;

class sharing_engine : public engine {
 public:
  sharing_engine(int rank, int size) noexcept;
  COHORT_DECL ~sharing_engine() override;

  /// Whether no message is here that nobody has asked for.
  [[nodiscard]] virtual bool nothing_early() const noexcept = 0;
  /// Whether no message of another call has come early under the number of this one.
  [[nodiscard]] virtual bool nothing_against(const group& g, std::int64_t sequence, const signature& s) = 0;

  /// Sends a short message that can leave at once; its bytes may be reused. False: nothing was sent.
  [[nodiscard]] virtual bool send_now(int peer, const envelope& header, const piece& payload) = 0;
  /// Sees to it that what was sent at once leaves also if this rank does nothing more for a while: who waits for
  /// something next need not.
  virtual void push_out() {}
  /// Receives a short message that is here, or comes within a moment, where nobody has asked for one before: one with
  /// this tag and type that has room, or of this very call of a collective; `came` bytes. False: nothing was received, and
  /// what is here is left there. (No std::optional: g++ 12 returns one by way of the stack, which a stream of short messages
  /// feels; benchmarks/NOTES.md.)
  [[nodiscard]] virtual bool receive_now(int peer, const envelope& expected, const piece& into,
                                         std::uint64_t& came) = 0;

  /// Fills `into` with what stands at `from` in the memory of another rank of this host.
  ///
  /// Result: false: the kernel does not let this process, the user does not want it, or nothing is there
  [[nodiscard]] virtual bool read_memory_of(int peer, const piece& from, const piece& into) = 0;

  /// The ranks of this host; null when this rank shares memory with nobody.
  [[nodiscard]] neighbours* host_ranks() const noexcept { return neighbours_.get(); }
  /// The registered buffers; null where `host_ranks` is.
  [[nodiscard]] regions* shared_buffers() const noexcept { return regions_.get(); }
  [[nodiscard]] flag_waits& waits() noexcept { return waits_; }

 protected:
  /// Opens what others of this host may write to; nothing where that is not wanted.
  ///
  /// Result: where this rank is to be found, which every other rank must be told
  /// Errors: io_error, out_of_memory
  [[nodiscard]] host_address open_memory(const std::string& host_id, bool wanted);
  /// What the ranks have said `open_memory` gave them; of one that said nothing that can be read, nowhere.
  [[nodiscard]] static std::vector<host_address> read_addresses(const std::vector<std::string>& said);
  /// Notes whether the ranks of the world share fewer cores: by every rank, as all choose their algorithms by it.
  void look_at_cores(const std::vector<host_address>& all);
  /// Waits, from now on, as suits the ranks and the cores of this machine.
  void wait_beside(const std::vector<host_address>& all);
  /// From now on this rank sees when those on its cores work, with whom it has agreed to share memory.
  void watch_fellows();
  /// A group is told whether the ranks of the world share fewer cores; where all its members share memory, it gets its window.
  void place(group& g) const;
  /// From here on others ring when they write what this rank waits for; until `neighbours::wake_up`.
  void fall_asleep() noexcept;

  std::unique_ptr<neighbours> neighbours_{};
  std::unique_ptr<regions> regions_{};
  flag_waits waits_{};

 private:
  bool crowded_ = false;
  /// Of each rank, whether it takes turns with this one on a core; empty where that is not known.
  std::vector<bool> on_core_{};
  int cores_ = 0;  ///< on which they do; 0 where that is not known
};

/// A transport whose ranks may share memory, and which carries a short message where it is asked to, without a request.
template <class Transport>
concept sharing_transport = std::derived_from<Transport, sharing_engine>;

}  // namespace cohort::transport

#ifndef COHORT_SEPARATE_COMPILATION
#include <cohort/transport/impl/sharing_engine.hpp>
#endif
