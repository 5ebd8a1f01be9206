#pragma once

#include "data/order/order.h"
#include "data/sources/register.h"
#include "data/transforms/register.h"
#include "data/write/register.h"
#include "framework/core/plugin.h"

namespace precast::data {

/// The kinds of parts that a data plug-in may add. Torch-free.
struct DataParts {
  /// Crops, transforms of pixels, transforms of labels.
  TransformRegistries pipeline;
  OrderRegistry orders{"order"};
  FieldRegistry fields{"field"};
  SourceRegistry sources;
};

}  // namespace precast::data

/// Makes the library a data plug-in. Use the macro once, outside any namespace:
///
///     void add_parts(precast::data::DataParts& parts) {
///       parts.pipeline.transforms.add("stripes", "bright stripes", make_stripes);
///     }
///     PRECAST_DATA_PLUGIN(add_parts)
///
/// The function is called once, with empty registries; if it throws, the plug-in is rejected.
#define PRECAST_DATA_PLUGIN(function) \
  PRECAST_PLUGIN_DESCRIPTOR("data", ::precast::data::DataParts, "none", function)
