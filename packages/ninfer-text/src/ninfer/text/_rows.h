// Spreads independent rows over short-lived native threads.
//
// Threads live for one call: nothing survives a fork or an interpreter's end. Starting one costs some
// 20 us, so it pays from about 100 us of work a thread; the caller's own thread always takes a share.
#pragma once

#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace ninfer {

template <typename Row>
void for_each_row(Row* rows, long count, int threads, void (*scan)(Row*)) {
  std::atomic<long> next{0};
  auto take = [&] {
    for (long row = next++; row < count; row = next++) scan(rows + row);
  };
  std::vector<std::thread> helpers;
  try {
    for (long started = 1; started < threads && started < count; ++started) {
      helpers.emplace_back(take);
    }
  } catch (const std::exception&) {
    // Fewer threads than asked for are only slower.
  }
  take();
  for (auto& helper : helpers) helper.join();
}

}  // namespace ninfer
