#include "products.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/addmv.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <atomic>
#include <future>

namespace sparse_regression {
namespace {

/// The number of parts into which the rows of a batch are divided. It is the same for any number of
/// threads, so sums are bitwise identical.
constexpr std::int64_t kParts = 8;
/// Number of values in a block: 512 KiB of float32, half of an L2 cache of 1 MiB. On a GPU, a block
/// takes 256 MiB of its memory.
constexpr std::int64_t kCpuBlock = std::int64_t{1} << 17;
constexpr std::int64_t kGpuBlock = std::int64_t{1} << 26;
/// ATen sums up to this many values in one thread, and divides longer sums among threads.
constexpr std::int64_t kSerialSum = 4096;

}  // namespace

BatchProducts::BatchProducts(std::int64_t features, at::Device device, int threads)
    : features_(features),
      device_(device),
      threads_(threads),
      scratch_(device.is_cpu() ? kParts : 1) {}

std::int64_t BatchProducts::block_rows() const {
  return std::max<std::int64_t>(1, (device_.is_cpu() ? kCpuBlock : kGpuBlock) / features_);
}

std::uint64_t BatchProducts::memory_bytes(std::int64_t features) {
  const std::int64_t block = std::max(features, kCpuBlock);
  // The pass that computes the moments has three rows of sums in each part.
  return static_cast<std::uint64_t>(kParts * (3 * features + 3 * block)) * sizeof(float);
}

at::Tensor BatchProducts::sum_blocks(const at::Tensor& rows, std::int64_t count,
                                     const AddBlock& add) {
  const auto parts = static_cast<std::int64_t>(scratch_.size());
  const std::int64_t part_rows = (rows.size(0) + parts - 1) / parts;
  const at::Tensor sums =
      at::zeros({parts, count, features_}, at::device(device_).dtype(at::kFloat));
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    const at::AutoDispatchBelowADInplaceOrView without_autograd;
    for (std::int64_t part = next++; part < parts; part = next++) {
      at::Tensor& scratch = scratch_[static_cast<std::size_t>(part)];
      if (!scratch.defined() && rows.scalar_type() != at::kFloat)
        scratch = at::empty({block_rows(), features_}, at::device(device_).dtype(at::kFloat));
      at::Tensor part_sums = sums.select(0, part);
      const std::int64_t last = std::min(rows.size(0), (part + 1) * part_rows);
      for (std::int64_t first = part * part_rows; first < last; first += block_rows()) {
        const std::int64_t size = std::min(block_rows(), last - first);
        at::Tensor block = rows.narrow(0, first, size);
        if (rows.scalar_type() != at::kFloat) block = scratch.narrow(0, 0, size).copy_(block);
        add(block, first, part_sums);
      }
    }
  };
  {
    // A batch takes milliseconds, and a thread starts in a few dozen microseconds. OpenMP's threads
    // would spin after each product, which costs much more if other programs use the cores, too.
    std::vector<std::future<void>> others;
    for (int i = 1; i < std::min<std::int64_t>(threads_, parts); ++i)
      others.push_back(std::async(std::launch::async, work));
    work();
    for (std::future<void>& other : others) other.get();
  }
  at::Tensor total = sums.select(0, 0).to(at::kDouble);
  for (std::int64_t part = 1; part < parts; ++part) total.add_(sums.select(0, part));
  return total;
}

Products BatchProducts::multiply(const at::Tensor& rows, const at::Tensor& v,
                                 const at::Tensor& offset) {
  Products products{.residuals = at::empty_like(offset), .gradient = {}};
  const at::Tensor sums = sum_blocks(
      rows, /*count=*/1, [&](const at::Tensor& block, std::int64_t first, at::Tensor& total) {
        at::Tensor residuals = products.residuals.narrow(0, first, block.size(0));
        at::addmv_out(residuals, offset.narrow(0, first, block.size(0)), block, v, /*beta=*/-1);
        total.select(0, 0).addmv_(block.t(), residuals);
      });
  products.gradient = sums.select(0, 0);
  return products;
}

at::Tensor ordered_sum(const at::Tensor& values) {
  if (!values.device().is_cpu()) return values.sum(at::kDouble);
  at::Tensor total = at::zeros({}, at::kDouble);
  for (const at::Tensor& piece : values.split(kSerialSum)) total.add_(piece.sum(at::kDouble));
  return total;
}

}  // namespace sparse_regression
