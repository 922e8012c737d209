// The counter RNG.
// Match: ninfer.ops.rng.RngKey, bit for bit.
#pragma once

#include <cstdint>

namespace ninfer_ops {

enum RngPurpose : int32_t {
  kSpeculativeAccept = 2,
  kSpeculativeCorrection = 3,
  kSpeculativeBonus = 4,
};

__device__ inline uint64_t splitmix64(uint64_t value) {
  value += 0x9E3779B97F4A7C15ull;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ull;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBull;
  return value ^ (value >> 31);
}

__device__ inline double uniform(uint64_t seed, int64_t position, int32_t purpose) {
  uint64_t counter = static_cast<uint64_t>(position) | static_cast<uint64_t>(purpose) << 40;
  uint64_t bits = splitmix64(splitmix64(seed) ^ counter);
  return static_cast<double>(bits >> 40) * (1.0 / 16777216.0);
}

}  // namespace ninfer_ops
