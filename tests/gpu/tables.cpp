// SPDX-License-Identifier: BSL-1.0
// The table from functors and element types to NCCL's operations, row by row; and what the buffers of the GPU side are.
// All of it is settled by the compiler: that this file compiles is the test.
#include <cohort/backend/nccl.hpp>

#include <cohort/awaitable.hpp>
#include <cohort/mesh.hpp>

#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

namespace {

using namespace cohort;
using cohort::detail::nccl_reduction_of;

template <class Op, class T>
consteval bool becomes(ncclRedOp_t op, ncclDataType_t type, std::size_t scalars = 1) {
  const auto r = nccl_reduction_of<Op, T>();
  return nccl_reduces<Op, T> && r.native && r.op == op && r.type == type && r.scalars == scalars && !r.scaled;
}
template <class Op, class T>
consteval bool is_folded() {
  return !nccl_reduces<Op, T> && nccl_folds<Op, T>;
}
template <class Op, class T>
consteval bool is_scaled() {
  return nccl_reduces<Op, T> && nccl_reduction_of<Op, T>().scaled;
}

struct largest_magnitude {
  COHORT_HOST_DEVICE float operator()(float a, float b) const { return a * a < b * b ? b : a; }
};
struct vec3 {
  float x, y, z;
};
struct add_vec3 {
  COHORT_HOST_DEVICE vec3 operator()(const vec3& a, const vec3& b) const { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
};

// sum and product of everything that NCCL computes in; std::plus<> means sum.
static_assert(becomes<sum, std::int8_t>(ncclSum, ncclInt8) && becomes<sum, std::uint8_t>(ncclSum, ncclUint8));
static_assert(becomes<sum, int>(ncclSum, ncclInt32) && becomes<sum, unsigned>(ncclSum, ncclUint32));
static_assert(becomes<sum, std::int64_t>(ncclSum, ncclInt64) && becomes<sum, std::uint64_t>(ncclSum, ncclUint64));
static_assert(becomes<sum, long long>(ncclSum, ncclInt64) && becomes<sum, unsigned long>(ncclSum, ncclUint64));
static_assert(becomes<sum, cohort::half>(ncclSum, ncclFloat16) && becomes<sum, bfloat16>(ncclSum, ncclBfloat16));
static_assert(becomes<sum, float>(ncclSum, ncclFloat32) && becomes<sum, double>(ncclSum, ncclFloat64));
static_assert(becomes<std::plus<>, float>(ncclSum, ncclFloat32) &&
              becomes<std::plus<float>, float>(ncclSum, ncclFloat32));
static_assert(is_folded<std::plus<double>, float>());  // it computes in double
static_assert(becomes<product, float>(ncclProd, ncclFloat32) && becomes<std::multiplies<>, int>(ncclProd, ncclInt32));
static_assert(becomes<cohort::min, double>(ncclMin, ncclFloat64) &&
              becomes<cohort::max, std::uint32_t>(ncclMax, ncclUint32));

// NCCL has no 16-bit integers, no 128-bit ones, and no long double.
static_assert(is_folded<sum, std::int16_t>() && is_folded<cohort::max, std::uint16_t>());
static_assert(is_folded<sum, long double>());

// bool is one byte that is 0 or 1; what NCCL calls a sum would wrap.
static_assert(becomes<sum, bool>(ncclMax, ncclUint8) && becomes<logical_or, bool>(ncclMax, ncclUint8));
static_assert(becomes<std::logical_or<>, bool>(ncclMax, ncclUint8) && becomes<bit_or, bool>(ncclMax, ncclUint8));
static_assert(becomes<product, bool>(ncclMin, ncclUint8) && becomes<logical_and, bool>(ncclMin, ncclUint8));
static_assert(is_folded<bit_xor, bool>());

// Bitwise and logical operations are never mapped to anything arithmetic.
static_assert(is_folded<bit_and, int>() && is_folded<bit_or, unsigned>() && is_folded<bit_xor, std::uint64_t>());
static_assert(is_folded<std::bit_xor<>, std::uint8_t>() && is_folded<logical_and, int>() &&
              is_folded<logical_or, float>());

// An average in the type of the elements is right where that type is wide.
static_assert(becomes<average, float>(ncclAvg, ncclFloat32) && becomes<average, double>(ncclAvg, ncclFloat64));
static_assert(is_folded<average, bfloat16>() && is_folded<average, cohort::half>());
static_assert(is_scaled<premultiplied_sum<float>, float>() && is_scaled<premultiplied_sum<double>, double>());
static_assert(is_folded<premultiplied_sum<float>, bfloat16>() && is_folded<premultiplied_sum<int>, int>());

// Complex numbers add by components, and multiply otherwise.
static_assert(becomes<sum, std::complex<float>>(ncclSum, ncclFloat32, 2));
static_assert(becomes<sum, std::complex<double>>(ncclSum, ncclFloat64, 2));
static_assert(is_folded<product, std::complex<float>>());

// Functors and types of the caller's own.
static_assert(is_folded<largest_magnitude, float>() && is_folded<add_vec3, vec3>());

// folded{} asks for the fold where NCCL would do, and accumulates as the functor does.
static_assert(is_folded<folded<sum>, float>() && is_folded<folded<cohort::max>, float>());
static_assert(std::is_same_v<accumulator_t<folded<sum>, bfloat16>, float>);
static_assert(has_finish<folded<average>, bfloat16> && !has_finish<folded<sum>, float> &&
              !has_prepare<folded<sum>, float>);
static_assert(has_prepare<folded<premultiplied_sum<float>>, cohort::half>);

// 8-bit floats are storage: neither way.
static_assert(!reduction<sum, float8_e4m3> && !nccl_reduces<sum, float8_e4m3> && !nccl_folds<sum, float8_e4m3>);

// A device buffer is no range of the host, and a range of the host is no device buffer.
static_assert(device_range<device_span<float>> && device_range<device_buffer<int>> &&
              device_range<nccl_window<cohort::half>>);
static_assert(!device_range<std::vector<float>> && !device_range<float*> && !device_range<pinned_buffer<float>>);
static_assert(!range_like<device_span<float>> && !range_like<device_buffer<float>> && range_like<pinned_buffer<float>>);
static_assert(std::is_convertible_v<device_span<float>, device_span<const float>>);
static_assert(!std::is_convertible_v<device_span<const float>, device_span<float>>);
static_assert(std::is_trivially_copyable_v<device_span<float>>);
static_assert(device_list<std::vector<device_span<float>>> && !device_list<std::vector<float>>);

// Awaiting what stands on a stream costs nothing: it never suspends.
static_assert(stream_ordered::await_ready() && awaitable<stream_ordered> && awaitable<host_wait>);
static_assert(!std::is_copy_constructible_v<communicator<nccl>> && std::is_move_constructible_v<communicator<nccl>>);

// The calls that make groups are awaited as on the CPU, and a mesh is made of them.
static_assert(awaitable<made_group<communicator<nccl>>>);
static_assert(std::is_same_v<await_result_t<made_group<communicator<nccl>>>, communicator<nccl>>);
static_assert(std::is_same_v<decltype(std::declval<communicator<nccl>&>().subgroup(std::vector<int>{1})),
                             made_group<communicator<nccl>>>);
[[maybe_unused]] task<int> squares(communicator<nccl> world) {
  auto grid = co_await make_mesh(world, axis{"data", 2}, axis{"tensor", 2});
  auto row = co_await grid.submesh("tensor");
  device_buffer<float> grad(3);
  co_await grid.along("data").all_reduce(grad, average{});
  co_return row.whole().world_rank_of(0);
}

// What the fold gives a kernel is copied there byte by byte.
static_assert(std::is_trivially_copyable_v<fold_sources<vec3>>);

}  // namespace

int main() {}
