#include "tools/report/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "tools/cli/arguments.h"
#include "tools/cli/json_output.h"
#include "tools/report/report_page.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;

/// The path of the page; empty: none is written.
std::filesystem::path output(const Arguments& arguments, const std::vector<RunRecord>& runs) {
  if (arguments.has("out")) return arguments.text("out");
  if (arguments.get<bool>("json")) return {};
  if (runs.size() == 1) return runs[0].folder / "report.html";
  throw ConfigError(
      fmt::format("--out: missing. The page of {} runs has no folder: give it as --out FILE.html",
                  runs.size()));
}

}  // namespace

int run_report(const std::vector<std::string>& args) {
  Arguments arguments(
      "report RUN... [--out FILE.html] [--json]",
      "Writes a page with the figures of a run, or of several side by side: accuracy, loss, rate,\n"
      "throughput, waiting for data, system, configuration. It is one file without scripts that\n"
      "loads nothing. Runs may be unfinished.");
  arguments.positional_list("RUN", "a run folder, or a folder of run folders");
  arguments.options().add_options()(
      "out,o", po::value<std::string>(),
      "the page; default: report.html in the run's folder, of several runs: none")(
      "json", po::bool_switch(), "print the figures as JSON; a page only with --out");
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  std::vector<RunRecord> runs;
  for (const std::string& path : arguments.get<std::vector<std::string>>("RUN"))
    for (const auto& folder : find_runs(path)) runs.push_back(load_run(folder));
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
