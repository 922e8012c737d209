// Eight logits at a time: loads, conversion, and the running maximum of the allowed ones.
// Assumes: a NaN that is allowed must win every maximum; the mask bit of token t is bit t % 8.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>

namespace ninfer_ops {

inline constexpr int kVector = 8;  // tokens of one vector, and of one mask byte
inline constexpr uint32_t kAllBits = 0xFF;

template <typename T>
struct Vector {
  uint4 part[sizeof(T) * kVector / sizeof(uint4)];
};

template <typename T>
__device__ inline float to_float(T value) {
  return static_cast<float>(value);
}

// Reads tokens [8 * index, 8 * index + 8); those at and above `domain` are not touched.
template <typename T>
__device__ inline Vector<T> load_vector(const T* row, int index, int domain, bool aligned) {
  Vector<T> out;
  const T* from = row + static_cast<int64_t>(index) * kVector;
  if (aligned && (index + 1) * kVector <= domain) {
    const uint4* wide = reinterpret_cast<const uint4*>(from);
#pragma unroll
    for (size_t i = 0; i < sizeof(out.part) / sizeof(uint4); ++i) out.part[i] = __ldg(wide + i);
    return out;
  }
  T* to = reinterpret_cast<T*>(&out);
#pragma unroll
  for (int i = 0; i < kVector; ++i) {
    to[i] = index * kVector + i < domain ? from[i] : T(0.0f);
  }
  return out;
}

template <typename T>
__device__ inline float element(const Vector<T>& vector, int i) {
  return to_float(reinterpret_cast<const T*>(&vector)[i]);
}

__device__ inline float max_nan(float a, float b) {
  float out;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(out) : "f"(a), "f"(b));
  return out;
}

// The maximum of float vectors.
template <typename T>
struct RunningMax {
  float best = -INFINITY;

  __device__ void add(const Vector<T>& vector, uint32_t bits) {
#pragma unroll
    for (int i = 0; i < kVector; ++i) {
      best = max_nan(best, bits >> i & 1 ? element(vector, i) : -INFINITY);
    }
  }
  __device__ float value() const { return best; }
};

// Two 16-bit numbers to a register: the mask bits are spread to whole halves and the maxima taken
// in pairs, about two instructions a token.
template <typename T, typename Pair, uint32_t kNegativeInfinities>
struct PairedMax {
  uint32_t best = kNegativeInfinities;

  __device__ void add(const Vector<T>& vector, uint32_t bits) {
    const uint32_t words[4] = {vector.part[0].x, vector.part[0].y, vector.part[0].z,
                               vector.part[0].w};
    // Bit 2i moves to the sign of byte 0 and bit 2i + 1 to the sign of byte 1.
    const uint32_t doubled = bits | bits << 7;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      uint32_t keep;
      asm("prmt.b32 %0, %1, 0, 0x9988;" : "=r"(keep) : "r"(doubled << (7 - 2 * i)));
      take((words[i] & keep) | (kNegativeInfinities & ~keep));
    }
  }
  __device__ float value() const {
    Pair pair = reinterpret_cast<const Pair&>(best);
    return max_nan(to_float(pair.x), to_float(pair.y));
  }

 private:
  __device__ void take(uint32_t word) {
    Pair larger = __hmax2_nan(reinterpret_cast<Pair&>(best), reinterpret_cast<Pair&>(word));
    best = reinterpret_cast<uint32_t&>(larger);
  }
};

template <>
struct RunningMax<__nv_bfloat16> : PairedMax<__nv_bfloat16, __nv_bfloat162, 0xFF80FF80u> {};
template <>
struct RunningMax<__half> : PairedMax<__half, __half2, 0xFC00FC00u> {};

}  // namespace ninfer_ops
