// SPDX-License-Identifier: BSL-1.0
// Runs of bytes as MPI wants them: an address, an int, and a datatype. The int is where lengths over 2^31 need care.
// Used by the messages and the collectives of mpi/.
#pragma once

#include <cohort/mpi/check.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/library.hpp>
#include <cohort/transport/piece.hpp>

#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace cohort::detail {

/// A committed datatype that is freed with it; MPI keeps what pending communication needs.
class mpi_datatype {
 public:
  mpi_datatype() = default;
  /// Takes over what was made, and commits it.
  explicit mpi_datatype(MPI_Datatype made) : type_(made) { check_mpi(MPI_Type_commit(&type_), "MPI_Type_commit"); }
  mpi_datatype(mpi_datatype&& other) noexcept : type_(std::exchange(other.type_, MPI_DATATYPE_NULL)) {}
  mpi_datatype& operator=(mpi_datatype&& other) noexcept {
    std::swap(type_, other.type_);
    return *this;
  }
  ~mpi_datatype() {
    if (type_ != MPI_DATATYPE_NULL && !mpi_has_ended()) MPI_Type_free(&type_);
  }
  [[nodiscard]] MPI_Datatype get() const noexcept { return type_; }

 private:
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
};

inline constexpr std::size_t most_mpi_count = static_cast<std::size_t>(std::numeric_limits<int>::max());

/// A type of that many bytes, one after the other.
///
/// Needs: fewer than 2^61 bytes
[[nodiscard]] inline mpi_datatype contiguous_bytes(std::size_t bytes) {
  MPI_Datatype whole = MPI_DATATYPE_NULL;
  if (bytes <= most_mpi_count) {
    check_mpi(MPI_Type_contiguous(static_cast<int>(bytes), MPI_BYTE, &whole), "MPI_Type_contiguous");
    return mpi_datatype(whole);
  }
  // As many chunks of 1 GiB as fit, and what is left behind them.
  constexpr std::size_t chunk_bytes = std::size_t{1} << 30;
  MPI_Datatype chunk = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(static_cast<int>(chunk_bytes), MPI_BYTE, &chunk), "MPI_Type_contiguous");
  const mpi_datatype keep_chunk(chunk);
  MPI_Datatype chunks = MPI_DATATYPE_NULL;
  check_mpi(MPI_Type_contiguous(static_cast<int>(bytes / chunk_bytes), chunk, &chunks), "MPI_Type_contiguous");
  const mpi_datatype keep_chunks(chunks);
  const int lengths[] = {1, static_cast<int>(bytes % chunk_bytes)};
  const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(bytes / chunk_bytes * chunk_bytes)};
  const MPI_Datatype types[] = {chunks, MPI_BYTE};
  check_mpi(MPI_Type_create_struct(2, lengths, offsets, types, &whole), "MPI_Type_create_struct");
  return mpi_datatype(whole);
}

/// What is to be sent or filled, as the three arguments that MPI takes.
struct mpi_bytes {
  void* address = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_BYTE;
  mpi_datatype owned{};

  [[nodiscard]] static mpi_bytes of(void* data, std::size_t bytes) {
    mpi_bytes b;
    b.address = data;
    if (bytes <= most_mpi_count) {
      b.count = static_cast<int>(bytes);
      return b;
    }
    b.owned = contiguous_bytes(bytes);
    b.type = b.owned.get();
    b.count = 1;
    return b;
  }

  /// Several runs as one message, without a copy.
  [[nodiscard]] static mpi_bytes of_runs(const transport::piece* pieces, std::size_t n) {
    if (n == 0) return of(nullptr, 0);
    if (n == 1) return of(pieces->data, pieces->bytes);
    std::vector<int> lengths;
    std::vector<MPI_Aint> places;
    for (std::size_t i = 0; i < n; ++i) {
      MPI_Aint at = 0;
      check_mpi(MPI_Get_address(pieces[i].data, &at), "MPI_Get_address");
      constexpr std::size_t most = std::size_t{1} << 30;
      for (std::size_t done = 0; done < pieces[i].bytes;) {
        const std::size_t part = std::min(most, pieces[i].bytes - done);
        places.push_back(MPI_Aint_add(at, static_cast<MPI_Aint>(done)));
        lengths.push_back(static_cast<int>(part));
        done += part;
      }
    }
    MPI_Datatype runs = MPI_DATATYPE_NULL;
    check_mpi(
        MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, &runs),
        "MPI_Type_create_hindexed");
    mpi_bytes b;
    b.owned = mpi_datatype(runs);
    b.type = b.owned.get();
    b.address = MPI_BOTTOM;
    b.count = 1;
    return b;
  }
};

}  // namespace cohort::detail
