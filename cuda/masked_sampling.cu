// Implements: ninfer.ops.masked_sampling, ninfer.ops.masked_argmax.
// Match: ninfer.ops.reference.masked_sampling, token for token.
// Assumes: records, masks and counts obey the contract; padding columns of the logits are not read.
#include <tvm/ffi/function.h>

#include "ninfer_ops/arrive.cuh"
#include "ninfer_ops/counter_rng.cuh"
#include "ninfer_ops/distribution.cuh"
#include "ninfer_ops/host.h"
#include "ninfer_ops/scan.cuh"
#include "ninfer_ops/select.cuh"

namespace ninfer_ops {
namespace {

struct Arguments {
  const void* logits;
  int64_t logits_stride;
  const SamplingRecord* records;  // null: the best of every row
  const uint8_t* masks;
  int64_t mask_stride;  // bytes
  const int32_t* counts;
  int64_t counts_stride;
  int64_t* tokens;
  int32_t* status;
  Workspace* counters;
  ColumnScratch* scratch;
  Plan plan;
  int domain;
};

__device__ SamplingRecord record_of(const Arguments& in, int row) {
  if (in.records) return in.records[row];
  SamplingRecord greedy{};
  greedy.limit = 1;
  greedy.flags = kConstrained;
  return greedy;
}

template <typename T>
__device__ Column<T> column_of(const Arguments& in, int row, const SamplingRecord& record) {
  Column<T> column{};
  column.logits = static_cast<const T*>(in.logits) + row * in.logits_stride;
  column.domain = in.domain;
  column.aligned = reinterpret_cast<uintptr_t>(column.logits) % sizeof(uint4) == 0;
  if (in.masks && record.flags & kConstrained) column.mask = in.masks + row * in.mask_stride;
  if (in.counts && record.flags & kPenalised) {
    column.counts = in.counts + record.counts_row * in.counts_stride;
    column.presence = record.presence;
    column.frequency = record.frequency;
  }
  return column;
}

__device__ int choose(double* weights, const uint64_t* top, int found,
                      const SamplingRecord& record) {
  if (record.limit == 1) return 0;
  weigh(weights, top, found, record);
  return draw(weights, uniform(record.seed, record.position, record.purpose));
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kResidentBlocks<T>) sample(Arguments in) {
  int row = blockIdx.y;
  uint32_t* maxima = in.scratch[row].maxima;
  SamplingRecord record = record_of(in, row);
  Column<T> column = column_of<T>(in, row, record);
  scan(column, in.plan, blockIdx.x, maxima);
  if (!arrive_last(in.counters->arrivals + row, in.plan.splits)) return;

  __shared__ Selection selection;
  __shared__ double weights[kTopKLimit];
  RowStatus status;
  int found = select(selection, column, in.plan, maxima, record.limit, &status);
  if (threadIdx.x >= 32) return;
  int64_t token = kPlaceholderToken;
  if (found) token = candidate_token(selection.top[choose(weights, selection.top, found, record)]);
  if (threadIdx.x == 0) {
    in.tokens[row] = token;
    in.status[row] = status;
  }
}

void launch(const char* op, const TensorView& logits, Arguments in, int64_t splits) {
  int64_t rows = logits.size(0);
  if (rows == 0) return;
  in.logits = data<void>(logits);
  in.logits_stride = logits.stride(0);
  in.domain = static_cast<int>(logits.size(1));
  in.plan = plan_for(logits, rows, splits);
  dim3 grid(in.plan.splits, static_cast<unsigned>(rows));
  cudaStream_t stream = stream_of(logits);
  with_element_type(logits, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    sample<T><<<grid, kThreads, 0, stream>>>(in);
  });
  check_launch(op);
}

Arguments outputs(const char* op, const TensorView& logits, const TensorView& tokens,
                  const TensorView& status, const TensorView& workspace) {
  int64_t rows = logits.size(0);
  check(op, "tokens", tokens, kDLInt, 64, {rows});
  check(op, "status", status, kDLInt, 32, {rows});
  check_workspace(op, workspace, rows);
  Arguments in{};
  in.tokens = data<int64_t>(tokens);
  in.status = data<int32_t>(status);
  in.counters = counters_of(workspace);
  in.scratch = scratch_of(workspace);
  return in;
}

void add_masks(const char* op, Arguments& in, const TensorView& logits,
               const Optional<TensorView>& masks) {
  if (!masks.has_value()) return;
  check(op, "masks", *masks, kDLInt, 32, {logits.size(0), mask_words(logits.size(1))});
  in.masks = data<uint8_t>(*masks);
  in.mask_stride = (*masks).stride(0) * sizeof(int32_t);
}

void masked_sampling(TensorView logits, TensorView records, Optional<TensorView> masks,
                     Optional<TensorView> counts, TensorView tokens, TensorView status,
                     TensorView workspace, int64_t splits) {
  const char* op = "masked_sampling";
  check_logits(op, logits, 2);
  check(op, "records", records, kDLInt, 64, {logits.size(0), kRecordWords});
  Arguments in = outputs(op, logits, tokens, status, workspace);
  add_masks(op, in, logits, masks);
  if (counts.has_value()) {
    check(op, "counts", *counts, kDLInt, 32, {-1, logits.size(1)});
    in.counts = data<int32_t>(*counts);
    in.counts_stride = (*counts).stride(0);
    check_device(op, logits, {&*counts});
  }
  if (masks.has_value()) check_device(op, logits, {&*masks});
  check_device(op, logits, {&records, &tokens, &status, &workspace});
  in.records = data<SamplingRecord>(records);
  launch(op, logits, in, splits);
}

void masked_argmax(TensorView logits, Optional<TensorView> masks, TensorView tokens,
                   TensorView status, TensorView workspace, int64_t splits) {
  const char* op = "masked_argmax";
  check_logits(op, logits, 2);
  Arguments in = outputs(op, logits, tokens, status, workspace);
  add_masks(op, in, logits, masks);
  if (masks.has_value()) check_device(op, logits, {&*masks});
  check_device(op, logits, {&tokens, &status, &workspace});
  launch(op, logits, in, splits);
}

}  // namespace
}  // namespace ninfer_ops

TVM_FFI_DLL_EXPORT_TYPED_FUNC(masked_sampling, ninfer_ops::masked_sampling);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(masked_argmax, ninfer_ops::masked_argmax);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(workspace_bytes, ninfer_ops::workspace_bytes);
