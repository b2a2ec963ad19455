// SPDX-License-Identifier: BSL-1.0
// A functor as an MPI_Op: MPI calls back with whole arrays, and the array kernels of detail/fold.hpp combine them. MPI
// passes nothing of the caller's to the callback but the datatype, so the functor and its state hang on that.
#pragma once

#include <cohort/detail/reducer.hpp>
#include <cohort/element.hpp>
#include <cohort/mpi/check.hpp>
#include <cohort/mpi/datatype.hpp>
#include <cohort/mpi/header.hpp>
#include <cohort/mpi/library.hpp>
#include <cohort/reduction.hpp>

#include <complex>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace cohort::transport {

/// An operation and a datatype of MPI's own that mean exactly what functor and element type mean here; nulls if there
/// are none. Floats under min and max are not among them: MPI does not say what becomes of a NaN.
struct mpi_builtin {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Op op = MPI_OP_NULL;
  [[nodiscard]] explicit operator bool() const noexcept { return op != MPI_OP_NULL; }
};
[[nodiscard]] inline mpi_builtin builtin_for(const detail::reducer& r) noexcept {
  const std::uint16_t t = r.element_type;
  const bool real = t == element_type_id<float> || t == element_type_id<double>;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  if (t == element_type_id<float>) type = MPI_FLOAT;
  if (t == element_type_id<double>) type = MPI_DOUBLE;
  if (t == element_type_id<std::int8_t>) type = MPI_INT8_T;
  if (t == element_type_id<std::int16_t>) type = MPI_INT16_T;
  if (t == element_type_id<std::int32_t>) type = MPI_INT32_T;
  if (t == element_type_id<std::int64_t>) type = MPI_INT64_T;
  if (t == element_type_id<std::uint8_t>) type = MPI_UINT8_T;
  if (t == element_type_id<std::uint16_t>) type = MPI_UINT16_T;
  if (t == element_type_id<std::uint32_t>) type = MPI_UINT32_T;
  if (t == element_type_id<std::uint64_t>) type = MPI_UINT64_T;
  if (type == MPI_DATATYPE_NULL) return {};
  MPI_Op op = MPI_OP_NULL;
  if (r.functor == functor_id<sum>) op = MPI_SUM;
  if (r.functor == functor_id<product>) op = MPI_PROD;
  if (r.functor == functor_id<average>) op = MPI_SUM;  // the division comes after it
  if (!real && r.functor == functor_id<min>) op = MPI_MIN;
  if (!real && r.functor == functor_id<max>) op = MPI_MAX;
  if (!real && r.functor == functor_id<bit_and>) op = MPI_BAND;
  if (!real && r.functor == functor_id<bit_or>) op = MPI_BOR;
  if (!real && r.functor == functor_id<bit_xor>) op = MPI_BXOR;
  return {type, op};
}

/// One reduction that MPI carries out: what its callback finds at the datatype. Used again for the next one.
struct native_reduction {
  detail::reducer combine{};
  detail::mpi_datatype type{};
  std::exception_ptr thrown{};  ///< by the functor: an exception may not pass through MPI
};

/// The reductions of one world, in flight or kept for the next.
class native_reductions {
 public:
  native_reductions() = default;
  native_reductions(const native_reductions&) = delete;
  native_reductions& operator=(const native_reductions&) = delete;
  ~native_reductions() {
    for (MPI_Op& op : ops_) {
      if (op != MPI_OP_NULL && !detail::mpi_has_ended()) MPI_Op_free(&op);
    }
    if (detail::mpi_has_ended()) {
      for (auto& r : kept_) static_cast<void>(r.release());
    }
  }

  /// Needs: what `r` refers to stays until it is given back
  [[nodiscard]] std::unique_ptr<native_reduction> take(const detail::reducer& r) {
    std::unique_ptr<native_reduction> one;
    for (auto& kept : kept_) {
      if (kept->combine.element_bytes != r.element_bytes) continue;
      one = std::move(kept);
      kept = std::move(kept_.back());
      kept_.pop_back();
      break;
    }
    if (!one) {
      one = std::make_unique<native_reduction>();
      one->type = detail::contiguous_bytes(r.element_bytes);
      detail::check_mpi(MPI_Type_set_attr(one->type.get(), key(), one.get()), "MPI_Type_set_attr");
    }
    one->combine = r;
    one->thrown = nullptr;
    return one;
  }
  void give_back(std::unique_ptr<native_reduction> one) {
    constexpr std::size_t most = 64;
    if (kept_.size() < most) kept_.push_back(std::move(one));
  }
  /// MPI may still call back: the functor is gone, and nothing is combined any more.
  static void disarm(std::unique_ptr<native_reduction> one) noexcept {
    one->combine.fold = nullptr;
    static_cast<void>(one.release());
  }

  [[nodiscard]] MPI_Op op(bool commutative) {
    MPI_Op& made = ops_[commutative ? 1 : 0];
    if (made == MPI_OP_NULL) {
      static_cast<void>(key());
      detail::check_mpi(MPI_Op_create(&native_reductions::call_back, commutative ? 1 : 0, &made), "MPI_Op_create");
    }
    return made;
  }

 private:
  // The callback has no world to ask: one key for the process, which stays until MPI ends.
  [[nodiscard]] static int& shared_key() noexcept {
    static int key = MPI_KEYVAL_INVALID;
    return key;
  }
  [[nodiscard]] int key() {
    if (shared_key() == MPI_KEYVAL_INVALID) {
      detail::check_mpi(MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &shared_key(), nullptr),
                        "MPI_Type_create_keyval");
    }
    return shared_key();
  }

  /// MPI's contract: inout[i] = in[i] op inout[i], where in comes from the lower ranks.
  static void call_back(void* in, void* inout, int* length, MPI_Datatype* type) {
    void* found = nullptr;
    int known = 0;
    if (MPI_Type_get_attr(*type, shared_key(), static_cast<void*>(&found), &known) != MPI_SUCCESS || known == 0) return;
    native_reduction& r = *static_cast<native_reduction*>(found);
    if (r.combine.fold == nullptr || r.thrown || *length <= 0) return;
    try {
      r.combine.fold(r.combine.op, static_cast<std::byte*>(inout), static_cast<const std::byte*>(in),
                     static_cast<std::size_t>(*length), collective::side::left);
    } catch (...) {
      r.thrown = std::current_exception();
    }
  }

  MPI_Op ops_[2] = {MPI_OP_NULL, MPI_OP_NULL};
  std::vector<std::unique_ptr<native_reduction>> kept_{};
};

}  // namespace cohort::transport
