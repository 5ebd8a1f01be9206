#include "framework/engine/generator_snapshot.h"

#include <ATen/Context.h>
#include <ATen/core/Generator.h>

#include <mutex>

namespace precast::engine {

at::Tensor generator_state(at::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_generator_state(at::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

GeneratorSnapshot::GeneratorSnapshot(std::initializer_list<at::Device> devices) {
  for (const at::Device device : devices) states_.emplace_back(device, generator_state(device));
}

void GeneratorSnapshot::restore() const {
  for (const auto& [device, state] : states_) set_generator_state(device, state);
}

}  // namespace precast::engine
