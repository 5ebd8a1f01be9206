#include "framework/engine/device_flag.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros.h>
#include <c10/core/impl/VirtualGuardImpl.h>

namespace precast::engine {

DeviceFlag::DeviceFlag(at::Device device)
    : count_(at::zeros({}, at::device(device).dtype(at::kLong))),
      copy_(at::zeros({}, at::device(at::kCPU).dtype(at::kLong).pinned_memory(device.is_cuda()))) {}

void DeviceFlag::add(const at::Tensor& loss) {
  raise_if(at::isfinite(loss).logical_not());
}

void DeviceFlag::raise_if(const at::Tensor& bad) {
  count_.add_(bad);
}

bool DeviceFlag::poll() {
  if (count_.device().is_cpu()) return read();
  const bool arrived = copy_event_ && copy_event_->query();
  const bool found = arrived && copy_.item<std::int64_t>() != 0;
  if (arrived || !copy_event_) begin_copy();
  return found;
}

bool DeviceFlag::read() const {
  return count_.item<std::int64_t>() != 0;
}

void DeviceFlag::reset() {
  count_.zero_();
  copy_event_.reset();
}

void DeviceFlag::begin_copy() {
  copy_.copy_(count_, /*non_blocking=*/true);
  const c10::Device device = count_.device();
  copy_event_.emplace(device.type());
  copy_event_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

}  // namespace precast::engine
