#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "framework/core/config/node.h"
#include "framework/core/config/schema.h"
#include "framework/core/error.h"
#include "tests/fuzz/targets.h"

namespace precast::fuzz {
namespace {

/// Keys of every type except enumerations, with and without limits; one of them is required.
struct Options {
  bool amp = true;
  std::int64_t epochs = 16;
  double lr = 0.5;
  std::string order = "random", folder = "/tmp";
  std::vector<double> milestones;
  std::vector<std::string> names;
  ConfigNode params;

  [[nodiscard]] Schema schema() {
    Schema schema;
    schema.add("training.amp", &amp, "half precision");
    schema.add("training.epochs", &epochs, "passes").min(1).max(1000);
    schema.add("lr.lr", &lr, "learning rate").above(0).below(10);
    schema.add("data.order", &order, "order").choices({"random", "sequential"});
    schema.add("logging.folder", &folder, "folder").required();
    schema.add("lr.milestones", &milestones, "epochs");
    schema.add("data.names", &names, "names");
    schema.add("model.params", &params, "options of the model");
    schema.add_dead("data.in_memory", "has no effect");
    return schema;
  }
};

void report(const Diagnostics& diagnostics) {
  for (const std::string& message : diagnostics.errors()) {
    // The end of a message says what is wrong. The part before it contains positions and text from
    // the file.
    reached(message.substr(message.size() - std::min<std::size_t>(message.size(), 24)));
  }
}

}  // namespace

void recipe(Input input) {
  const std::string text(reinterpret_cast<const char*>(input.data()), input.size());
  Options options;
  Schema schema = options.schema();
  Diagnostics of_file;
  const ConfigNode top = parse_yaml(text, "input", of_file);
  schema.apply(top, of_file);
  schema.check_required(top.origin, of_file);
  report(of_file);
  static_cast<void>(top.flow());
  Diagnostics of_override;
  schema.apply({"model.params", parse_override(text, {"command line"}, of_override)}, of_override);
  report(of_override);
  // A run writes this JSON into its folder; dump() throws for text that is not UTF-8.
  static_cast<void>(schema.values().dump());

  require(options.epochs >= 1 && options.epochs <= 1000 && options.lr > 0 && options.lr < 10,
          "a value out of range never reaches the program");
  of_file.throw_if_errors();
}

}  // namespace precast::fuzz
