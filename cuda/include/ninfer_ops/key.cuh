// Floats and candidates as unsigned integers in sampling order.
// Match: ninfer.ops.reference.candidates: zeros tie, every NaN is on top, ties to the lower id.
#pragma once

#include <cstdint>

namespace ninfer_ops {

// Keys of minus infinity and below are no candidates.
inline constexpr uint32_t kNegativeInfinityKey = 0x007FFFFFu;
inline constexpr uint32_t kPositiveInfinityKey = 0xFF800000u;

__device__ inline uint32_t ordered(float value) {
  if (isnan(value)) return 0xFFFFFFFFu;
  uint32_t bits = __float_as_uint(value + 0.0f);
  return bits ^ (bits >> 31 ? 0xFFFFFFFFu : 0x80000000u);
}

__device__ inline float from_ordered(uint32_t key) {
  return __uint_as_float(key ^ (key >> 31 ? 0x80000000u : 0xFFFFFFFFu));
}

__device__ inline uint64_t candidate_key(uint32_t value, int token) {
  return static_cast<uint64_t>(value) << 32 | static_cast<uint32_t>(~token);
}

__device__ inline float candidate_value(uint64_t key) {
  return from_ordered(static_cast<uint32_t>(key >> 32));
}

__device__ inline int candidate_token(uint64_t key) {
  return static_cast<int>(~static_cast<uint32_t>(key));
}

}  // namespace ninfer_ops
