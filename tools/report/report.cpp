#include "tools/report/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/report/report_page.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// Returns the path of the page. Empty if no page is to be written.
std::filesystem::path output(const Arguments& arguments, const std::vector<RunRecord>& runs) {
  if (arguments.has("output")) return arguments.text("output");
  if (arguments.get<bool>("json")) return {};
  if (runs.size() == 1) return runs[0].folder / "report.html";
  throw ConfigError(fmt::format(
      "--output: expected FILE.html, got nothing (a page of {} runs has no default path)",
      runs.size()));
}

/// Loads the runs of the command line. A run whose name is not unique is named by the path of its
/// folder: relative to the argument that led to it or, if that is not unique either, with this
/// argument.
std::vector<RunRecord> load_runs(const std::vector<std::string>& arguments) {
  std::vector<RunRecord> runs;
  std::vector<std::string> paths;
  std::multiset<std::string> known_names, known_paths;
  for (const std::filesystem::path argument : arguments) {
    for (const auto& folder : find_runs(argument)) {
      runs.push_back(load_run(folder));
      paths.push_back(folder == argument ? folder : folder.lexically_relative(argument));
      known_names.insert(runs.back().name);
      known_paths.insert(paths.back());
    }
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (known_names.count(runs[i].name) == 1) continue;
    runs[i].name = known_paths.count(paths[i]) == 1 ? paths[i] : runs[i].folder.string();
  }
  return runs;
}

}  // namespace

int run_report(const std::vector<std::string>& args) {
  Arguments arguments(
      "report RUN... [options]",
      "Writes an HTML page about one run, or about several side by side: accuracy, loss, learning "
      "rate, throughput, waiting for data, system, configuration. The page is one file without "
      "scripts and loads nothing from elsewhere. Runs may be unfinished.");
  arguments.positional_list(
      "RUN",
      "a run folder, or a folder that contains run folders at any depth; also the folder of a grid "
      "or a table");
  arguments.options().add_options()(
      "output,o", po::value<std::string>()->value_name("FILE"),
      "file to write; default: report.html in the run's folder; required for several runs")(
      "json", po::bool_switch(), "print the result as JSON; a page is written only with --output");
  arguments.example("precast report runs/first");
  arguments.example("precast report runs/first runs/second --output compare.html");
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const std::vector<RunRecord> runs = load_runs(arguments.get<std::vector<std::string>>("RUN"));
  const std::filesystem::path page = output(arguments, runs);
  if (!page.empty()) write_file(page, report_page(runs, page.parent_path()));
  if (arguments.get<bool>("json")) {
    print_json(report_json(runs));
  } else {
    fmt::print("{}\n", page.string());
  }
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
