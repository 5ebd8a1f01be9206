#include "tools/commands/source_options.h"

#include <fmt/core.h>

#include <boost/program_options/value_semantic.hpp>
#include <string>

#include "data/sources/beton.h"
#include "data/sources/register.h"
#include "framework/core/error.h"

namespace precast::tools {

void add_source_options(boost::program_options::options_description& options) {
  const auto text = [](const char* value) {
    return boost::program_options::value<std::string>()->default_value(value);
  };
  options.add_options()("kind", text("auto"), "what SOURCE is")(
      "labels", text(""),
      "the classes of images that lie in no class folders: LOC_val_solution.csv, lines `NAME "
      "CLASS`, "
      "or a class a line in the order of the images' names; of a .npy file, an array")(
      "classes", text(""),
      "all classes, one a line: labels are those of a split that has them all, and numbers in "
      "--labels are lines of it")(
      "on_corrupt", text("fail"),
      "what becomes of damaged samples: fail ends the command, skip leaves them out and lists "
      "them");
}

std::unique_ptr<data::Source> open_chosen_source(const Arguments& arguments,
                                                 const data::BetonOptions& layouts,
                                                 const std::vector<std::string>& texts) {
  const std::string source = arguments.text("SOURCE");
  const std::string kind = arguments.text("kind");
  const data::SourceOptions lists = {arguments.text("labels"), arguments.text("classes"), texts};
  if (layouts.layouts.empty()) return data::open_source(source, kind, lists);
  if (!lists.labels.empty() || !lists.classes.empty() || (kind != "auto" && kind != "beton"))
    throw ConfigError(fmt::format(
        "--field {}=BYTES:ALIGNMENT: expected a .beton file without --kind, --labels and "
        "--classes, got one of them",
        layouts.layouts.begin()->first));
  return data::open_beton(source, layouts);
}

}  // namespace precast::tools
