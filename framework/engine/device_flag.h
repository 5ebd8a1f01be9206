#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <optional>

#include "framework/core/export.h"

namespace precast::engine {

/// Counts non-finite losses on the device, and lets the host read the count without waiting for the
/// device: the count is copied asynchronously, and the host reads the result of the last finished
/// copy. Not thread-safe.
class PRECAST_API DeviceFlag {
 public:
  explicit DeviceFlag(at::Device device);
  /// Raises the flag if `loss` is not finite. @param loss scalar on the device.
  void add(const at::Tensor& loss);
  /// Raises the flag if `bad` is true. @param bad scalar bool on the device.
  void raise_if(const at::Tensor& bad);
  /// Whether the flag is raised, as far as is known without waiting. On a GPU, this is the result
  /// of a copy that has arrived since the last call, and false if none has; the next copy is then
  /// started unless one is under way.
  [[nodiscard]] bool poll();
  /// Whether the flag is raised now; waits for the device.
  [[nodiscard]] bool read() const;
  void reset();

 private:
  void begin_copy();

  at::Tensor count_;
  /// Page-locked if the device is a GPU.
  at::Tensor copy_;
  std::optional<c10::Event> copy_event_;
};

}  // namespace precast::engine
