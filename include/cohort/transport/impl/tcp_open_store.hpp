// SPDX-License-Identifier: BSL-1.0
// Body of transport/tcp_open_store.hpp.
#pragma once

#include <cohort/detail/config.hpp>
#include <cohort/store/file_store.hpp>
#include <cohort/store/memory_store.hpp>
#include <cohort/transport/hello.hpp>
#include <cohort/transport/tcp_address.hpp>
#include <cohort/transport/tcp_open_store.hpp>
#include <cohort/transport/tcp_store.hpp>

#include <memory>
#include <utility>

namespace cohort {

COHORT_DECL opened_store open_store(const launch_info& info, deadline until) {
  if (!info.file_path.empty()) {
    // Of no use to anybody once the ranks know each other, so the last of them to go takes it along.
    return {nullptr, any_store(file_store(info.file_path, transport::job_id(info.run_id), until, store_limits{},
                                          file_lifetime::temporary))};
  }
  if (info.world_size == 1) return {nullptr, any_store(memory_store())};

  const endpoint where{info.master_addr, info.master_port};
  // Judged by every rank, so that all of them say what is wrong and none waits for a rank 0 that has refused.
  for (const transport::tcp_endpoint& at : transport::resolve(where.host, where.port, until)) {
    transport::require_safe_listener(transport::plain(at), !info.secret.empty(), info.insecure_network);
  }
  std::unique_ptr<tcp_store_server> server;
  if (info.rank == 0) {
    tcp_store_server_options options;
    options.where = where;
    options.run_id = info.run_id;
    options.epoch = info.epoch;
    options.world_size = info.world_size;
    options.secret = info.secret;
    options.tls = info.tls;
    options.insecure_network = info.insecure_network;
    server = std::make_unique<tcp_store_server>(options);
  }
  tcp_store_options options;
  options.where = where;
  options.run_id = info.run_id;
  options.epoch = info.epoch;
  options.world_size = info.world_size;
  options.rank = info.rank;
  options.secret = info.secret;
  options.tls = info.tls;
  options.alive_until = until;  // a busy host may leave rank 0 without a turn while the ranks meet
  tcp_store client(options, until);
  return {std::move(server), any_store(std::move(client))};
}

}  // namespace cohort
