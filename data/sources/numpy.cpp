#include "data/sources/numpy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/beton/format.h"
#include "data/sources/archive.h"
#include "data/sources/npy_array.h"
#include "framework/core/archive/zip_file.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/lower_case.h"

namespace precast::data {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".npy";

using FieldWords = std::array<std::string_view, 5>;
/// The first word is the name of the field.
constexpr FieldWords kImageNames = {"image", "images", "img", "imgs", "x"};
constexpr FieldWords kLabelNames = {"label", "labels", "y", "target", "targets"};
/// The rank of a name that contains none of the words.
constexpr int kNoRank = 4;

/// How well a name fits the words; 0 is best. With the words `label` and `y`: 0 is `label`; 1 is
/// `y`; 2 is `y_train` or `train_y`, also with `test` or `val`; 3 is `y` with anything else before
/// or after an underscore (`y_pos`).
int rank_of(std::string_view name, const FieldWords& words) {
  const std::string lower = lower_case(name);
  if (lower == words[0]) return 0;
  int rank = kNoRank;
  for (const std::string_view word : words) {
    if (lower == word) return 1;
    for (const std::string_view split : {"train", "test", "val"})
      if (lower == fmt::format("{}_{}", word, split) || lower == fmt::format("{}_{}", split, word))
        return 2;
    if (lower.starts_with(fmt::format("{}_", word)) || lower.ends_with(fmt::format("_{}", word)))
      rank = 3;
  }
  return rank;
}

bool is_called(std::string_view name, const FieldWords& words) {
  return rank_of(name, words) != kNoRank;
}

double half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25));
}

/// An array with one row per sample.
struct Column {
  std::string name;
  NpyView array;
  std::uint64_t samples = 0;
  std::uint64_t row_bytes = 0;
  SourceField field;

  [[nodiscard]] std::span<const std::byte> row(std::uint64_t i) const {
    return array.elements.subspan(i * row_bytes, row_bytes);
  }
};

bool holds_pixels(const ArrayFormat& format) {
  const std::vector<std::uint64_t>& shape = format.shape;
  const bool grey = shape.size() == 3 || (shape.size() == 4 && shape[3] == 1);
  const bool sides = shape.size() >= 3 && shape[1] <= kMaxSidePx && shape[2] <= kMaxSidePx;
  return format.dtype == "|u1" && sides && (grey || (shape.size() == 4 && shape[3] == 3));
}

/// Returns the field that stores the rows of an array. @param is_unnamed whether the array comes
/// from a .npy file, so that its name has no meaning.
SourceField field_of(const std::string& name, const ArrayFormat& format, bool is_unnamed) {
  SourceField field{name.substr(0, kFieldNameBytes), "ndarray"};
  if (name.size() > kFieldNameBytes) field.full_name = name;
  const bool scalar =
      format.shape.size() == 1 || (format.shape.size() == 2 && format.shape[1] == 1);
  const char kind = format.dtype[1];
  if (holds_pixels(format) && (is_unnamed || is_called(name, kImageNames))) {
    field.type = "image";
  } else if (scalar && (kind == 'i' || kind == 'u' || kind == 'b')) {
    field.type = "int";
  } else if (scalar && kind == 'f' && dtype_bytes(format.dtype) <= sizeof(double)) {
    field.type = "float";
  } else if (format.shape.size() == 1 && kind == 'S') {
    field.type = "bytes";
  } else {
    field.array = {format.dtype, {format.shape.begin() + 1, format.shape.end()}};
    if (field.array.shape.empty()) field.array.shape.push_back(1);
  }
  return field;
}

/// @param bytes at most 8: view_npy() accepts no larger integers.
std::int64_t integer_of(std::span<const std::byte> bytes, bool is_signed) {
  std::uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  const std::size_t unused = 64 - 8 * bytes.size();
  if (is_signed) return static_cast<std::int64_t>(number << unused) >> unused;
  if (number > INT64_MAX)
    throw DataError(fmt::format("expected an integer of at most {}, got {}", INT64_MAX, number));
  return static_cast<std::int64_t>(number);
}

