#pragma once

#include <string_view>

namespace precast {

/// How the threads that make batches have spent their time so far, in seconds summed over the
/// threads, and how long copies to a GPU have taken. Torch-free.
struct SourceTimes {
  /// CPU time: decoding, resizing, transforms.
  double processing = 0;
  /// Waiting for reads. Not measured for files that are read through a memory mapping.
  double disk = 0;
  /// The remaining busy time: waiting for a memory page of a mapped file, or for a core that other
  /// threads used.
  double blocked = 0;
  /// Waiting because all buffers for batches were full, that is, because the model is slower than
  /// the loader.
  double ahead = 0;
  /// GPU time, not time of the threads: copying batches to the GPU and normalising them there.
  double copying = 0;

  /// The activity that took the most time: "reading", "blocked" or "decoding". Empty if the threads
  /// were ahead of the model for at least half of the time (the model then does not wait for them),
  /// or if nothing was measured.
  [[nodiscard]] std::string_view bottleneck() const {
    if (processing + disk + blocked <= ahead) return {};
    if (disk >= processing && disk >= blocked && disk > 0) return "reading";
    return blocked > processing ? "blocked" : "decoding";
  }
};

}  // namespace precast
