#include "models/register.h"

#include "models/described.h"
#include "models/resnet.h"

namespace precast::models {
namespace {

void add_resnet(ModelRegistry& registry, const char* name, const char* help, ResNetShape shape) {
  registry.add<ResNetOptions>(name, help,
                              [shape](const ModelSpec& spec, const ResNetOptions& options) {
                                return make_resnet(shape, spec, options);
                              });
}

}  // namespace

void register_models(ModelRegistry& registry) {
  registry.add("layers", "a chain of layers that model.params.layers describes", make_described);
  add_resnet(registry, "resnet18", "ResNet-18, 11.7 M parameters", {.blocks = {2, 2, 2, 2}});
  add_resnet(registry, "resnet34", "ResNet-34, 21.8 M parameters", {.blocks = {3, 4, 6, 3}});
  add_resnet(registry, "resnet50", "ResNet-50 v1.5, 25.6 M parameters",
             {.bottleneck = true, .blocks = {3, 4, 6, 3}});
  add_resnet(registry, "resnet101", "ResNet-101 v1.5, 44.5 M parameters",
             {.bottleneck = true, .blocks = {3, 4, 23, 3}});
  add_resnet(registry, "resnet152", "ResNet-152 v1.5, 60.2 M parameters",
             {.bottleneck = true, .blocks = {3, 8, 36, 3}});
  add_resnet(registry, "wide_resnet50_2",
             "ResNet-50 with inner layers twice as wide, 68.9 M parameters",
             {.bottleneck = true, .blocks = {3, 4, 6, 3}, .width_per_group = 128});
  add_resnet(
      registry, "resnext50_32x4d",
      "ResNeXt-50 32x4d: ResNet-50 with 32 groups in each 3 x 3 convolution, 25.0 M parameters",
      {.bottleneck = true, .blocks = {3, 4, 6, 3}, .groups = 32, .width_per_group = 4});
}

}  // namespace precast::models
