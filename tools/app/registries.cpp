#include "tools/app/registries.h"

#include "models/register.h"
#include "recipes/register.h"
#include "tools/app/train_guards.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {

Registries make_registries() {
  Registries registries{{}, make_data_parts()};
  models::register_models(registries.models);
  recipes::register_methods(registries.methods);
  recipes::register_losses(registries.losses);
  recipes::register_metrics(registries.metrics);
  recipes::register_optimizers(registries.optimizers);
  recipes::register_schedules(registries.schedules);
  return registries;
}

bool is_built_in(const std::string& arch) {
  ModelRegistry models("model");
  models::register_models(models);
  return arch != "layers" && models.contains(arch);
}

void add_plugin(const PluginFile& file, Registries& registries) {
  if (file.kind() == PluginKind::data) {
    add_data_plugin(file, registries);
    return;
  }
  file.expect_torch(TORCH_VERSION);
  TrainParts added;
  file.add_parts(&added);
  const std::string& name = file.path().string();
  adopt<TrainGuards>(registries.models, added.models, name);
  adopt<TrainGuards>(registries.methods, added.methods, name);
  adopt<TrainGuards>(registries.losses, added.losses, name);
  adopt<TrainGuards>(registries.metrics, added.metrics, name);
  adopt<TrainGuards>(registries.optimizers, added.optimizers, name);
  adopt<TrainGuards>(registries.schedules, added.schedules, name);
}

}  // namespace precast::tools
