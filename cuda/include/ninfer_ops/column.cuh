// One column of logits with what masks and adjusts it.
#pragma once

#include "ninfer_ops/element.cuh"
#include "ninfer_ops/key.cuh"

namespace ninfer_ops {

template <typename T>
struct Column {
  const T* logits;
  const uint8_t* mask;    // null: every token is allowed
  const int32_t* counts;  // null: no penalty
  const int64_t* overlay;  // drafts counted on top of `counts`
  int overlay_tokens;
  float presence;
  float frequency;
  int domain;
  bool aligned;

  __device__ int vectors() const { return (domain + kVector - 1) / kVector; }

  // The allowed tokens of a vector; 0 beyond the last.
  __device__ uint32_t bits(int index) const {
    if (index >= vectors()) return 0;
    uint32_t inside = kAllBits;
    int left = domain - index * kVector;
    if (left < kVector) inside = (1u << left) - 1;
    return mask == nullptr ? inside : inside & __ldg(mask + index);
  }

  __device__ Vector<T> load(int index) const {
    return load_vector(logits, index, domain, aligned);
  }

  // The logit after penalties, without the overlay. Match: reference.logits.penalise.
  __device__ float adjusted(float logit, int count) const {
    if (count <= 0) return logit;
    return __fsub_rn(logit, __fadd_rn(__fmul_rn(frequency, static_cast<float>(count)), presence));
  }

  __device__ float adjusted(const Vector<T>& vector, int index, int i) const {
    return adjusted(element(vector, i), __ldg(counts + index * kVector + i));
  }

  // Penalties that only lower: a raw logit bounds its adjusted one from above, so counts are read
  // for candidates alone.
  __device__ bool scans_raw() const {
    return counts == nullptr || (presence >= 0 && frequency >= 0);
  }

  __device__ int overlaid(int token) const {
    int times = 0;
    for (int i = 0; i < overlay_tokens; ++i) times += overlay[i] == token;
    return times;
  }

  __device__ bool allows(int token) const {
    return token >= 0 && token < domain && (bits(token / kVector) >> token % kVector & 1);
  }

  // The logit after all penalties.
  __device__ float value(int token) const {
    float logit = to_float(logits[token]);
    return counts == nullptr ? logit : adjusted(logit, counts[token] + overlaid(token));
  }
};

}  // namespace ninfer_ops
