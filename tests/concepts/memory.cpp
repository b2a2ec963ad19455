// SPDX-License-Identifier: BSL-1.0
#include <cohort/communicator/blocks.hpp>
#include <cohort/memory.hpp>

#include <array>
#include <list>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace cohort;

static_assert(contiguous_buffer<std::vector<float>> && contiguous_buffer<std::array<int, 3>> && contiguous_buffer<int[4]>);
static_assert(contiguous_buffer<std::span<const double>> && contiguous_buffer<const std::vector<char>>);
static_assert(!contiguous_buffer<std::list<int>> && !contiguous_buffer<std::vector<bool>> && !contiguous_buffer<int>);
static_assert(!contiguous_buffer<std::vector<std::string>> && !contiguous_buffer<std::vector<int*>>);

static_assert(buffer_list<std::vector<std::vector<int>>> && buffer_list<std::array<std::span<float>, 2>> && buffer_list<std::list<std::vector<int>>>);
static_assert(!buffer_list<std::vector<int>> && !buffer_list<std::vector<std::list<int>>> && !buffer_list<int>);

static_assert(single_value<float> && single_value<std::pair<int, int>>);
static_assert(!single_value<std::vector<float>> && !single_value<timeout> && !single_value<int*>);

static_assert(count_list<std::vector<int>> && count_list<std::array<std::size_t, 3>>);
static_assert(!count_list<std::vector<double>> && !count_list<std::vector<std::vector<int>>> && !count_list<int>);

static_assert(detail::outlives_call<std::vector<int>&> && detail::outlives_call<std::span<int>> && !detail::outlives_call<std::vector<int>>);

// Roles do not turn into each other, nor into integers.
static_assert(!std::is_convertible_v<int, root> && !std::is_convertible_v<root, int> && !std::is_convertible_v<to, from>);

}  // namespace
