#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "data/beton/dtype.h"
#include "data/beton/field_tag.h"
#include "data/sources/skipped_files.h"
#include "data/write/field.h"
#include "data/write/sample.h"
#include "framework/core/export.h"

namespace precast::data {

/// A field that a source provides: its name in the file and its registered type.
struct SourceField {
  std::string name;
  std::string type;
  /// Only for an ndarray or tensor.
  ArrayFormat array = {};
  /// Only for a field of a .beton file: its tag, which may contain more than the type, and for a
  /// custom field the arguments in its descriptor.
  FieldTag tag = {};
  std::vector<std::byte> arguments = {};
  /// The source's own name for a field that was chosen as `image` or `label`, such as the name of
  /// an array; empty for all other fields. Reported to the user.
  std::string chosen_from = {};
  /// The source's own name for a field if it is too long for the file, which then stores its
  /// beginning; otherwise empty.
  std::string full_name = {};
};

/// A dataset in another format, to be written as .beton. Opening it finds its samples, fields and
/// classes. sample() is thread-safe.
class PRECAST_API Source {
 public:
  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source();

  /// The number of samples, at least 1.
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// @throws IoError or DataError naming the file.
  [[nodiscard]] virtual Sample sample(std::uint64_t i) const = 0;

  /// In the order of Sample::values.
  [[nodiscard]] const std::vector<SourceField>& fields() const { return fields_; }
  /// The class name of each label; empty if the source has no class names.
  [[nodiscard]] const std::vector<std::string>& class_names() const { return class_names_; }
  /// The field that class_names() belong to; empty: the first int field.
  [[nodiscard]] const std::string& class_field() const { return class_field_; }
  /// The class names of all other int fields, by field; empty except for a .beton file.
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& other_class_names() const {
    return other_class_names_;
  }
  /// Counts to report to the user after opening the dataset, such as `skipped_files`.
  [[nodiscard]] const Tally& notes() const { return notes_; }
  /// Files of the dataset that are not read.
  [[nodiscard]] const SkippedFiles& skipped_files() const { return skipped_files_; }

 protected:
  std::vector<SourceField> fields_ = {{"image", "image"}, {"label", "int"}};
  std::vector<std::string> class_names_;
  std::string class_field_;
  std::map<std::string, std::vector<std::string>> other_class_names_;
  Tally notes_;
  SkippedFiles skipped_files_;
};

}  // namespace precast::data
