#include "data/jobs/copy_dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/beton/layout.h"
#include "data/beton/several_files.h"
#include "data/write/custom_field.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// Returns the arguments of a field's descriptor in the copy. The mark of a file with checksums is
/// removed, because the copy may have no checksums. For a custom field, adds a tag that contains
/// its layout.
std::vector<std::byte> arguments_of(const BetonReader& file, std::size_t field) {
  std::vector<std::byte> arguments = arguments_without_sums(file, field);
  const FieldInfo& info = file.fields()[field];
  if (info.type != FieldType::custom) return arguments;
  return CustomField(info.layout, std::move(arguments)).arguments();
}

/// Copies one field. The value passed to encode() is a position in the new file; encode() copies
/// the field's value from the sample that belongs at this position.
class CopiedField final : public Field {
 public:
  CopiedField(const DatasetCopy& copy, std::size_t field)
      : copy_(copy), field_(field), type_(copy.files.front()->fields()[field].type) {}

  [[nodiscard]] FieldType type() const override { return type_; }
  [[nodiscard]] std::vector<std::byte> arguments() const override {
    return arguments_of(*copy_.files.front(), field_);
  }

  /// The writer overwrites the pointer in the metadata.
  void encode(const Value& index, std::uint64_t /*sample*/, EncodedValue& out) override {
    const CopiedSample from = copy_.sample(static_cast<std::uint64_t>(std::get<0>(index)));
    const BetonReader& file = *copy_.files[from.file];
    const auto metadata = file.metadata(from.sample, field_);
    out.metadata.assign(metadata.begin(), metadata.end());
    out.blob.clear();
    if (copy_.relabel && type_ == FieldType::integer && field_ == copy_.label_field)
      store(out.metadata.data(), copy_.relabel(from.file, file.integer(from.sample, field_)));
    if (!file.fields()[field_].has_pointer()) return file.check_movable(from.sample, field_);
    const auto blob = file.blob(from.sample, field_);
    file.check_value(from.sample, field_, blob);
    out.blob.assign(blob.begin(), blob.end());
  }

 private:
  const DatasetCopy& copy_;
  std::size_t field_;
  FieldType type_;
};

}  // namespace

WriteSummary copy_dataset(const std::filesystem::path& path, const DatasetCopy& copy,
                          const WriteOptions& options) {
  require(!copy.files.empty(), "a copy has at least one source file");
  const std::vector<FieldInfo>& fields = copy.files.front()->fields();
  std::vector<FieldPlan> plans;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    plans.push_back(
        {fields[i].name, [&copy, i] { return std::make_unique<CopiedField>(copy, i); }});
  }
  const auto provider = [&](std::uint64_t i) {
    const CopiedSample from = copy.sample(i);
    return Sample{fmt::format("{}:{}", copy.files[from.file]->path().string(), from.sample),
                  std::vector<Value>(fields.size(), static_cast<std::int64_t>(i))};
  };
  return write_dataset(path, plans, copy.num_samples, provider, options);
}

}  // namespace precast::data
