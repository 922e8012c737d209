// The block that arrives last goes on with what the others left in memory.
#pragma once

#include <cstdint>

namespace ninfer_ops {

// Adds one arrival and returns how many came before. Releases what this thread and, through a
// barrier before it, its block wrote; acquires what the earlier arrivals released.
__device__ inline uint32_t arrive(uint32_t* counter, int expected) {
  uint32_t before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(counter), "r"(expected - 1)
               : "memory");
  return before;
}

// Called by every thread of `expected` blocks; true in all threads of the last one. The counter is
// back at zero then.
__device__ inline bool arrive_last(uint32_t* counter, int expected) {
  __shared__ bool last;
  __syncthreads();
  if (threadIdx.x == 0) last = arrive(counter, expected) == expected - 1u;
  __syncthreads();
  return last;
}

// The same for one warp of each of `expected` blocks.
__device__ inline bool arrive_last_warp(uint32_t* counter, int expected) {
  uint32_t before = 0;
  __syncwarp();
  if (threadIdx.x % 32 == 0) before = arrive(counter, expected);
  before = __shfl_sync(0xFFFFFFFFu, before, 0);
  __syncwarp();
  return before == expected - 1u;
}

}  // namespace ninfer_ops
