#include "tools/list.h"

#include <fmt/core.h>

#include "data/transforms/pipeline.h"
#include "tools/arguments.h"
#include "tools/registries.h"

namespace precast::tools {
namespace {

/// Options of a part, indented; parts without options print nothing.
template <typename Part>
void print_options(Part& part) {
  Schema schema;
  part.options(schema);
  fmt::print("{}", schema.help("    "));
}

template <typename Registry>
void print_entries(const Registry& registry, bool with_options) {
  fmt::print("{}{}\n", registry.kind(), registry.kind().ends_with('s') ? "es" : "s");
  for (const auto& entry : registry.entries()) {
    fmt::print("  {:<20} {}\n", entry.name, entry.help);
    if constexpr (requires { entry.factory()->options(std::declval<Schema&>()); }) {
      if (with_options) print_options(*entry.factory());
    }
  }
  fmt::print("\n");
}

/// What else a pipeline may hold.
void print_stages() {
  fmt::print("pipeline stages\n");
  for (const data::StageHelp& stage : data::pipeline_stages()) {
    fmt::print("  {:<20} {}\n{}", stage.name, stage.help, stage.options);
  }
  fmt::print("\n");
}

}  // namespace

int run_list(const std::vector<std::string>& args) {
  Arguments arguments("list", "Everything that a recipe can name, with options and defaults.");
  if (!arguments.parse(args)) return 0;
  const Registries registries = make_registries();
  print_entries(registries.models, false);
  print_entries(registries.methods, true);
  print_entries(registries.losses, false);
  print_entries(registries.optimizers, false);
  print_entries(registries.schedules, false);
  print_entries(registries.pipeline.crops, true);
  print_entries(registries.pipeline.transforms, true);
  print_entries(registries.pipeline.labels, true);
  print_stages();
  return 0;
}

}  // namespace precast::tools
