// First half of a column: the best logit of every group, each logit read once; after penalties
// where these can raise a logit.
#pragma once

#include "ninfer_ops/column.cuh"
#include "ninfer_ops/plan.cuh"

namespace ninfer_ops {

inline constexpr int kUnroll = 4;

// Marks the overlay's tokens of this block's range, one byte a vector; they are judged apart.
template <typename T>
__device__ void mark_overlay(const Column<T>& column, const Plan& plan, int split,
                             uint8_t* marks) {
  int count = plan.vectors_per_thread * kThreads;
  uint32_t* words = reinterpret_cast<uint32_t*>(marks);
  for (int i = threadIdx.x; i < count / 4; i += kThreads) words[i] = 0;
  __syncthreads();
  int first = plan.vector(split, 0, 0) * kVector;
  for (int i = threadIdx.x; i < column.overlay_tokens; i += kThreads) {
    int64_t token = column.overlay[i] - first;
    if (token < 0 || token >= int64_t{count} * kVector) continue;
    int bit = static_cast<int>(token);
    atomicOr(words + bit / 32, 1u << bit % 32);
  }
  __syncthreads();
}

template <typename T>
__device__ float scan_plain(const Column<T>& column, const Plan& plan, int split) {
  RunningMax<T> best;
  for (int step = 0; step < plan.vectors_per_thread; step += kUnroll) {
    uint32_t bits[kUnroll];
    Vector<T> vectors[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      bool owned = step + i < plan.vectors_per_thread;
      bits[i] = owned ? column.bits(plan.vector(split, step + i, threadIdx.x)) : 0;
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (bits[i]) vectors[i] = column.load(plan.vector(split, step + i, threadIdx.x));
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      if (bits[i]) best.add(vectors[i], bits[i]);
    }
  }
  return best.value();
}

template <typename T>
__device__ float scan_penalised(const Column<T>& column, const Plan& plan, int split,
                                const uint8_t* marks) {
  float best = -INFINITY;
  for (int step = 0; step < plan.vectors_per_thread; ++step) {
    int index = plan.vector(split, step, threadIdx.x);
    uint32_t bits = column.bits(index);
    if (column.overlay_tokens) bits &= ~uint32_t{marks[step * kThreads + threadIdx.x]};
    if (!bits) continue;
    Vector<T> vector = column.load(index);
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      if (bits >> i & 1) best = max_nan(best, column.adjusted(vector, index, i));
    }
  }
  return best;
}

// Leaves the ordered best of the block's 64 groups at `maxima`.
template <typename T>
__device__ void scan(const Column<T>& column, const Plan& plan, int split, uint32_t* maxima) {
  __shared__ alignas(16) uint8_t marks[kMaxVectorsPerThread * kThreads];
  float best;
  if (column.scans_raw()) {
    best = scan_plain(column, plan, split);
  } else {
    if (column.overlay_tokens) mark_overlay(column, plan, split, marks);
    best = scan_penalised(column, plan, split, marks);
  }
#pragma unroll
  for (int lane = 1; lane < kGroupLanes; lane *= 2) {
    best = max_nan(best, __shfl_xor_sync(0xFFFFFFFFu, best, lane));
  }
  if (threadIdx.x % kGroupLanes == 0) {
    maxima[split * kGroups + threadIdx.x / kGroupLanes] = ordered(best);
  }
}

}  // namespace ninfer_ops
