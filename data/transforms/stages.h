#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/image/element_type.h"
#include "data/image/normalize.h"
#include "data/resample/resize.h"
#include "framework/core/config/schema.h"

namespace precast::data {

/// The settings of those parts of a pipeline that do not transform pixels in place. Each declares
/// and checks its options, as a Transform does. @{
struct FlipStage {
  double probability = 0.5;
  void options(Schema& schema);
  [[nodiscard]] static std::string problem() { return {}; }
};

struct ResizeStage {
  std::string filter_name = "area";
  void options(Schema& schema);
  [[nodiscard]] static std::string problem() { return {}; }
  [[nodiscard]] ResizeFilter filter() const;
};

struct ConvertStage {
  /// Empty until a name has been read.
  std::optional<ElementType> type;
  std::string type_name;
  void options(Schema& schema);
  /// Also sets `type` from the name.
  [[nodiscard]] std::string problem();
  [[nodiscard]] bool fits_images() const;
  [[nodiscard]] const std::string& name() const { return type_name; }
};

struct NormalizeStage {
  /// If both are empty, ImageNet's values apply.
  NormalizeOptions values = {.mean = {}, .std = {}};
  void options(Schema& schema);
  /// If only one of mean and std is given, also sets the other to ImageNet's values.
  [[nodiscard]] std::string problem();
};

struct ChannelsStage {
  std::int64_t count = 3;
  void options(Schema& schema);
  [[nodiscard]] std::string problem() const;
};

struct LayoutStage {
  std::string order = "nhwc";
  void options(Schema& schema);
  [[nodiscard]] static std::string problem() { return {}; }
};
/// @}

}  // namespace precast::data
