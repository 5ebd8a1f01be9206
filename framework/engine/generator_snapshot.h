#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace precast::engine {

/// The state of a device's default random generator. Does not wait for the device.
[[nodiscard]] at::Tensor generator_state(at::Device device);
void set_generator_state(at::Device device, const at::Tensor& state);

/// Saves the states of the given devices' default random generators in its constructor. Does not
/// wait for a device. Not thread-safe.
class GeneratorSnapshot {
 public:
  GeneratorSnapshot(std::initializer_list<at::Device> devices);
  /// Restores the saved states.
  void restore() const;

 private:
  std::vector<std::pair<at::Device, at::Tensor>> states_;
};

}  // namespace precast::engine
