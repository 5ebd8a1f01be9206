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
  const bool arrived = copied_ && copied_->query();
  const bool found = arrived && copy_.item<std::int64_t>() != 0;
  if (arrived || !copied_) begin_copy();
  return found;
}

bool DeviceFlag::read() const {
  return count_.item<std::int64_t>() != 0;
}

void DeviceFlag::reset() {
  count_.zero_();
  copied_.reset();
}

void DeviceFlag::begin_copy() {
  copy_.copy_(count_, /*non_blocking=*/true);
  const c10::Device device = count_.device();
  copied_.emplace(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
}

}  // namespace precast::engine
