#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <memory>

namespace precast::engine {

/// Records work for a device once and replays it as a unit (a CUDA graph). This is only the
/// mechanism: StepGraph decides what and when to record, and what to do if recording fails. Not
/// thread-safe.
class GraphRecorder {
 public:
  using Work = std::function<void()>;

  /// Recorded work. Recordings that exist at the same time share one pool of memory: a replay may
  /// overwrite anything that other recordings have written, except tensors that the host still
  /// refers to.
  class Recording {
   public:
    /// Waits for replays that are still running.
    virtual ~Recording() = default;
    /// Executes the recorded work on the current stream.
    virtual void replay() = 0;
  };

  virtual ~GraphRecorder() = default;
  /// Runs `work` under the conditions of record(), on the same stream and without cached casts, so
  /// that libraries allocate their workspaces and choose their kernels. The current stream waits
  /// for `work`.
  virtual void warm_up(const Work& work) = 0;
  /// Calls `work` and records the work that it launches, without executing it. Waits for the
  /// device.
  /// @throws the exceptions of `work`; c10::Error for work that cannot be recorded. After an
  /// exception, nothing is recorded, the allocator and the stream work as before, and the state of
  /// the device's default generator is unchanged. Gradients and other results of `work` then have
  /// undefined values.
  [[nodiscard]] virtual std::unique_ptr<Recording> record(const Work& work) = 0;
  /// Returns unused memory to the device. Before this call, other work may be unable to use the
  /// memory of destroyed recordings.
  virtual void free_unused_memory() = 0;
};

/// @return null in a build without CUDA.
[[nodiscard]] std::unique_ptr<GraphRecorder> make_graph_recorder(at::Device device);

}  // namespace precast::engine
