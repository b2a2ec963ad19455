// SPDX-License-Identifier: BSL-1.0
// NCCL's operation for a reduction: one of those that are always there, or one made for a factor, which belongs to its
// object. Used by reductions.hpp.
#pragma once

#include <cohort/nccl/datatype.hpp>
#include <cohort/nccl/party.hpp>
#include <cohort/ops.hpp>

namespace cohort::detail {

template <ncclRedOp_t Which>
class plain_operation {
 public:
  template <class Op>
  plain_operation(nccl_party&, const char*, const Op&) noexcept {}
  [[nodiscard]] static constexpr ncclRedOp_t get() noexcept { return Which; }
};

/// The sum of what is multiplied before. NCCL lets it be destroyed as soon as the call that uses it returns.
template <class T, class Op>
class scaled_sum {
 public:
  template <class Given>
  scaled_sum(nccl_party& p, const char* operation, const Given& op) : party_(&p) {
    // In the type of the elements, as NCCL wants it.
    T factor = static_cast<T>(op.factor);
    p.check(ncclRedOpCreatePreMulSum(&made_, &factor, nccl_type_of<T>(), ncclScalarHostImmediate, p.comm()),
            "ncclRedOpCreatePreMulSum", operation);
  }
  scaled_sum(const scaled_sum&) = delete;
  scaled_sum& operator=(const scaled_sum&) = delete;
  ~scaled_sum() {
    // After a failure there is no communicator any more, and with it went the operation.
    if (party_->comm() != nullptr) static_cast<void>(ncclRedOpDestroy(made_, party_->comm()));
  }
  [[nodiscard]] ncclRedOp_t get() const noexcept { return made_; }

 private:
  nccl_party* party_;
  ncclRedOp_t made_ = ncclNumOps;
};

}  // namespace cohort::detail
