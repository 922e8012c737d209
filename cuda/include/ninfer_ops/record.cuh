// The packed parameters of one row and the outcome of one row.
// Match: ninfer.ops.batch.SamplingRow.to_bytes, ninfer.ops.status.RowStatus.
#pragma once

#include <cstdint>

namespace ninfer_ops {

inline constexpr int kTopKLimit = 20;
inline constexpr int64_t kPlaceholderToken = 0;

enum RecordFlag : uint32_t { kConstrained = 1, kPenalised = 2 };

enum RowStatus : int32_t { kOk = 0, kEmptySet = 1, kNonFinite = 2 };

struct alignas(64) SamplingRecord {
  uint64_t seed;
  int64_t position;
  double temperature;
  double top_p;
  double min_p;
  float presence;
  float frequency;
  int32_t limit;  // 1 for greedy rows
  int32_t purpose;
  uint32_t flags;
  uint32_t counts_row;
};
static_assert(sizeof(SamplingRecord) == 64);

}  // namespace ninfer_ops
