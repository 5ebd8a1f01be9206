#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <initializer_list>
#include <utility>
#include <vector>

namespace precast::engine {

/// The default generators of some devices, as they were when this was made. Does not wait for a
/// device.
class KeptGenerators {
 public:
  KeptGenerators(std::initializer_list<at::Device> devices);
  void put_back() const;

 private:
  std::vector<std::pair<at::Device, at::Tensor>> states_;
};

}  // namespace precast::engine
