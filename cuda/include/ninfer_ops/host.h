// What every exported entry checks before it launches anything.
// Errors cross as the classes of ninfer.contract, registered by ninfer.ops.native.
#pragma once

#include <cuda_runtime_api.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/optional.h>

#include <cstdint>
#include <initializer_list>

#include "ninfer_ops/plan.cuh"

namespace ninfer_ops {

using tvm::ffi::Optional;
using tvm::ffi::TensorView;

inline constexpr int64_t kRecordWords = 8;

inline bool is_type(const TensorView& tensor, DLDataTypeCode code, int bits) {
  DLDataType type = tensor.dtype();
  return type.code == code && type.bits == bits && type.lanes == 1;
}

// Any axis of -1 is free. The last axis must be contiguous.
inline void check(const char* op, const char* name, const TensorView& tensor, DLDataTypeCode code,
                  int bits, std::initializer_list<int64_t> shape) {
  if (tensor.ndim() != static_cast<int32_t>(shape.size())) {
    TVM_FFI_THROW(RowMismatch) << op << " " << name << ": rank " << tensor.ndim() << ", not "
                               << shape.size();
  }
  if (!is_type(tensor, code, bits)) {
    TVM_FFI_THROW(RowMismatch) << op << " " << name << ": wrong dtype";
  }
  int axis = 0;
  for (int64_t expected : shape) {
    if (expected >= 0 && tensor.size(axis) != expected) {
      TVM_FFI_THROW(RowMismatch) << op << " " << name << ": axis " << axis << " is "
                                 << tensor.size(axis) << ", not " << expected;
    }
    ++axis;
  }
  if (axis > 0 && tensor.size(-1) > 1 && tensor.stride(-1) != 1) {
    TVM_FFI_THROW(RowMismatch) << op << " " << name << ": the last axis is not contiguous";
  }
}

inline void check_logits(const char* op, const TensorView& logits, int rank) {
  if (logits.ndim() != rank) {
    TVM_FFI_THROW(RowMismatch) << op << " logits: rank " << logits.ndim() << ", not " << rank;
  }
  if (!is_type(logits, kDLBfloat, 16) && !is_type(logits, kDLFloat, 16) &&
      !is_type(logits, kDLFloat, 32)) {
    TVM_FFI_THROW(RowMismatch) << op << " logits: not bfloat16, float16 or float32";
  }
  int64_t domain = logits.size(-1);
  if (domain < 1 || domain > kMaxDomain || (domain > 1 && logits.stride(-1) != 1)) {
    TVM_FFI_THROW(RowMismatch) << op << " logits: token domain of " << domain
                               << " with stride " << logits.stride(-1);
  }
}

inline void check_device(const char* op, const TensorView& logits,
                         std::initializer_list<const TensorView*> others) {
  if (logits.device().device_type != kDLCUDA) {
    TVM_FFI_THROW(RowMismatch) << op << " logits: not on a CUDA device";
  }
  for (const TensorView* other : others) {
    DLDevice device = other->device();
    if (device.device_type != kDLCUDA || device.device_id != logits.device().device_id) {
      TVM_FFI_THROW(RowMismatch) << op << ": an argument is on another device than the logits";
    }
  }
}

inline int64_t mask_words(int64_t domain) { return (domain + 31) / 32; }

template <typename T>
T* data(const TensorView& tensor) {
  return reinterpret_cast<T*>(static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset());
}

inline cudaStream_t stream_of(const TensorView& tensor) {
  DLDevice device = tensor.device();
  return static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
}

inline void check_launch(const char* op) {
  cudaError_t code = cudaGetLastError();
  if (code != cudaSuccess) {
    TVM_FFI_THROW(DeviceFailure) << op << ": " << cudaGetErrorString(code);
  }
}

// Few columns: one wave of blocks, as many as fit at once. Many: blocks stay small enough that their
// ends overlap, and large enough that the selection after them does not weigh. Measured on an H200.
inline int64_t splits_for(int64_t columns, int64_t multiprocessors) {
  int64_t wave = 4 * multiprocessors / columns;
  int64_t waves = 16 * multiprocessors / columns;
  waves = waves > 32 ? 32 : waves;
  return wave > waves ? wave : waves;
}

// `splits` 0 chooses.
inline Plan plan_for(const TensorView& logits, int64_t columns, int64_t splits) {
  int multiprocessors = 1;
  cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount,
                         logits.device().device_id);
  int64_t tiles = (logits.size(-1) + kVector * kThreads - 1) / (kVector * kThreads);
  if (splits <= 0) splits = splits_for(columns, multiprocessors);
  int64_t least = (tiles + kMaxVectorsPerThread - 1) / kMaxVectorsPerThread;
  splits = splits > kMaxSplits ? kMaxSplits : splits;
  splits = splits > tiles ? tiles : splits;
  splits = splits < least ? least : splits;
  return {static_cast<int>(splits), static_cast<int>((tiles + splits - 1) / splits)};
}

inline int64_t workspace_bytes(int64_t columns) {
  return static_cast<int64_t>(sizeof(Workspace)) + columns * sizeof(ColumnScratch);
}

inline void check_workspace(const char* op, const TensorView& workspace, int64_t columns) {
  check(op, "workspace", workspace, kDLUInt, 8, {-1});
  if (columns > kMaxColumns) {
    TVM_FFI_THROW(RowMismatch) << op << ": " << columns << " columns, at most " << kMaxColumns;
  }
  if (workspace.size(0) < workspace_bytes(columns)) {
    TVM_FFI_THROW(RowMismatch) << op << " workspace: " << workspace.size(0) << " bytes, needs "
                               << workspace_bytes(columns);
  }
}

inline Workspace* counters_of(const TensorView& workspace) { return data<Workspace>(workspace); }

inline ColumnScratch* scratch_of(const TensorView& workspace) {
  return reinterpret_cast<ColumnScratch*>(counters_of(workspace) + 1);
}

// Calls `launch` with a null pointer of the logits' element type.
template <typename Launch>
void with_element_type(const TensorView& logits, Launch launch) {
  if (is_type(logits, kDLBfloat, 16)) return launch(static_cast<__nv_bfloat16*>(nullptr));
  if (is_type(logits, kDLFloat, 16)) return launch(static_cast<__half*>(nullptr));
  launch(static_cast<float*>(nullptr));
}

}  // namespace ninfer_ops
