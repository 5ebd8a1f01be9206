#include "framework/engine/kept_generators.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>

namespace precast::engine {

KeptGenerators::KeptGenerators(std::initializer_list<at::Device> devices) {
  for (const at::Device device : devices) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::scoped_lock lock(generator.mutex());
    states_.emplace_back(device, generator.get_state());
  }
}

void KeptGenerators::put_back() const {
  for (const auto& [device, state] : states_) {
    at::Generator generator = at::globalContext().defaultGenerator(device);
    const std::scoped_lock lock(generator.mutex());
    generator.set_state(state);
  }
}

}  // namespace precast::engine
