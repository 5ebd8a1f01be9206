#include "tools/app/list.h"

#include "tools/app/registries.h"
#include "tools/plugins/parts_list.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

std::vector<ListedKind> all_kinds(const Registries& registries) {
  std::vector<ListedKind> all = {
      list_parts(registries.models),     list_parts(registries.methods),
      list_parts(registries.losses),     list_parts(registries.metrics),
      list_parts(registries.optimizers), list_parts(registries.schedules)};
  for (ListedKind& kind : list_data_parts(registries)) all.push_back(std::move(kind));
  return all;
}

}  // namespace

int run_list(const std::vector<std::string>& args) {
  Arguments arguments = list_arguments();
  if (!arguments.parse(args)) return 0;
  Registries registries = make_registries();
  for (const PluginFile& file : open_plugins(arguments)) add_plugin(file, registries);
  print_parts(arguments, all_kinds(registries));
  return 0;
}

}  // namespace precast::tools
