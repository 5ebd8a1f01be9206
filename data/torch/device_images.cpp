#include "data/torch/device_images.h"

#include <ATen/cuda/CUDAEvent.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "data/loader/image_planner.h"
#include "framework/core/cancel.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "framework/core/progress.h"

namespace precast::data {
namespace {

/// Copies bytes to consecutive addresses on the device, in page-locked chunks: while one chunk is
/// copied, the next one is filled.
class ChunkCopier {
 public:
  ChunkCopier(std::uint8_t* device, std::size_t chunk_bytes)
      : device_(device), chunk_bytes_(chunk_bytes), stream_(c10::cuda::getCurrentCUDAStream()) {
    for (at::Tensor& chunk : chunks_) {
      chunk = at::empty({static_cast<std::int64_t>(chunk_bytes)},
                        at::TensorOptions(at::kByte).pinned_memory(true));
    }
  }
  ChunkCopier(const ChunkCopier&) = delete;
  ChunkCopier& operator=(const ChunkCopier&) = delete;
  ~ChunkCopier() { cudaStreamSynchronize(stream_); }

  void add(const std::uint8_t* bytes, std::size_t count) {
    while (count > 0) {
      const std::size_t part = std::min(count, chunk_bytes_ - filled_);
      std::memcpy(current().mutable_data_ptr<std::uint8_t>() + filled_, bytes, part);
      filled_ += part;
      bytes += part;
      count -= part;
      if (filled_ == chunk_bytes_) flush();
    }
  }
  /// Copies the last, incomplete chunk, and waits for all copies.
  void finish() {
    flush();
    stream_.synchronize();
  }

 private:
  at::Tensor& current() { return chunks_[chunk_index_]; }

  void flush() {
    if (filled_ == 0) return;
    C10_CUDA_CHECK(cudaMemcpyAsync(device_, current().const_data_ptr(), filled_,
                                   cudaMemcpyHostToDevice, stream_));
    copied_[chunk_index_].record(stream_);
    device_ += filled_;
    filled_ = 0;
    chunk_index_ = (chunk_index_ + 1) % chunks_.size();
    copied_[chunk_index_].synchronize();
  }

  std::uint8_t* device_;
  std::size_t chunk_bytes_;
  c10::cuda::CUDAStream stream_;
  std::array<at::Tensor, 2> chunks_;
  std::array<at::cuda::CUDAEvent, 2> copied_;
  std::size_t chunk_index_ = 0;
  std::size_t filled_ = 0;
};

void check_free_memory(const BetonReader& reader, std::uint64_t bytes) {
  // Memory that earlier work no longer uses counts as free.
  c10::cuda::CUDACachingAllocator::emptyCache();
  std::size_t free = 0;
  std::size_t total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  if (bytes <= free) return;
  throw Error(
      fmt::format(
          "data.in_memory: with gpu, expected images that fit in the {} of free GPU memory, "
          "got {} ({}). Use 1 or 2, or write the file with a smaller --image.max_resolution",
          format_bytes(static_cast<double>(free)), format_bytes(static_cast<double>(bytes)),
          reader.path().string()),
      ExitCode::out_of_memory);
}

}  // namespace

DeviceImages::DeviceImages(const BetonReader& reader, std::size_t field, at::Device device,
                           const DeviceImageOptions& options) {
  const c10::cuda::CUDAGuard guard(device);
  const auto samples = static_cast<std::int64_t>(reader.size());
  const at::Tensor offsets = at::empty({samples}, at::kLong);
  const at::Tensor widths = at::empty({samples}, at::kInt);
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    // The loader reports or replaces damaged samples, so no plan refers to them.
    const StoredPixels image =
        mapped_pixels(reader, static_cast<std::uint64_t>(i), field).value_or(StoredPixels{});
    offsets.mutable_data_ptr<std::int64_t>()[i] = bytes;
    widths.mutable_data_ptr<std::int32_t>()[i] = image.width;
    max_width_ = std::max(max_width_, image.width);
    bytes += std::int64_t{3} * image.height * image.width;
  }
  check_free_memory(reader, static_cast<std::uint64_t>(bytes));
  pixels_ = at::empty({bytes}, at::device(device).dtype(at::kByte));
  complete_ = copy_pixels(reader, field, options);
  offsets_ = offsets.to(device);
  widths_ = widths.to(device);
}

bool DeviceImages::copy_pixels(const BetonReader& reader, std::size_t field,
                               const DeviceImageOptions& options) {
  ChunkCopier copier(pixels_.mutable_data_ptr<std::uint8_t>(), options.chunk_bytes);
  Progress progress;
  std::vector<std::uint8_t> converted;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    if (is_set(options.cancel)) return false;
    const std::optional<StoredPixels> image = mapped_pixels(reader, sample, field);
    if (!image) continue;
    const ImageView rgb = rgb_of(*image, {0, 0, image->height, image->width}, converted);
    copier.add(rgb.pixels, std::size_t{3} * static_cast<std::size_t>(rgb.height) *
                               static_cast<std::size_t>(rgb.width));
    if (options.show_progress && progress.due()) {
      progress.show(fmt::format("copying images to the GPU: {} of {}, {}", sample + 1,
                                reader.size(), progress.rate(sample + 1, reader.size())));
    }
  }
  copier.finish();
  return true;
}

StoredImages DeviceImages::stored() const {
  return {
      .pixels = pixels_.const_data_ptr<std::uint8_t>(),
      .offsets = reinterpret_cast<const std::uint64_t*>(offsets_.const_data_ptr<std::int64_t>()),
      .widths = widths_.const_data_ptr<std::int32_t>(),
      .max_width = max_width_};
}

}  // namespace precast::data
