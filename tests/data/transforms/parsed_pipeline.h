#pragma once

#include <string>

#include "data/transforms/pipeline.h"
#include "data/transforms/register.h"

namespace precast::test {

/// The pipeline with this text in a recipe. @throws ConfigError
inline data::Pipeline parsed_pipeline(const std::string& text) {
  Diagnostics diagnostics;
  data::TransformRegistries registries;
  data::register_transforms(registries);
  const ConfigNode file = parse_yaml("train: " + text + "\n", "r.yaml", diagnostics);
  data::Pipeline pipeline = data::parse_pipeline(*file.find("train"), "pipeline.train", registries,
                                                 data::standard_train_pipeline(), diagnostics);
  diagnostics.throw_if_errors();
  return pipeline;
}

}  // namespace precast::test
