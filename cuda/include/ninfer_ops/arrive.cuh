// The block that arrives last goes on with what the others left in memory.
#pragma once

#include <cstdint>

namespace ninfer_ops {

// Called by every thread of `expected` blocks; true in all threads of the last one. The counter is
// back at zero then.
__device__ inline bool arrive_last(uint32_t* counter, int expected) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicInc(counter, expected - 1) == expected - 1u;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

}  // namespace ninfer_ops
