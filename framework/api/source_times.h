#pragma once

#include <string_view>

namespace precast {

/// Where the threads that make batches spent their time so far, added up over them, in seconds.
/// Torch-free.
struct SourceTimes {
  /// CPU time: decoding, resizing, transforms.
  double processing = 0;
  /// Waiting for reads of which that is known: those past a mapping.
  double disk = 0;
  /// Neither: a page of a mapped file was not in memory, or other threads had the core.
  double blocked = 0;
  /// All batches ahead were full: the model is slower.
  double ahead = 0;

  /// What most of the time went to that was not `ahead`.
  [[nodiscard]] std::string_view longest() const {
    if (disk >= processing && disk >= blocked && disk > 0) return "reading";
    return blocked > processing ? "blocked" : "decoding";
  }
};

}  // namespace precast
