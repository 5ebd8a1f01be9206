#include "tools/list.h"

#include <fmt/core.h>

#include "data/transforms/pipeline.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"
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
std::string plural(const Registry& registry) {
  return registry.kind() + (registry.kind().ends_with('s') ? "es" : "s");
}

template <typename Registry>
void print_entries(const Registry& registry) {
  fmt::print("{}\n", plural(registry));
  for (const auto& entry : registry.entries()) {
    fmt::print("  {:<20} {}\n", entry.name, entry.help);
    if constexpr (requires { entry.factory()->options(std::declval<Schema&>()); })
      print_options(*entry.factory());
  }
  fmt::print("\n");
}

/// What else a pipeline may hold.
void print_stages() {
  fmt::print("stages\n");
  for (const data::StageHelp& stage : data::pipeline_stages()) {
    fmt::print("  {:<20} {}\n{}", stage.name, stage.help, stage.options);
  }
  fmt::print("\n");
}

}  // namespace

int run_list(const std::vector<std::string>& args) {
  Arguments arguments("list [KIND]",
                      "Everything that a recipe can name, with options and defaults.");
  arguments.optional_positional("KIND", "models, methods, transforms, orders ...: only these");
  if (!arguments.parse(args)) return 0;
  const std::string wanted = arguments.has("KIND") ? arguments.text("KIND") : "";
  const Registries registries = make_registries();
  std::vector<std::string> kinds;
  bool found = false;
  const auto offer = [&](const std::string& kind, const auto& print) {
    kinds.push_back(kind);
    if (!wanted.empty() && wanted != kind) return;
    found = true;
    print();
  };
  const auto list = [&](const auto&... registry) {
    (offer(plural(registry), [&] { print_entries(registry); }), ...);
  };
  list(registries.models, registries.methods, registries.losses, registries.optimizers,
       registries.schedules, registries.orders, registries.pipeline.crops,
       registries.pipeline.transforms, registries.pipeline.labels);
  offer("stages", print_stages);
  if (!found)
    throw ConfigError(
        fmt::format("list: nothing is called '{}'. {}", wanted, suggest(wanted, kinds)));
  return 0;
}

}  // namespace precast::tools
