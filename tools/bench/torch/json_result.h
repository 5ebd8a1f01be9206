#pragma once

#include "framework/core/file.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"

namespace precast::tools {

/// Writes the result of a command to the file of --output or, with --json, prints it. @return
/// whether one of the options was given; otherwise the command prints a table.
[[nodiscard]] inline bool write_json_result(const Arguments& options,
                                            const nlohmann::ordered_json& result) {
  if (options.has("output")) {
    write_file(options.text("output"), json_text(result));
    return true;
  }
  if (options.has("json")) print_json(result);
  return options.has("json");
}

}  // namespace precast::tools
