#include "data/jobs/copy_dataset.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "data/beton/layout.h"
#include "data/write/custom_field.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

/// The arguments of a field's descriptor for the copy: without the mark of a file that has
/// checksums, which the new file may not have, and with the layout of a custom field.
std::vector<std::byte> arguments_of(const BetonReader& file, std::size_t field) {
  const auto bytes = file.bytes().subspan(kHeaderBytes + field * kFieldBytes + 1 + kFieldNameBytes,
                                          kFieldArgumentsBytes);
  std::vector<std::byte> arguments(bytes.begin(), bytes.end());
  std::byte* const flag = arguments.data() + kSumsFlagAt;
  if (field == 0 && load<std::uint64_t>(flag) == kSumsFlag) store(flag, std::uint64_t{0});
  const FieldInfo& info = file.fields()[field];
  if (info.type != FieldType::custom) return arguments;
  return CustomField(info.layout, std::move(arguments)).arguments();
}

std::string describe(const FieldInfo& field) {
  const std::string array =
      field.dtype.empty() ? "" : fmt::format(" {} ({})", field.dtype, fmt::join(field.shape, ", "));
  return fmt::format("'{}' {}{}", field.name, field_type_name(field.type), array);
}

/// Takes a place in the new file as its value, and returns the content of the field of the sample
/// that belongs there.
class CopiedField final : public Field {
 public:
  CopiedField(const DatasetCopy& copy, std::size_t field)
      : copy_(copy), field_(field), type_(copy.files.front()->fields()[field].type) {}

  [[nodiscard]] FieldType type() const override { return type_; }
  [[nodiscard]] std::vector<std::byte> arguments() const override {
    return arguments_of(*copy_.files.front(), field_);
  }

  /// The pointer in the metadata is overwritten by the writer.
  void encode(const Value& place, std::uint64_t /*sample*/, EncodedValue& out) override {
    const CopiedSample from = copy_.sample(static_cast<std::uint64_t>(std::get<0>(place)));
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

void check_same_fields(const BetonReader& first, const BetonReader& other) {
  const auto fail = [&](const std::string& expected, const std::string& got) {
    throw DataError(fmt::format("{}: expected {} as in {}, got {}", other.path().string(), expected,
                                first.path().string(), got));
  };
  const auto& fields = first.fields();
  for (std::size_t i = 0; i < std::min(fields.size(), other.fields().size()); ++i) {
    const FieldInfo& a = fields[i];
    const FieldInfo& b = other.fields()[i];
    const auto same = [](const FieldInfo& l, const FieldInfo& r) {
      return l.name == r.name && l.type == r.type && l.dtype == r.dtype && l.shape == r.shape;
    };
    if (!same(a, b)) fail("field " + describe(a), describe(b));
    if (arguments_of(first, i) != arguments_of(other, i))
      fail("the arguments of field " + describe(a), "others");
  }
  if (fields.size() != other.fields().size())
    fail(fmt::format("{} fields", fields.size()), fmt::format("{}", other.fields().size()));
}

std::uint64_t copy_page_bytes(const std::vector<const BetonReader*>& files) {
  std::uint64_t page = kMinPageBytes;
  for (const BetonReader* file : files) {
    page = std::max<std::uint64_t>(page, file->header().page_bytes);
    for (std::uint64_t sample = 0; sample < file->size(); ++sample) {
      std::uint64_t bytes = 0;
      // The writer gives an empty value a byte.
      for (std::size_t field = 0; field < file->fields().size(); ++field)
        bytes += std::max<std::uint64_t>(1, file->blob_bytes(sample, field));
      page = std::max(page, std::bit_ceil(bytes));
    }
  }
  return std::min(page, kMaxPageBytes);
}

WriteSummary copy_dataset(const std::filesystem::path& path, const DatasetCopy& copy,
                          const WriteOptions& options) {
  require(!copy.files.empty(), "a copy has a file to copy from");
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
