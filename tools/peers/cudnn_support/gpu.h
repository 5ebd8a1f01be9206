// GPU memory filled with random numbers, and a stopwatch for the GPU. All work runs in the default
// stream.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace cudnn_graphs {

inline void check_cuda(cudaError_t error, const std::string& what) {
  if (error != cudaSuccess) throw std::runtime_error(what + ": " + cudaGetErrorString(error));
}

class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes) {
    check_cuda(cudaMalloc(&data_, bytes),
               "cannot allocate " + std::to_string(bytes) + " bytes on the GPU");
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { cudaFree(data_); }
  char* data() const { return static_cast<char*>(data_); }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Fills memory with uniform random numbers. Zeros would need less power, and a GPU that needs less
/// power runs faster.
class Noise {
 public:
  Noise() : block_(kBlock * sizeof(_Float16)) { upload<_Float16>(block_, kBlock, 1.0f); }

  void fill_floats(const Buffer& buffer, float magnitude) {
    upload<float>(buffer, buffer.bytes() / sizeof(float), magnitude);
  }
  void fill_halves(const Buffer& buffer, float magnitude) {
    if (magnitude != 1.0f || buffer.bytes() < block_.bytes()) {
      upload<_Float16>(buffer, buffer.bytes() / sizeof(_Float16), magnitude);
      return;
    }
    // Fills the buffer with copies of one block. They start at a random offset, so that no two
    // buffers are equal. The length of the block is a prime, so that the copies do not line up with
    // the images.
    std::size_t begin = (random_() % kBlock) * sizeof(_Float16);
    for (std::size_t at = 0; at < buffer.bytes();) {
      const std::size_t bytes = std::min(block_.bytes() - begin, buffer.bytes() - at);
      check_cuda(cudaMemcpyAsync(buffer.data() + at, block_.data() + begin, bytes,
                                 cudaMemcpyDeviceToDevice),
                 "cannot fill memory");
      at += bytes;
      begin = 0;
    }
  }

 private:
  static constexpr std::size_t kBlock = 4'194'301;

  template <typename Value>
  void upload(const Buffer& buffer, std::size_t count, float magnitude) {
    std::uniform_real_distribution<float> uniform(-magnitude, magnitude);
    std::vector<Value> values(count);
    for (Value& value : values) value = static_cast<Value>(uniform(random_));
    check_cuda(
        cudaMemcpy(buffer.data(), values.data(), count * sizeof(Value), cudaMemcpyHostToDevice),
        "cannot fill memory");
  }

  std::minstd_rand random_;
  Buffer block_;
};

/// Measures how long the GPU needs for work that the host enqueues.
class Stopwatch {
 public:
  Stopwatch() : scratch_(std::size_t{1} << 30) {
    check_cuda(cudaEventCreate(&begin_), "cannot create an event");
    check_cuda(cudaEventCreate(&end_), "cannot create an event");
  }
  ~Stopwatch() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  /// The mean time of `runs` calls of `enqueue`, in microseconds.
  template <typename Enqueue>
  double mean_us(int runs, const Enqueue& enqueue) {
    // Keeps the GPU busy while the host enqueues, so that the GPU does not wait for the host later.
    check_cuda(cudaMemsetAsync(scratch_.data(), 1, scratch_.bytes()), "cannot set memory");
    check_cuda(cudaEventRecord(begin_), "cannot record an event");
    for (int i = 0; i < runs; ++i) enqueue();
    check_cuda(cudaEventRecord(end_), "cannot record an event");
    check_cuda(cudaEventSynchronize(end_), "the GPU failed");
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, begin_, end_), "cannot read the time");
    return 1000.0 * static_cast<double>(ms) / runs;
  }

  /// The median, over five windows of about 2 ms (at most 40 runs), of the mean time of a run in
  /// microseconds, after two warm-up runs. If the second warm-up run needs more than three times
  /// `best_us`, returns its time at once.
  template <typename Enqueue>
  double median_us(double best_us, const Enqueue& enqueue) {
    mean_us(1, enqueue);
    const double once = mean_us(1, enqueue);
    if (once > 3 * best_us) return once;
    const int runs = std::clamp(static_cast<int>(2000 / std::max(once, 1.0)), 1, 40);
    std::vector<double> windows(5);
    for (double& window : windows) window = mean_us(runs, enqueue);
    std::sort(windows.begin(), windows.end());
    return windows[windows.size() / 2];
  }

 private:
  Buffer scratch_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace cudnn_graphs
