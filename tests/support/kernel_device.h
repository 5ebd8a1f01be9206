#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace precast::test {

// The device on which the kernels of a test run. A test is written once and built twice: in
// kernels_test, kernels run on the host (kernel_device_host.cpp, see cuda_on_host.h), in
// kernels_gpu_test on the first GPU (kernel_device_gpu.cpp).

/// The reason why kernels cannot run here; empty if they can.
[[nodiscard]] std::string missing_device();

/// Tests that are skipped where kernels cannot run.
class DeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_device(); !reason.empty()) GTEST_SKIP() << reason;
  }
};

/// Memory of the device, filled with bytes 0xff: NaN in each type of float. Aligned to at least 16
/// bytes. Accesses outside it are reported by AddressSanitizer on the host and by compute-sanitizer
/// on a GPU. @throws std::runtime_error if a GPU cannot allocate it.
[[nodiscard]] std::shared_ptr<void> device_memory(std::size_t bytes);
void copy_to_device(void* to, const void* from, std::size_t bytes);
void copy_from_device(void* to, const void* from, std::size_t bytes);

/// Calls `launches` several times, on the host each time with a different order of threads and
/// blocks, and waits for the kernels. @throws std::runtime_error if the device reports a failure.
void in_several_orders(const std::function<void()>& launches);

/// An array on the device.
template <typename T>
class DeviceArray {
 public:
  /// Filled with bytes 0xff.
  explicit DeviceArray(std::size_t size) : size_(size), memory_(device_memory(size * sizeof(T))) {}
  explicit DeviceArray(std::span<const T> values) : DeviceArray(values.size()) {
    copy_to_device(data(), values.data(), values.size_bytes());
  }
  [[nodiscard]] T* data() const { return static_cast<T*>(memory_.get()); }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> values(size_);
    copy_from_device(values.data(), data(), size_ * sizeof(T));
    return values;
  }

 private:
  std::size_t size_;
  std::shared_ptr<void> memory_;
};

}  // namespace precast::test
