#include "tools/registries.h"

#include "models/register.h"
#include "recipes/register.h"

namespace precast::tools {

Registries make_registries() {
  Registries registries;
  models::register_models(registries.models);
  recipes::register_methods(registries.methods);
  recipes::register_losses(registries.losses);
  recipes::register_optimizers(registries.optimizers);
  recipes::register_schedules(registries.schedules);
  data::register_transforms(registries.pipeline);
  data::register_orders(registries.orders);
  return registries;
}

}  // namespace precast::tools
