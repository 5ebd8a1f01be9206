#include "sample_stream.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <utility>

#include "data/beton/dtype.h"
#include "data/loader/loader.h"
#include "data/order/order.h"
#include "data/torch/batch_source.h"
#include "data/transforms/pipeline.h"
#include "framework/core/error.h"

namespace sparse_regression {
namespace {

namespace data = precast::data;

/// The image size that interfaces of precast require even for a file without images.
constexpr std::int64_t kNoImages = 1;

/// Index of the field with this name, which must have one of the types. @throws precast::DataError
std::size_t find_field(const data::BetonReader& reader, const std::string& name,
                       std::initializer_list<data::FieldType> types, const std::string& expected) {
  const std::size_t field = reader.field(name);
  for (const data::FieldType type : types)
    if (reader.fields()[field].type == type) return field;
  throw precast::DataError(
      fmt::format("{}: expected field '{}' to be {}, got a different type. "
                  "`precast inspect` lists the fields",
                  reader.path().string(), name, expected));
}

/// The length of each sample's array. @throws precast::DataError
std::int64_t check_features(const data::BetonReader& reader, const std::string& name) {
  const std::size_t field = find_field(
      reader, name, {data::FieldType::ndarray, data::FieldType::tensor}, "an array of floats");
  const data::ArrayFormat array{reader.fields()[field].dtype, reader.fields()[field].shape};
  if ((array.dtype == "<f2" || array.dtype == "<f4") && array.shape.size() == 1)
    return static_cast<std::int64_t>(array.shape[0]);
  throw precast::DataError(
      fmt::format("{}: expected field '{}' to be [features] of float16 (<f2) or float32 (<f4), "
                  "got {}",
                  reader.path().string(), name, data::describe(array)));
}

/// @throws precast::DataError for a target that is not finite.
at::Tensor read_targets(const data::BetonReader& reader, const std::string& name) {
  using data::FieldType;
  const std::size_t field =
      find_field(reader, name, {FieldType::floating, FieldType::integer}, "a number");
  const bool integers = reader.fields()[field].type == FieldType::integer;
  at::Tensor targets = at::empty({static_cast<std::int64_t>(reader.size())}, at::kDouble);
  double* const values = targets.mutable_data_ptr<double>();
  for (std::uint64_t i = 0; i < reader.size(); ++i) {
    values[i] =
        integers ? static_cast<double>(reader.integer(i, field)) : reader.floating(i, field);
    if (!std::isfinite(values[i]))
      throw precast::DataError(fmt::format("{}: expected a finite target, got {} (sample {}, '{}')",
                                           reader.path().string(), values[i], i, name));
  }
  return targets;
}

}  // namespace

SampleStream::SampleStream(const std::filesystem::path& path, const StreamOptions& options)
    : options_(options),
      reader_(path,
              options.direct_io ? data::BlobAccess::on_disk_direct : data::BlobAccess::on_disk),
      features_(check_features(reader_, options.features_field)),
      targets_(read_targets(reader_, options.target_field)) {
  // The target is already in memory, but a batch source requires an output for it.
  data::Pipeline pipeline;
  for (const std::string& field : {options.features_field, options.target_field})
    pipeline.outputs.push_back({.name = field, .field = field});
  data::LoaderOptions loader;
  loader.batch_size = options.batch_size;
  loader.workers = options.workers;
  loader.seed = options.seed;
  loader.cache_bytes = 0;
  const std::uint64_t page = reader_.header().page_bytes;
  const auto order = [&](std::uint64_t pages) {
    return data::make_order(reader_, {.name = options.order, .window_pages = pages});
  };
  loader.order = order(1);
  // Code and buffers of libraries that are loaded with the first batches.
  constexpr std::uint64_t kLibraries = std::uint64_t{64} << 20;
  const std::uint64_t used = kLibraries + resident_bytes() +
                             (options.reserved ? options.reserved(samples(), features_) : 0) +
                             data::plan_memory(reader_, pipeline, loader, kNoImages).own();
  constexpr std::uint64_t kMinPages = 8;
  if (used + kMinPages * page > options.memory_bytes)
    throw precast::ConfigError(
        fmt::format("--memory-mb: expected at least {}, got {}. A smaller --batch-size needs less",
                    ((used + kMinPages * page) >> 20) + 1, options.memory_bytes >> 20));
  loader.cache_bytes =
      std::min(options.memory_bytes - used, reader_.file_bytes() * 5 / 4 + 8 * page);
  loader.order = order(std::max<std::uint64_t>(1, loader.cache_bytes / page / 2));
  plan_ = data::plan_memory(reader_, pipeline, loader, kNoImages);
  source_ = data::make_batch_source(reader_, pipeline, loader,
                                    {{options.features_field}, {options.target_field}},
                                    options.device, at::kFloat);
}

SampleStream::~SampleStream() = default;

void SampleStream::pass(const Visit& visit) {
  const double begin = now_seconds();
  source_->begin_epoch({.epoch = statistics_.passes, .image_size_px = kNoImages});
  while (std::optional<precast::Batch> batch = source_->next()) {
    const at::Tensor ids = at::from_blob(
        batch->sample_ids.data(), {static_cast<std::int64_t>(batch->sample_ids.size())}, at::kLong);
    visit(batch->input(), ids.to(options_.device));
  }
  ++statistics_.passes;
  statistics_.seconds += now_seconds() - begin;
}

StreamStatistics SampleStream::statistics() const {
  StreamStatistics statistics = statistics_;
  statistics.seconds_waited = source_->seconds_waited();
  return statistics;
}

double now_seconds() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

std::uint64_t resident_bytes() {
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t peak_resident_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace sparse_regression