double float_of(std::span<const std::byte> bytes) {
  if (bytes.size() == 2) return half(load<std::uint16_t>(bytes.data()));
  if (bytes.size() == 4) return double{load<float>(bytes.data())};
  return load<double>(bytes.data());
}

Image image_of(const std::vector<std::uint64_t>& shape, std::span<const std::byte> bytes) {
  Image image(static_cast<int>(shape[1]), static_cast<int>(shape[2]));
  if (bytes.size() == image.pixels.size()) {
    std::memcpy(image.pixels.data(), bytes.data(), bytes.size());
    return image;
  }
  for (std::size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = std::to_integer<std::uint8_t>(bytes[i / 3]);
  return image;
}

Value value_of(const Column& column, std::uint64_t i) {
  const std::span<const std::byte> bytes = column.row(i);
  const std::string& type = column.field.type;
  if (type == "image") return ImageInput{{}, image_of(column.array.format.shape, bytes)};
  if (type == "int") return integer_of(bytes, column.array.format.dtype[1] == 'i');
  if (type == "float") return float_of(bytes);
  if (type == "ndarray") return ArrayInput{column.field.array, {bytes.begin(), bytes.end()}};
  std::size_t size = bytes.size();
  while (size > 0 && bytes[size - 1] == std::byte{0}) --size;
  return std::vector<std::byte>(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
}

class NumpySource final : public Source {
 public:
  NumpySource(const fs::path& path, const NumpyOptions& options) : path_(path) {
    if (path.extension() == kExtension) {
      add_file("array", path);
      if (const auto labels = labels_of(path, options)) add_file("label", *labels);
    } else {
      add_archive();
    }
    if (columns_.empty())
      throw DataError(fmt::format("{}: expected arrays (.npy members), got none", path.string()));
    for (const Column& column : columns_) {
      if (column.samples == columns_[0].samples) continue;
      throw DataError(fmt::format(
          "{}: expected arrays with the same number of rows, got {} of '{}' and {} of '{}'{}",
          path.string(), columns_[0].samples, columns_[0].name, column.samples, column.name,
          path.extension() == kExtension ? "" : ". Save each split in a separate file"));
    }
    choose_fields();
  }

  [[nodiscard]] std::uint64_t size() const override { return columns_[0].samples; }

  [[nodiscard]] Sample sample(std::uint64_t i) const override {
    Sample sample{fmt::format("{}[{}]", path_.string(), i), {}};
    for (const Column& column : columns_) {
      try {
        sample.values.push_back(value_of(column, i));
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}: {}: {}", sample.name, column.name, error.what()));
      }
    }
    return sample;
  }

 private:
  static std::optional<fs::path> labels_of(const fs::path& path, const NumpyOptions& options) {
    if (!options.labels.empty()) return options.labels;
    const std::string stem = path.stem().string();
    const std::string_view text = stem;
    std::vector<std::string> names = {fmt::format("{}_labels", stem)};
    const std::string lower = lower_case(stem);
    if (lower == "x" || lower.starts_with("x_"))
      names.push_back(fmt::format("{}{}", text[0] == 'x' ? 'y' : 'Y', text.substr(1)));
    const std::size_t images = lower.rfind("images");
    if (images != std::string::npos) {
      names.push_back(fmt::format("{}{}abels{}", text.substr(0, images),
                                  text[images] == 'i' ? 'l' : 'L', text.substr(images + 6)));
    }
    for (const std::string& name : names) {
      fs::path file = path.parent_path() / fmt::format("{}{}", name, kExtension);
      if (file != path && fs::exists(file)) return file;
    }
    return std::nullopt;
  }

  void add_file(const std::string& name, const fs::path& path) {
    const MappedFile& file = *files_.emplace_back(std::make_unique<MappedFile>(path));
    add(name, file.bytes(), path.string());
  }

  void add_archive() {
    const MappedFile& file = *files_.emplace_back(std::make_unique<MappedFile>(path_));
    try {
      const ZipReader zip(file.bytes(), path_.string());
      for (const std::string& member : zip.names()) {
        if (!member.ends_with(kExtension)) {
          ++notes_["skipped_files"];
          skipped_files_.add("not a .npy array", member);
          continue;
        }
        std::span<const std::byte> bytes;
        if (zip.is_stored(member)) {
          bytes = zip.read(member);
        } else {
          bytes = unpacked_.emplace_back(unzip_member(file.bytes(), member, path_.string()));
        }
        add(member.substr(0, member.size() - kExtension.size()), bytes,
            fmt::format("{}:{}", path_.string(), member));
      }
    } catch (const CheckpointError& error) {
      throw DataError(error.what());
    }
  }

  void add(const std::string& name, std::span<const std::byte> bytes, const std::string& place) {
    Column column{name, view_npy(bytes, place), 0, 0, {}};
    const std::vector<std::uint64_t>& shape = column.array.format.shape;
    if (shape.empty() || column.array.elements.empty()) {
      throw DataError(fmt::format("{}: expected an array with a row for each sample, got {}", place,
                                  describe(column.array.format)));
    }
    column.samples = shape[0];
    column.row_bytes = column.array.elements.size() / column.samples;
    columns_.push_back(std::move(column));
  }

  /// The order is: the image, the label, then all other columns as in the file.
  void choose_fields() {
    // The labels next to a .npy file are never its images.
    bool is_unnamed = path_.extension() == kExtension;
    for (Column& column : columns_)
      column.field = field_of(column.name, column.array.format, std::exchange(is_unnamed, false));
    const std::size_t images =
        promote(0, kImageNames, [](const Column& column) { return column.field.type == "image"; });
    (void)promote(images, kLabelNames, [](const Column& column) {
      return column.field.type == "int" && is_called(column.name, kLabelNames);
    });
    fields_.clear();
    for (const Column& column : columns_) fields_.push_back(column.field);
  }

  /// Moves the matching column whose name has the lowest rank (the first one, if several have it)
  /// to `place`, and names its field words[0], unless another array has this name. @return the
  /// position of the next column.
  std::size_t promote(std::size_t place, const FieldWords& words,
                      const std::function<bool(const Column&)>& matches) {
    const auto begin = columns_.begin() + static_cast<std::ptrdiff_t>(place);
    auto found = columns_.end();
    for (auto column = begin; column != columns_.end(); ++column) {
      if (!matches(*column)) continue;
      if (found == columns_.end() || rank_of(column->name, words) < rank_of(found->name, words))
        found = column;
    }
    if (found == columns_.end()) return place;
    if (std::ranges::find(columns_, words[0], &Column::name) == columns_.end()) {
      found->field.name = words[0];
      found->field.full_name.clear();
      // The array of a .npy file has no name.
      if (is_called(found->name, words)) found->field.chosen_from = found->name;
    }
    std::rotate(begin, found, found + 1);
    return place + 1;
  }

  fs::path path_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<std::vector<std::byte>> unpacked_;
  std::vector<Column> columns_;
};

}  // namespace

void NumpyOptions::options(Schema& schema) {
  schema.add("labels", &labels, "for a .npy file: the .npy file with its labels");
}

std::unique_ptr<Source> open_numpy(const fs::path& path, const NumpyOptions& options) {
  if (!options.labels.empty() && path.extension() != kExtension) {
    throw ConfigError(
        fmt::format("{}: expected no --labels for a .npz file, whose labels are one of its arrays, "
                    "got {}. Name that array 'labels'",
                    path.string(), options.labels));
  }
  return std::make_unique<NumpySource>(path, options);
}

bool is_numpy(const fs::path& path) {
  return fs::is_regular_file(path) &&
         (path.extension() == kExtension || path.extension() == ".npz");
}

}  // namespace precast::data
