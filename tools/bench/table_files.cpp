#include "tools/bench/table_files.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/jobs/write_dataset.h"
#include "data/order/subset.h"
#include "data/sources/register.h"
#include "data/write/image_field.h"
#include "data/write/number_fields.h"
#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/commands/dataset_output.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;

std::size_t first_field(const data::Source& source, std::string_view type) {
  const auto& fields = source.fields();
  return static_cast<std::size_t>(std::ranges::find(fields, type, &data::SourceField::type) -
                                  fields.begin());
}

data::ImageFieldOptions image_options(const TableFile& file) {
  data::ImageFieldOptions options;
  options.mode = file.mode == "jpg"   ? data::ImageWriteMode::jpg
                 : file.mode == "raw" ? data::ImageWriteMode::raw
                                      : data::ImageWriteMode::proportion;
  options.max_resolution_px = file.max_resolution_px;
  if (file.quality > 0) options.jpeg_quality = file.quality;
  return options;
}

/// Returns properties that identify a source, without reading its samples.
std::string identity_of(const fs::path& source, std::uint64_t size, std::uint64_t count) {
  std::error_code none;  // ignored: a source may also be a list of shards
  const fs::path path = fs::weakly_canonical(source, none);
  const std::uintmax_t bytes = fs::is_regular_file(path, none) ? fs::file_size(path, none) : 0;
  const auto time = fs::last_write_time(path, none).time_since_epoch().count();
  return fmt::format("{}|{}|{}|{}|{}", path.string(), bytes, time, size, count);
}

}  // namespace

TableFiles::TableFiles(const fs::path& source, fs::path folder, std::uint64_t count)
    : folder_(std::move(folder)), source_(data::open_source(source)) {
  image_ = first_field(*source_, "image");
  label_ = first_field(*source_, "int");
  if (image_ == source_->fields().size())
    throw DataError(fmt::format("{}: expected images, got none", source.string()));
  const std::uint64_t size = source_->size();
  samples_.resize(std::min(size, count));
  std::iota(samples_.begin(), samples_.end(), 0);
  if (count < size) {
    const data::SampleSet drawn = data::choose_subset(fmt::format("random:{}", count), size, "");
    for (std::uint64_t i = 0; i < drawn.size(); ++i) samples_[i] = drawn[i];
  }
  const std::string identity = identity_of(source, size, samples_.size());
  digest_ = fmt::format("{:016x}", XXH3_64bits(identity.data(), identity.size()));
}

fs::path TableFiles::path(const TableFile& file, int copies) const {
  return folder_ / fmt::format("{}_{}x{}_{}.beton", file.name, copies, samples_.size(), digest_);
}

void TableFiles::write(const TableFile& file, int copies) const {
  const fs::path out = path(file, copies);
  if (fs::exists(out)) return;
  fs::create_directories(folder_);
  const bool labelled = label_ < source_->fields().size();
  std::vector<data::FieldPlan> fields = {
      {"image", [&] { return std::make_unique<data::ImageField>(image_options(file)); }}};
  if (labelled) fields.push_back({"label", [] { return std::make_unique<data::IntField>(); }});
  const auto provide = [&](std::uint64_t i) {
    data::Sample sample = source_->sample(samples_[i % samples_.size()]);
    data::Sample kept{.name = std::move(sample.name), .values = {}};
    kept.values.push_back(std::move(sample.values[image_]));
    if (labelled) kept.values.push_back(std::move(sample.values[label_]));
    return kept;
  };
  const std::uint64_t total = samples_.size() * static_cast<std::uint64_t>(copies);
  data::WriteOptions options;
  options.workers = usable_cores();
  MonitoredWrite("write").run(out.string(), total, options, [&](const data::WriteOptions& watched) {
    return data::write_dataset(out, fields, total, provide, watched);
  });
}

}  // namespace precast::tools
