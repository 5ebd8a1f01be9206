#pragma once

#include <memory>
#include <string>

#include "data/plugin.h"
#include "tools/plugins/plugin_parts.h"

namespace precast::tools {

/// Guards for the parts of data plug-ins (for adopt()): an error that a member throws names the
/// part and its plug-in, except for sources and fields. The test `guards_forward` fails if a guard
/// does not forward a virtual function.
struct DataGuards {
  [[noreturn]] static void rethrow(const std::string& what, ExitCode otherwise) {
    rethrow_from_plugin(what, otherwise);
  }
  static std::unique_ptr<data::Crop> guarded(std::unique_ptr<data::Crop> crop, std::string where);
  static std::unique_ptr<data::Transform> guarded(std::unique_ptr<data::Transform> transform,
                                                  std::string where);
  static std::unique_ptr<data::LabelTransform> guarded(
      std::unique_ptr<data::LabelTransform> transform, std::string where);
  static std::unique_ptr<data::SampleOrder> guarded(std::unique_ptr<data::SampleOrder> order,
                                                    std::string where);
  /// Returns the source unchanged, because its errors already name the file.
  static std::unique_ptr<data::Source> guarded(std::unique_ptr<data::Source> source,
                                               const std::string& /*where*/) {
    return source;
  }
  /// Returns the field unchanged, because the writer's errors already name the field.
  static std::unique_ptr<data::Field> guarded(std::unique_ptr<data::Field> field,
                                              const std::string& /*where*/) {
    return field;
  }
};

}  // namespace precast::tools
