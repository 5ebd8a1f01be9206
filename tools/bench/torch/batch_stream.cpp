#include "tools/bench/torch/batch_stream.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/normal.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/core.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

constexpr std::uint64_t kSeed = 0;
constexpr std::size_t kQueueCapacity = 4;

at::MemoryFormat memory_format(const FakeShape& shape) {
  return shape.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
}

Batch as_batch(at::Tensor images, at::Tensor labels) {
  Batch batch;
  batch.sample_ids.resize(static_cast<std::size_t>(labels.size(0)));
  std::iota(batch.sample_ids.begin(), batch.sample_ids.end(), std::uint64_t{0});
  batch.fields = {{"image", std::move(images)}, {"label", std::move(labels)}};
  return batch;
}

/// Draws batches on the host, in pinned memory if they are copied to a GPU.
class FakeBatches {
 public:
  explicit FakeBatches(const FakeShape& shape)
      : shape_(shape), generator_(at::make_generator<at::CPUGeneratorImpl>(kSeed)) {}

  Batch draw() {
    const auto pinned = at::TensorOptions().pinned_memory(!shape_.device.is_cpu());
    // Draws in place and in memory order, which needs no second pass to convert the layout.
    const at::Tensor images =
        at::empty({shape_.batch_size, shape_.channels, shape_.image_size_px, shape_.image_size_px},
                  pinned.dtype(at::kFloat), memory_format(shape_));
    images.normal_(0, 1, generator_);
    const at::Tensor labels = at::empty({shape_.batch_size}, pinned.dtype(at::kLong));
    labels.random_(shape_.classes, generator_);
    return as_batch(images, labels);
  }

 private:
  FakeShape shape_;
  at::Generator generator_;
};

Batch to_device(Batch batch, const FakeShape& shape) {
  batch.images() = batch.images().to(shape.device, shape.dtype, /*non_blocking=*/true);
  batch.labels() = batch.labels().to(shape.device, at::kLong, /*non_blocking=*/true);
  return batch;
}

class FixedStream final : public BatchStream {
 public:
  explicit FixedStream(Batch batch) : batch_(std::move(batch)) {}
  /// Copies only the handles of tensors: methods may replace a batch's tensors, but must not write
  /// to them.
  Batch next() override { return batch_; }

 private:
  Batch batch_;
};

class CpuStream final : public BatchStream {
 public:
  explicit CpuStream(const FakeShape& shape) : shape_(shape), fake_(shape) {}
  Batch next() override { return to_device(fake_.draw(), shape_); }

 private:
  FakeShape shape_;
  FakeBatches fake_;
};

class QueueStream final : public BatchStream {
 public:
  explicit QueueStream(const FakeShape& shape)
      : shape_(shape), producer_([this](const std::stop_token& stop) { produce(stop); }) {}

  Batch next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !batches_.empty() || failure_; });
    if (batches_.empty()) std::rethrow_exception(failure_);
    Batch batch = std::move(batches_.front());
    batches_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return to_device(std::move(batch), shape_);
  }

 private:
  void produce(const std::stop_token& stop) {
    try {
      FakeBatches fake(shape_);
      while (!stop.stop_requested()) {
        Batch batch = fake.draw();
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [&] { return batches_.size() < kQueueCapacity; })) return;
        batches_.push_back(std::move(batch));
        lock.unlock();
        changed_.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      changed_.notify_all();
    }
  }

  FakeShape shape_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<Batch> batches_;
  std::exception_ptr failure_;
  /// The last member, so that the thread stops before the members that it uses are destroyed.
  std::jthread producer_;
};

class EpochsStream final : public BatchStream {
 public:
  EpochsStream(BatchSource& source, EpochRequest request) : source_(source), request_(request) {
    source_.begin_epoch(request_);
  }

  Batch next() override {
    std::optional<Batch> batch = source_.next();
    if (!batch) {
      ++request_.epoch;
      source_.begin_epoch(request_);
      batch = source_.next();
    }
    require(batch.has_value(), "a pass has at least one batch");
    return std::move(*batch);
  }

 private:
  BatchSource& source_;
  EpochRequest request_;
};

}  // namespace

Batch make_fake_batch(const FakeShape& shape) {
  const at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(kSeed);
  const at::Tensor images = at::randn(
      {shape.batch_size, shape.channels, shape.image_size_px, shape.image_size_px}, generator);
  const at::Tensor labels = at::randint(shape.classes, {shape.batch_size}, generator, at::kLong);
  return to_device(as_batch(images.contiguous(memory_format(shape)), labels), shape);
}

std::unique_ptr<BatchStream> make_fake_stream(const std::string& location, const FakeShape& shape) {
  if (location == "device" || location == "gpu") return make_fixed_stream(make_fake_batch(shape));
  if (location == "cpu") return std::make_unique<CpuStream>(shape);
  if (location == "queue") return std::make_unique<QueueStream>(shape);
  throw ConfigError(
      fmt::format("--data: expected device, cpu, queue, FILE.beton, zmq://... or ring://NAME, got "
                  "'{}'",
                  location));
}

std::unique_ptr<BatchStream> make_epochs_stream(BatchSource& source, EpochRequest request) {
  return std::make_unique<EpochsStream>(source, request);
}

std::unique_ptr<BatchStream> make_fixed_stream(Batch batch) {
  return std::make_unique<FixedStream>(std::move(batch));
}

}  // namespace precast::tools
