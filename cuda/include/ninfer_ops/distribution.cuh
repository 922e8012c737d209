// The truncated target distribution over ordered candidates, and draws from weights.
// Match: ninfer.ops.reference.distribution; sums run in candidate order in double precision.
// Assumes: one whole warp calls; lane i looks at candidate i.
#pragma once

#include "ninfer_ops/key.cuh"
#include "ninfer_ops/record.cuh"

namespace ninfer_ops {

inline constexpr uint32_t kWarp = 0xFFFFFFFFu;

// The sum of the weights before this lane's, added one by one from the first; lane 20 and above
// hold the whole sum.
__device__ inline double sum_before(const double* weights) {
  int lane = threadIdx.x % 32;
  double sum = 0;
#pragma unroll
  for (int i = 0; i < kTopKLimit; ++i) sum += i < lane ? weights[i] : 0.0;
  return sum;
}

// Writes the weight of every candidate, zero for those that are cut, and returns the kept mass.
__device__ inline double weigh(double* weights, const uint64_t* top, int found,
                               const SamplingRecord& record) {
  int lane = threadIdx.x % 32;
  double weight = 0;
  if (lane == 0) weight = 1;
  if (lane > 0 && lane < found) {
    double below = static_cast<double>(candidate_value(top[lane])) -
                   static_cast<double>(candidate_value(top[0]));
    weight = exp(below / record.temperature);
  }
  if (lane < kTopKLimit) weights[lane] = weight;
  __syncwarp();
  double before = sum_before(weights);
  double bound = __dmul_rn(record.top_p, __shfl_sync(kWarp, before, kTopKLimit));
  bool kept = lane < found && (record.top_p >= 1 || before < bound) && weight >= record.min_p;
  uint32_t cut = ~__ballot_sync(kWarp, kept || lane == 0);
  int support = __ffs(cut) - 1;
  __syncwarp();
  if (lane < kTopKLimit && lane >= support) weights[lane] = 0;
  __syncwarp();
  return __shfl_sync(kWarp, before, support);
}

// The first place whose cumulative weight exceeds u times the whole; 0 where there is no mass.
__device__ inline int draw(const double* weights, double u) {
  int lane = threadIdx.x % 32;
  double before = sum_before(weights);
  double target = __dmul_rn(u, __shfl_sync(kWarp, before, kTopKLimit));
  double sum = lane < kTopKLimit ? before + weights[lane] : 0.0;
  uint32_t beyond = __ballot_sync(kWarp, lane < kTopKLimit && sum > target);
  return beyond ? __ffs(beyond) - 1 : 0;
}

}  // namespace ninfer_ops
