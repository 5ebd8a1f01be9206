#include "generate.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/special_ndtri.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "data/jobs/write_dataset.h"
#include "data/write/blob_fields.h"
#include "data/write/number_fields.h"
#include "framework/core/archive/npy.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/progress.h"
#include "framework/core/rng.h"

namespace sparse_regression {
namespace {

using precast::RandomStream;
using precast::RandomUse;
using precast::data::ArrayFormat;
using precast::data::Sample;

constexpr double kIntercept = 3;

/// Draws the samples. Thread-safe.
class Model {
 public:
  explicit Model(const GenerateOptions& options)
      : options_(options), rows_seed_(precast::derived_seed(options.seed, "rows")) {
    RandomStream features(precast::derived_seed(options.seed, "features"), 0, 0,
                          RandomUse::transform);
    for (std::int64_t i = 0; i < options.features; ++i) {
      means_.push_back(static_cast<float>(features.uniform(-1, 1)));
      deviations_.push_back(static_cast<float>(features.uniform(0.5, 2)));
    }
    const auto order = precast::random_permutation(static_cast<std::uint64_t>(options.features),
                                                   options.seed, /*epoch=*/0);
    for (std::int64_t i = 0; i < options.nonzeros; ++i)
      truth_.support.push_back(static_cast<std::int64_t>(order[static_cast<std::size_t>(i)]));
    std::ranges::sort(truth_.support);
    for (std::int64_t i = 0; i < options.nonzeros; ++i)
      truth_.coefficients.push_back(features.uniform(0.5, 1.5) * (features.below(2) == 0 ? -1 : 1));
    const at::Tensor ranks = (at::arange(65536, at::kDouble) + 0.5) / 65536;
    quantiles_ = at::special_ndtri(ranks).to(at::kFloat);
  }

  [[nodiscard]] const Truth& truth() const { return truth_; }
  [[nodiscard]] ArrayFormat format() const {
    return {options_.float32 ? "<f4" : "<f2", {static_cast<std::uint64_t>(options_.features)}};
  }

  [[nodiscard]] Sample sample(std::uint64_t i) const {
    RandomStream random(rows_seed_, 0, i, RandomUse::transform);
    const float* const quantiles = quantiles_.const_data_ptr<float>();
    at::Tensor row = at::empty({options_.features}, at::kFloat);
    float* const values = row.mutable_data_ptr<float>();
    // Each draw gives two features. A feature has 65,536 possible values, more than float16 can
    // distinguish.
    std::uint32_t draw = 0;
    for (std::size_t j = 0; j < means_.size(); ++j) {
      draw = j % 2 == 0 ? random.next_u32() : draw >> 16;
      values[j] = means_[j] + deviations_[j] * quantiles[draw & 0xffff];
    }
    row = row.to(options_.float32 ? at::kFloat : at::kHalf);
    // y is computed from the rounded features, so that the stored features explain everything but
    // the noise.
    const at::Tensor stored = row.to(at::kFloat);
    double y = kIntercept + options_.noise * random.normal();
    for (std::size_t k = 0; k < truth_.support.size(); ++k) {
      const auto j = static_cast<std::size_t>(truth_.support[k]);
      y +=
          truth_.coefficients[k] * (stored.const_data_ptr<float>()[j] - means_[j]) / deviations_[j];
    }
    std::vector<std::byte> bytes(row.nbytes());
    std::memcpy(bytes.data(), row.const_data_ptr(), bytes.size());
    return {.name = fmt::format("sample {}", i),
            .values = {precast::data::ArrayInput{format(), std::move(bytes)}, y}};
  }

 private:
  GenerateOptions options_;
  std::uint64_t rows_seed_;
  std::vector<float> means_;
  std::vector<float> deviations_;
  Truth truth_;
  /// Quantiles of the normal distribution, float32 [65536].
  at::Tensor quantiles_;
};

void write_arrays(const std::filesystem::path& path, const Model& model, std::int64_t samples) {
  const ArrayFormat format = model.format();
  precast::AtomicFile x(path.string() + ".x.npy");
  precast::AtomicFile y(path.string() + ".y.npy");
  const auto features = static_cast<std::int64_t>(format.shape[0]);
  x.append(precast::npy_header(format.dtype, std::array{samples, features}));
  y.append(precast::npy_header("<f8", std::array{samples}));
  precast::Progress progress;
  for (std::int64_t i = 0; i < samples; ++i) {
    const Sample sample = model.sample(static_cast<std::uint64_t>(i));
    x.append(std::get<precast::data::ArrayInput>(sample.values[0]).elements);
    const double target = std::get<double>(sample.values[1]);
    y.append(std::as_bytes(std::span(&target, 1)));
    if (progress.due()) progress.show(fmt::format("npy: sample {} of {}", i + 1, samples));
  }
  x.commit();
  y.commit();
}

}  // namespace

void generate(const std::filesystem::path& path, const GenerateOptions& options) {
  namespace data = precast::data;
  if (options.nonzeros > options.features)
    throw precast::ConfigError(fmt::format("--nonzeros: expected at most --features {}, got {}",
                                           options.features, options.nonzeros));
  const Model model(options);
  const ArrayFormat format = model.format();
  const std::vector<data::FieldPlan> fields = {
      {"x", [&] { return std::make_unique<data::ArrayField>(data::FieldType::ndarray, format); }},
      {"y", [] { return std::make_unique<data::FloatField>(); }}};
  {
    precast::Progress progress;
    data::WriteOptions write;
    write.workers = options.workers;
    // A page must have room for at least 8 samples, if the largest page size allows it.
    while (write.layout.page_bytes < 8 * data::array_bytes(format, "x") &&
           write.layout.page_bytes < data::kMaxPageBytes) {
      write.layout.page_bytes *= 2;
    }
    write.on_progress = [&](std::uint64_t samples, std::uint64_t bytes) {
      if (progress.due())
        progress.show(fmt::format("sample {} of {}, {}", samples, options.samples,
                                  precast::format_bytes(static_cast<double>(bytes))));
    };
    data::write_dataset(
        path, fields, static_cast<std::uint64_t>(options.samples),
        [&](std::uint64_t i) { return model.sample(i); }, write);
  }
  const nlohmann::ordered_json truth = {{"intercept", kIntercept},
                                        {"noise", options.noise},
                                        {"support", model.truth().support},
                                        {"coefficients", model.truth().coefficients}};
  precast::write_file(path.string() + ".truth.json", truth.dump() + "\n");
  if (options.npy) write_arrays(path, model, options.samples);
}

}  // namespace sparse_regression
