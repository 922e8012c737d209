// Implements: ninfer.ops.speculative_acceptance.
// Match: ninfer.ops.reference.speculative_acceptance, token for token.
// Assumes: records, masks and counts obey the contract; an extent above K counts as K.
#include <tvm/ffi/function.h>

#include "ninfer_ops/arrive.cuh"
#include "ninfer_ops/counter_rng.cuh"
#include "ninfer_ops/distribution.cuh"
#include "ninfer_ops/host.h"
#include "ninfer_ops/scan.cuh"
#include "ninfer_ops/select.cuh"

namespace ninfer_ops {
namespace {

inline constexpr int kDraftLimit = 63;
inline constexpr int kProposalLimit = 16;

struct Arguments {
  const void* logits;
  int64_t row_stride;
  int64_t position_stride;
  const SamplingRecord* records;
  const int64_t* drafts;  // [B, K]
  const int32_t* extents;
  const int64_t* proposal_tokens;  // [B, K, Q]; null: one-hot
  const float* proposal_q;
  int proposal_candidates;
  const uint8_t* masks;
  int64_t mask_row_stride;  // bytes
  int64_t mask_position_stride;
  const int32_t* counts;
  int64_t counts_stride;
  int64_t* tokens;  // [B, P]
  int32_t* accepted;
  int32_t* status;
  Workspace* counters;
  ColumnScratch* scratch;
  Plan plan;
  int domain;
  int draft_limit;
};

template <typename T>
__device__ Column<T> column_of(const Arguments& in, int row, int position,
                               const SamplingRecord& record) {
  Column<T> column{};
  column.logits =
      static_cast<const T*>(in.logits) + row * in.row_stride + position * in.position_stride;
  column.domain = in.domain;
  column.aligned = reinterpret_cast<uintptr_t>(column.logits) % sizeof(uint4) == 0;
  if (in.masks && record.flags & kConstrained) {
    column.mask = in.masks + row * in.mask_row_stride + position * in.mask_position_stride;
  }
  if (in.counts && record.flags & kPenalised) {
    column.counts = in.counts + record.counts_row * in.counts_stride;
    column.presence = record.presence;
    column.frequency = record.frequency;
    column.overlay = in.drafts + row * in.draft_limit;
    column.overlay_tokens = position;
  }
  return column;
}

// What one drafted position says: the draft, and one candidate of its q in each of 16 lanes.
struct Drafted {
  int64_t draft = -1;
  int64_t token = -1;
  float q = 0;
};

__device__ Drafted drafted_at(const Arguments& in, int row, int position) {
  Drafted out;
  int lane = threadIdx.x % 32;
  if (position >= in.draft_limit) return out;
  int64_t place = static_cast<int64_t>(row) * in.draft_limit + position;
  out.draft = in.drafts[place];
  if (in.proposal_tokens && lane < in.proposal_candidates) {
    out.token = in.proposal_tokens[place * in.proposal_candidates + lane];
    out.q = in.proposal_q[place * in.proposal_candidates + lane];
  }
  return out;
}

// q of this lane's token; the proposal is sparse.
__device__ double proposed(const Drafted& drafted, int64_t token) {
  double q = 0;
#pragma unroll
  for (int i = 0; i < kProposalLimit; ++i) {
    int64_t listed = __shfl_sync(kWarp, drafted.token, i);
    float mass = __shfl_sync(kWarp, drafted.q, i);
    if (listed == token) q += mass;
  }
  return q;
}

__device__ bool passes(const Arguments& in, const Drafted& drafted, int position, double p,
                       const SamplingRecord& record) {
  double u = uniform(record.seed, record.position + position + 1, kSpeculativeAccept);
  if (in.proposal_tokens == nullptr) return u < p;
  double q = proposed(drafted, drafted.draft);
  return p > 0 && (p >= q || __dmul_rn(u, q) < p);
}

// One warp: normalises a column and tests its draft.
__device__ void settle_column(const Arguments& in, const Drafted& drafted, int position,
                              int extent, const SamplingRecord& record,
                              const Selection& selection, int found, RowStatus status,
                              double* weights, ColumnResult& result) {
  int lane = threadIdx.x;
  double mass = weigh(weights, selection.top, found, record);
  int token = lane < found ? candidate_token(selection.top[lane]) : -1;
  double p = lane < found ? weights[lane] / mass : 0.0;
  if (lane < kTopKLimit) {
    result.p[lane] = p;
    result.tokens[lane] = token;
  }
  bool passed = false;
  if (position < extent) {
    uint32_t found_at = __ballot_sync(kWarp, token >= 0 && token == drafted.draft);
    double p_draft = __shfl_sync(kWarp, p, found_at ? __ffs(found_at) - 1 : 31);
    passed = passes(in, drafted, position, p_draft, record) && status == kOk;
  }
  if (lane == 0) {
    result.status = status;
    result.passed = passed;
  }
}

// One warp: the first draft that failed, then the correction or bonus of that column.
__device__ void settle_row(const Arguments& in, int row, int extent, const SamplingRecord& record,
                           double* weights) {
  int lane = threadIdx.x;
  const ColumnScratch* columns = in.scratch + row * (in.draft_limit + 1);
  uint64_t passed = 0;
  for (int half = 0; half < 2; ++half) {
    int position = lane + 32 * half;
    bool pass = position < extent && __ldcg(&columns[position].result.passed);
    passed |= static_cast<uint64_t>(__ballot_sync(kWarp, pass)) << (32 * half);
  }
  int accepted = __ffsll(~passed) - 1;
  const ColumnResult& last = columns[accepted].result;
  const int64_t* drafts = in.drafts + row * in.draft_limit;
  bool rejected = accepted < extent;
  double weight = 0;
  int token = -1;
  if (lane < kTopKLimit) {
    weight = __ldcg(&last.p[lane]);
    token = __ldcg(&last.tokens[lane]);
  }
  if (rejected) {
    Drafted drafted = drafted_at(in, row, accepted);
    double q = in.proposal_tokens ? proposed(drafted, token) : double(token == drafted.draft);
    weight = fmax(weight - q, 0.0);
  }
  if (lane < kTopKLimit) weights[lane] = weight;
  __syncwarp();
  double u = uniform(record.seed, record.position + accepted + 1,
                     rejected ? kSpeculativeCorrection : kSpeculativeBonus);
  int32_t status = __ldcg(&last.status);
  int64_t chosen = __shfl_sync(kWarp, token, draw(weights, u));
  if (status != kOk) chosen = kPlaceholderToken;
  for (int i = lane; i <= in.draft_limit; i += 32) {
    int64_t licensed = i < accepted ? drafts[i] : kPlaceholderToken;
    in.tokens[row * (in.draft_limit + 1) + i] = i == accepted ? chosen : licensed;
  }
  if (lane == 0) {
    in.accepted[row] = accepted;
    in.status[row] = status;
  }
}

template <typename T>
__global__ void __launch_bounds__(kThreads, kResidentBlocks<T>) accept(Arguments in) {
  int positions = in.draft_limit + 1;
  int row = blockIdx.y / positions;
  int position = blockIdx.y % positions;
  int extent = max(0, min(in.extents[row], in.draft_limit));
  if (position > extent) return;
  uint32_t* maxima = in.scratch[blockIdx.y].maxima;
  SamplingRecord record = in.records[row];
  Column<T> column = column_of<T>(in, row, position, record);
  scan(column, in.plan, blockIdx.x, maxima);
  if (!arrive_last(in.counters->arrivals + blockIdx.y, in.plan.splits)) return;

  __shared__ Selection selection;
  __shared__ double weights[kTopKLimit];
  Drafted drafted = drafted_at(in, row, position);
  RowStatus status;
  int found = select(selection, column, in.plan, maxima, record.limit, &status);
  if (threadIdx.x >= 32) return;
  settle_column(in, drafted, position, extent, record, selection, found, status, weights,
                in.scratch[blockIdx.y].result);
  if (!arrive_last_warp(in.counters->row_arrivals + row, extent + 1)) return;
  settle_row(in, row, extent, record, weights);
}

void check_contiguous(const char* op, const char* name, const TensorView& tensor) {
  if (!tensor.IsContiguous()) {
    TVM_FFI_THROW(RowMismatch) << op << " " << name << ": not contiguous";
  }
}

void speculative_acceptance(TensorView logits, TensorView records, TensorView drafts,
                            TensorView extents, Optional<TensorView> proposal_tokens,
                            Optional<TensorView> proposal_q, Optional<TensorView> masks,
                            Optional<TensorView> counts, TensorView tokens, TensorView accepted,
                            TensorView status, TensorView workspace, int64_t splits) {
  const char* op = "speculative_acceptance";
  check_logits(op, logits, 3);
  int64_t rows = logits.size(0), positions = logits.size(1), domain = logits.size(2);
  if (positions < 1 || positions > kDraftLimit + 1) {
    TVM_FFI_THROW(RowMismatch) << op << " logits: " << positions << " positions, not 1 to "
                               << kDraftLimit + 1;
  }
  check(op, "records", records, kDLInt, 64, {rows, kRecordWords});
  check(op, "drafts", drafts, kDLInt, 64, {rows, positions - 1});
  check(op, "extents", extents, kDLInt, 32, {rows});
  check(op, "tokens", tokens, kDLInt, 64, {rows, positions});
  check(op, "accepted", accepted, kDLInt, 32, {rows});
  check(op, "status", status, kDLInt, 32, {rows});
  check_contiguous(op, "records", records);
  check_contiguous(op, "drafts", drafts);
  check_contiguous(op, "tokens", tokens);
  check_workspace(op, workspace, rows * positions);
  Arguments in{};
  in.draft_limit = static_cast<int>(positions - 1);
  if (proposal_tokens.has_value() != proposal_q.has_value()) {
    TVM_FFI_THROW(RowMismatch) << op << " proposal: ids and q come together";
  }
  if (proposal_tokens.has_value()) {
    int64_t candidates = (*proposal_tokens).ndim() == 3 ? (*proposal_tokens).size(2) : 0;
    if (candidates < 1 || candidates > kProposalLimit) {
      TVM_FFI_THROW(RowMismatch) << op << " proposal: " << candidates << " candidates, not 1 to "
                                 << kProposalLimit;
    }
    check(op, "proposal ids", *proposal_tokens, kDLInt, 64, {rows, positions - 1, candidates});
    check(op, "proposal q", *proposal_q, kDLFloat, 32, {rows, positions - 1, candidates});
    check_contiguous(op, "proposal ids", *proposal_tokens);
    check_contiguous(op, "proposal q", *proposal_q);
    check_device(op, logits, {&*proposal_tokens, &*proposal_q});
    in.proposal_tokens = data<int64_t>(*proposal_tokens);
    in.proposal_q = data<float>(*proposal_q);
    in.proposal_candidates = static_cast<int>(candidates);
  }
  if (masks.has_value()) {
    check(op, "masks", *masks, kDLInt, 32, {rows, positions, mask_words(domain)});
    check_device(op, logits, {&*masks});
    in.masks = data<uint8_t>(*masks);
    in.mask_row_stride = (*masks).stride(0) * sizeof(int32_t);
    in.mask_position_stride = (*masks).stride(1) * sizeof(int32_t);
  }
  if (counts.has_value()) {
    check(op, "counts", *counts, kDLInt, 32, {-1, domain});
    check_device(op, logits, {&*counts});
    in.counts = data<int32_t>(*counts);
    in.counts_stride = (*counts).stride(0);
  }
  check_device(op, logits, {&records, &drafts, &extents, &tokens, &accepted, &status, &workspace});
  if (rows == 0) return;
  in.logits = data<void>(logits);
  in.row_stride = logits.stride(0);
  in.position_stride = logits.stride(1);
  in.records = data<SamplingRecord>(records);
  in.drafts = data<int64_t>(drafts);
  in.extents = data<int32_t>(extents);
  in.tokens = data<int64_t>(tokens);
  in.accepted = data<int32_t>(accepted);
  in.status = data<int32_t>(status);
  in.counters = counters_of(workspace);
  in.scratch = scratch_of(workspace);
  in.domain = static_cast<int>(domain);
  in.plan = plan_for(logits, rows * positions, splits);
  dim3 grid(in.plan.splits, static_cast<unsigned>(rows * positions));
  cudaStream_t stream = stream_of(logits);
  with_element_type(logits, [&](auto* element) {
    using T = std::remove_pointer_t<decltype(element)>;
    accept<T><<<grid, kThreads, 0, stream>>>(in);
  });
  check_launch(op);
}

}  // namespace
}  // namespace ninfer_ops

TVM_FFI_DLL_EXPORT_TYPED_FUNC(speculative_acceptance, ninfer_ops::speculative_acceptance);
