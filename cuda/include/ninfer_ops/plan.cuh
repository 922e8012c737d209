// How columns are spread over blocks, and where blocks leave what they found.
#pragma once

#include <cstdint>

#include "ninfer_ops/element.cuh"
#include "ninfer_ops/record.cuh"

namespace ninfer_ops {

inline constexpr int kThreads = 256;
inline constexpr int kGroupLanes = 4;
inline constexpr int kGroups = kThreads / kGroupLanes;  // groups of one block
inline constexpr int kMaxSplits = 64;                   // blocks of one column
inline constexpr int kMaxVectorsPerThread = 16;
inline constexpr int kMaxColumns = 4096;
inline constexpr int64_t kMaxDomain =
    int64_t{kVector} * kThreads * kMaxSplits * kMaxVectorsPerThread;

// Resident blocks a multiprocessor that keep the memory busy; they cap the registers.
template <typename T>
inline constexpr int kResidentBlocks = sizeof(T) == 2 ? 6 : 4;

// Block s of a column owns the vectors [s * n * 256, (s + 1) * n * 256); its thread t takes every
// 256th of them. A group is four neighbouring threads.
struct Plan {
  int splits;
  int vectors_per_thread;

  __host__ __device__ int vector(int split, int step, int thread) const {
    return (split * vectors_per_thread + step) * kThreads + thread;
  }
};

// What one column hands to its row in speculation.
struct ColumnResult {
  double p[kTopKLimit];      // normalised; zero where nothing can be drawn
  int32_t tokens[kTopKLimit];  // -1 where there is no candidate
  int32_t status;
  int32_t passed;  // whether this column's draft passes its test
};

// Counters come first and at a fixed place, so that launches of any size can share the memory.
// Assumes: zeroed once when it is reserved; every launch leaves the counters at zero; launches that
// share it do not overlap.
struct Workspace {
  uint32_t arrivals[kMaxColumns];      // one a column
  uint32_t row_arrivals[kMaxColumns];  // one a row, speculation only
};

struct ColumnScratch {
  ColumnResult result;
  uint32_t maxima[kMaxSplits * kGroups];
};

}  // namespace ninfer_ops
