// Second half of a column: the ordered best candidates, found by the block that arrives last.
//
// A bound is taken from 64 interleaved maxima: the limit-th largest of them. At least `limit`
// tokens reach it, so every token of the answer does; only groups whose maximum reaches it are read
// again. About 24 tokens pass at limit 20; more than the list holds takes the slow path.
#pragma once

#include "ninfer_ops/column.cuh"
#include "ninfer_ops/plan.cuh"
#include "ninfer_ops/record.cuh"

namespace ninfer_ops {

inline constexpr int kListed = 1024;
inline constexpr int kHeld = kMaxSplits * kGroups / kThreads;

struct Selection {
  uint64_t top[kTopKLimit];
  uint64_t listed[kListed];
  uint16_t groups[kMaxSplits * kGroups];
  uint32_t bests[kGroups];
  uint64_t warp_best[kThreads / 32];
  uint32_t bound;
  uint32_t floor;
  int listed_count;
  int group_count;
  int any_allowed;
};

__device__ inline void list(Selection& shared, uint64_t key) {
  int place = atomicAdd(&shared.listed_count, 1);
  if (place < kListed) shared.listed[place] = key;
}

// Sets `bound` to the limit-th largest of the 64 interleaved maxima.
__device__ inline void find_bound(Selection& shared, const uint32_t* held, int limit) {
  uint32_t best = 0;
#pragma unroll
  for (int i = 0; i < kHeld; ++i) best = max(best, held[i]);
#pragma unroll
  for (int lane = 1; lane < kGroupLanes; lane *= 2) {
    best = max(best, __shfl_xor_sync(0xFFFFFFFFu, best, lane));
  }
  if (threadIdx.x % kGroupLanes == 0) shared.bests[threadIdx.x / kGroupLanes] = best;
  if (threadIdx.x == 0) shared.floor = kNegativeInfinityKey + 1;
  __syncthreads();
  if (threadIdx.x < kGroups) {
    uint32_t mine = shared.bests[threadIdx.x];
    int larger = 0, equal = 0;
#pragma unroll 16
    for (int i = 0; i < kGroups; ++i) {
      uint32_t other = shared.bests[i];
      larger += other > mine;
      equal += other == mine;
    }
    if (larger < limit && larger + equal >= limit) {
      shared.bound = max(mine, kNegativeInfinityKey + 1);
    }
  }
  __syncthreads();
}

// Lists what one vector of a group holds: tokens whose scanned logit reaches `bound` and whose
// adjusted logit reaches `floor`.
template <typename T>
__device__ void list_vector(Selection& shared, const Column<T>& column, const Plan& plan,
                            int group, int member) {
  int thread = group % kGroups * kGroupLanes + member % kGroupLanes;
  int index = plan.vector(group / kGroups, member / kGroupLanes, thread);
  if (index >= column.vectors()) return;
  uint32_t bits = column.bits(index);
  Vector<T> vector = column.load(index);
  bool raw = column.scans_raw();
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    if (!(bits >> i & 1)) continue;
    uint32_t value = ordered(raw ? element(vector, i) : column.adjusted(vector, index, i));
    if (value < shared.bound) continue;
    int token = index * kVector + i;
    if (raw && column.counts) value = ordered(column.value(token));
    if (!raw && column.overlay_tokens && column.overlaid(token)) continue;
    if (value >= shared.floor) list(shared, candidate_key(value, token));
  }
}

// Drafts counted on top were left out of a scan of adjusted logits; each token once.
template <typename T>
__device__ void list_overlay(Selection& shared, const Column<T>& column) {
  if (column.scans_raw()) return;
  for (int i = threadIdx.x; i < column.overlay_tokens; i += kThreads) {
    int64_t wide = column.overlay[i];
    if (wide < 0 || wide >= column.domain) continue;
    bool seen = false;
    for (int j = 0; j < i; ++j) seen |= column.overlay[j] == wide;
    int token = static_cast<int>(wide);
    if (seen || !column.allows(token)) continue;
    uint32_t value = ordered(column.value(token));
    if (value > kNegativeInfinityKey) list(shared, candidate_key(value, token));
  }
}

// Moves the best of the list to `top`, in order.
__device__ inline void rank(Selection& shared, int limit) {
  int count = shared.listed_count;
  for (int i = threadIdx.x; i < count; i += kThreads) {
    uint64_t mine = shared.listed[i];
    int larger = 0;
    for (int j = 0; j < count; ++j) larger += shared.listed[j] > mine;
    if (larger < limit) shared.top[larger] = mine;
  }
  __syncthreads();
}

