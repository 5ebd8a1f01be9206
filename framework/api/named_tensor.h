#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace precast {

struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

}  // namespace precast
