// SPDX-License-Identifier: BSL-1.0
// The function templates that depend on a transport alone, not on element types or functors: a program that defines
// COHORT_SEPARATE_COMPILATION compiles them in the one source that includes src.hpp, for the backends of the core. Its other
// sources see no bodies, so that they need no `extern template`.
#pragma once

#include <cohort/backend/bodies.hpp>
#include <cohort/collective/coalesced.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cohort::detail {

// The parameters of the functions below, so that each stands on few lines.
template <class Transport>
using channel_ref = const transport::channel<Transport>&;
using layouts_ref = const collective::layouts&;
using layout_ref = const collective::layout&;
using reducer_ref = const reducer&;
using offset_list = collective::detail::short_vector<std::size_t>;

}  // namespace cohort::detail

/// Inside namespace cohort. How: `template`.
#define COHORT_TEMPLATES_OF(How, Transport)                                                                            \
  How task<> collective::all_reduce_by(cohort::detail::channel_ref<Transport>, collective::algorithm,                  \
                                       collective::whole_vector&, cohort::detail::reducer_ref, bool*);                 \
  How task<> collective::all_reduce_by(cohort::detail::channel_ref<Transport>, collective::algorithm,                  \
                                       collective::joined_vector&, cohort::detail::reducer_ref, bool*);                \
  How task<> collective::reduce_by(cohort::detail::channel_ref<Transport>, collective::algorithm, int,                 \
                                   const collective::whole_vector&, cohort::detail::reducer_ref, bool*);               \
  How task<> collective::reduce_in_copy(cohort::detail::channel_ref<Transport>, const std::byte*, std::byte*,          \
                                        std::size_t, collective::algorithm, cohort::detail::reducer_ref, bool*);       \
  How task<> collective::reduce_scatter_by(cohort::detail::channel_ref<Transport>, collective::algorithm,              \
                                           cohort::detail::layouts_ref, cohort::detail::offset_list,                   \
                                           cohort::detail::reducer_ref);                                               \
  How task<> collective::scan_by(cohort::detail::channel_ref<Transport>, collective::algorithm,                        \
                                 collective::whole_vector&, cohort::detail::reducer_ref);                              \
  How task<> collective::exclusive_scan_by_messages(cohort::detail::channel_ref<Transport>, collective::algorithm,     \
                                                    std::byte*, std::byte*, std::size_t, cohort::detail::reducer_ref); \
  How task<> collective::broadcast_by(cohort::detail::channel_ref<Transport>, collective::algorithm, int, std::byte*,  \
                                      std::size_t, std::size_t);                                                       \
  How task<> collective::all_gather_by(cohort::detail::channel_ref<Transport>, collective::algorithm,                  \
                                       cohort::detail::layouts_ref);                                                   \
  How task<> collective::gather_by(cohort::detail::channel_ref<Transport>, collective::algorithm, int,                 \
                                   cohort::detail::layouts_ref, std::size_t);                                          \
  How task<> collective::scatter_by(cohort::detail::channel_ref<Transport>, collective::algorithm, int,                \
                                    cohort::detail::layouts_ref, std::size_t);                                         \
  How task<> collective::all_to_all_by(cohort::detail::channel_ref<Transport>, collective::algorithm,                  \
                                       cohort::detail::layouts_ref, std::size_t);                                      \
  How operation<> collective::barrier<Transport>(cohort::detail::ticket);                                              \
  How operation<> collective::broadcast<Transport>(cohort::detail::ticket, std::byte*, std::size_t, std::size_t);      \
  How operation<> collective::all_gather<Transport>(cohort::detail::ticket, cohort::detail::layout_ref,                \
                                                    cohort::detail::layout_ref, collective::block_table&);             \
  How operation<> collective::gather<Transport>(cohort::detail::ticket, cohort::detail::layout_ref,                    \
                                                cohort::detail::layout_ref, std::size_t, collective::block_table&);    \
  How operation<> collective::scatter<Transport>(cohort::detail::ticket, cohort::detail::layout_ref,                   \
                                                 cohort::detail::layout_ref, std::size_t, collective::block_table&);   \
  How operation<> collective::all_to_all<Transport>(cohort::detail::ticket, cohort::detail::layout_ref,                \
                                                    cohort::detail::layout_ref, std::size_t,                           \
                                                    collective::block_table&);                                         \
  How operation<> messages::send<Transport, void, messages::borrowed_bytes>(                                           \
      cohort::detail::ticket&&, const messages::end&, messages::borrowed_bytes);                                       \
  How operation<> messages::send<Transport, void, messages::owned_bytes>(cohort::detail::ticket&&,                     \
                                                                         const messages::end&, messages::owned_bytes); \
  How operation<received> messages::send<Transport, received, messages::borrowed_bytes>(                               \
      cohort::detail::ticket&&, const messages::end&, messages::borrowed_bytes);                                       \
  How operation<received> messages::receive<Transport>(cohort::detail::ticket&&, const messages::end&);                \
  How operation<received> messages::look<Transport, received>(cohort::detail::ticket, messages::end, bool);            \
  How operation<std::optional<received>> messages::look<Transport, std::optional<received>>(cohort::detail::ticket,    \
                                                                                            messages::end, bool);      \
  How task<received> messages::receive_within<Transport>(call&, messages::end);                                        \
  How operation<received> messages::exchange<Transport>(cohort::detail::ticket, messages::end, messages::end,          \
                                                        std::uint16_t);                                                \
  How task<> collective::compare_lists<Transport>(call&, const group&, std::vector<std::int32_t>);                     \
  How task<std::shared_ptr<group>> collective::split_by<Transport>(call&, int, int, std::string);                      \
  How task<std::shared_ptr<group>> collective::copy_of<Transport>(call&, std::string);

/// What only ranks that share memory have.
#define COHORT_WINDOW_TEMPLATES_OF(How, Transport)                                                                    \
  How task<collective::reduced> collective::reduce_in_window(transport::channel<Transport>, collective::layout,       \
                                                             collective::layout, std::size_t,                         \
                                                             cohort::detail::reducer_ref, int);                       \
  How task<bool> collective::scan_shared(cohort::detail::channel_ref<Transport>, std::byte*, std::byte*, std::size_t, \
                                         cohort::detail::reducer_ref);                                                \
  How task<> collective::exclusive_scan_shared(cohort::detail::channel_ref<Transport>, std::byte*, std::byte*,        \
                                               std::size_t, cohort::detail::reducer_ref);