// The best candidate below `below` of the whole column, by the whole block.
template <typename T>
__device__ uint64_t next_best(Selection& shared, const Column<T>& column, uint64_t below) {
  uint64_t best = 0;
  for (int index = threadIdx.x; index < column.vectors(); index += kThreads) {
    uint32_t bits = column.bits(index);
    for (int i = 0; i < kVector; ++i) {
      if (!(bits >> i & 1)) continue;
      int token = index * kVector + i;
      uint64_t key = candidate_key(ordered(column.value(token)), token);
      if (key < below) best = max(best, key);
    }
  }
#pragma unroll
  for (int lane = 16; lane; lane /= 2) {
    best = max(best, __shfl_xor_sync(0xFFFFFFFFu, best, lane));
  }
  __syncthreads();
  if (threadIdx.x % 32 == 0) shared.warp_best[threadIdx.x / 32] = best;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kThreads / 32; ++i) best = max(best, shared.warp_best[i]);
  return best;
}

// Exact for any number of ties; one pass over the column a candidate.
template <typename T>
__device__ int select_slowly(Selection& shared, const Column<T>& column, int limit) {
  uint64_t below = ~uint64_t{0};
  int found = 0;
  while (found < limit) {
    below = next_best(shared, column, below);
    if (below >> 32 <= kNegativeInfinityKey) break;
    if (threadIdx.x == 0) shared.top[found] = below;
    ++found;
  }
  __syncthreads();
  return found;
}

template <typename T>
__device__ bool any_allowed(Selection& shared, const Column<T>& column) {
  if (threadIdx.x == 0) shared.any_allowed = 0;
  __syncthreads();
  for (int index = threadIdx.x; index < column.vectors(); index += kThreads) {
    if (column.bits(index)) shared.any_allowed = 1;
  }
  __syncthreads();
  return shared.any_allowed;
}

// Lists and ranks what reaches the bound; false when it is more than the list holds.
template <typename T>
__device__ bool list_candidates(Selection& shared, const Column<T>& column, const Plan& plan,
                                const uint32_t* held, int limit) {
  if (threadIdx.x == 0) shared.listed_count = shared.group_count = 0;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    if (held[i] < shared.bound) continue;
    int place = atomicAdd(&shared.group_count, 1);
    shared.groups[place] = static_cast<uint16_t>(i * kThreads + threadIdx.x);
  }
  __syncthreads();
  int members = plan.vectors_per_thread * kGroupLanes;
  for (int i = threadIdx.x; i < shared.group_count * members; i += kThreads) {
    list_vector(shared, column, plan, shared.groups[i / members], i % members);
  }
  list_overlay(shared, column);
  __syncthreads();
  if (shared.listed_count > kListed) return false;
  rank(shared, limit);
  return true;
}

// The raw bound promises `limit` tokens, but their adjusted logits may lie below it. Then the
// limit-th of those is the true bound. Returns whether it was lowered.
__device__ inline bool lower_bound(Selection& shared, int limit) {
  uint32_t floor = kNegativeInfinityKey + 1;
  if (shared.listed_count >= limit) floor = static_cast<uint32_t>(shared.top[limit - 1] >> 32);
  bool lowered = floor < shared.bound;
  __syncthreads();
  if (lowered && threadIdx.x == 0) shared.bound = shared.floor = floor;
  return lowered;
}

// Leaves the candidates in `top`, best first, and returns how many there are; 0 with a status.
template <typename T>
__device__ int select(Selection& shared, const Column<T>& column, const Plan& plan,
                      const uint32_t* maxima, int limit, RowStatus* status) {
  limit = max(1, min(limit, kTopKLimit));
  uint32_t held[kHeld];
#pragma unroll
  for (int i = 0; i < kHeld; ++i) {
    int group = i * kThreads + threadIdx.x;
    held[i] = group < plan.splits * kGroups ? __ldcg(maxima + group) : 0;
  }
  find_bound(shared, held, limit);
  bool listed = list_candidates(shared, column, plan, held, limit);
  if (listed && column.counts && column.scans_raw() && lower_bound(shared, limit)) {
    listed = list_candidates(shared, column, plan, held, limit);
  }
  int found = listed ? min(shared.listed_count, limit) : select_slowly(shared, column, limit);
  *status = kOk;
  if (found == 0) {
    *status = any_allowed(shared, column) ? kNonFinite : kEmptySet;
  } else if (shared.top[0] >> 32 >= kPositiveInfinityKey) {
    *status = kNonFinite;
    found = 0;
  }
  return found;
}

}  // namespace ninfer_ops
