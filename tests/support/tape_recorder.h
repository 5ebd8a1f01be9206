#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "framework/engine/graph_recorder.h"

namespace precast::test {

/// Counts the calls to a TapeRecorder. It is a separate object, because a StepGraph owns the
/// recorder.
struct TapeLog {
  int warm_ups = 0;
  int recordings = 0;
  /// Recordings that exist now.
  int alive = 0;
  int replays = 0;
  /// Whether record() is running.
  bool recording = false;
  /// Operations in the last recording.
  std::size_t operations = 0;
};

/// A GraphRecorder for CPUs that stores what a CUDA graph stores: the operations below autograd and
/// autocast, with the numbers and the memory that they were called with. A replay therefore repeats
/// the host's decisions and numbers, reads and writes the memory of the recorded step even if a
/// tensor has been replaced since, and repeats the initialisation of tensors that were created
/// while it was recorded.
///
///   - A recording has no effect: all memory that the work has not allocated itself, and the
///     default generator, are the same after the recording as before it.
///   - Reading a value on the host throws, just as cudaStreamSynchronize() fails during a capture.
///   - Recordings share memory: a replay first fills with NaN all memory that any of them has
///     allocated, except tensors that the host still refers to.
///   - A replay throws if memory that the work has not allocated itself has been freed.
///
/// The recorder does not notice accesses to memory through a pointer, except in launches that are
/// recorded with record_launch().
class TapeRecorder final : public engine::GraphRecorder {
 public:
  explicit TapeRecorder(TapeLog& log);
  TapeRecorder(const TapeRecorder&) = delete;
  TapeRecorder& operator=(const TapeRecorder&) = delete;
  ~TapeRecorder() override;

  void warm_up(const Work& work) override;
  [[nodiscard]] std::unique_ptr<Recording> record(const Work& work) override;
  void free_unused_memory() override {}

  /// If this thread is recording, adds `launch` to the recording. For work that accesses memory
  /// through pointers and is not an operation of libtorch, such as the launch of a kernel. `launch`
  /// must use only the memory of tensors that the recording has seen, or that exist as long as the
  /// recording. @return whether this thread is recording.
  static bool record_launch(std::function<void()> launch);

  class Pool;

 private:
  TapeLog& log_;
  std::shared_ptr<Pool> pool_;
};

}  // namespace precast::test
