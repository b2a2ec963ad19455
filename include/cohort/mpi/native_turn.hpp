// SPDX-License-Identifier: BSL-1.0
// One collective that MPI itself is to carry out, and its place among the others of its communicator: MPI wants them
// started in one order on every rank. Lives in the frame of the operation; endpoint.hpp links it.
#pragma once

#include <cohort/mpi/header.hpp>
#include <cohort/mpi/request_list.hpp>
#include <cohort/transport/call.hpp>
#include <cohort/transport/request.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cohort::transport {

class mpi_endpoint;
class native_turn;

/// MPI's own collectives on one communicator.
struct native_line {
  MPI_Comm comm = MPI_COMM_NULL;
  std::vector<int> members{};
  std::vector<int> asked{};  ///< on the leader: the members in the order in which they are asked to make it; none yet
  std::size_t agreed = 0;    ///< so many of them have
  bool abandoned = false;    ///< the group failed before it was made
  native_turn* first = nullptr;
  native_turn* last = nullptr;
  std::uint64_t begun = 0;
  bool stuck = false;       ///< one was given up, and did not end within the time that is left for it
  std::uint64_t ended = 0;  ///< fewer for good, if one was given up: MPI may still carry that out
};

class native_turn {
 public:
  /// Starts it: called once, when it is its turn; leaves what MPI gives in `parts`.
  using starter = void (*)(void* self, MPI_Comm comm, request_list_of_mpi& parts);

  native_turn(mpi_endpoint& endpoint, call& c);
  native_turn(const native_turn&) = delete;
  native_turn& operator=(const native_turn&) = delete;
  ~native_turn();

  call* owner;
  native_line* line = nullptr;
  request* waiting = nullptr;  ///< set when every rank is known to have come
  starter start = nullptr;
  void* self = nullptr;
  request_list_of_mpi parts{};
  bool issued = false;
  bool first = false;  ///< of its communicator
  native_turn* previous = nullptr;
  native_turn* next = nullptr;

 private:
  mpi_endpoint* endpoint_;
};

}  // namespace cohort::transport
