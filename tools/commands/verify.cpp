#include "tools/commands/verify.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include "data/beton/reader.h"
#include "data/jobs/verify_dataset.h"
#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/format.h"
#include "framework/core/progress.h"
#include "framework/process/stop_signals.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using Json = nlohmann::ordered_json;

Arguments declare() {
  Arguments arguments(
      "verify FILE.beton... [options]",
      "Checks all sizes and pointers of each file and, if it has checksums, verifies those of the "
      "header, the field descriptors, the records and the allocation table. With --deep it also "
      "reads every value, verifies its checksum, decodes JPEGs and parses JSON. The exit code is 5 "
      "if a file cannot be read or written, otherwise 3 if a file is damaged.");
  arguments.positional_list("FILE.beton", "the datasets");
  arguments.options().add_options()("deep", po::bool_switch(), "read and decode every value")(
      "write-sums", po::bool_switch(),
      "write checksums to FILE.beton.sum if the file has none and is not damaged; implies --deep")(
      "workers", number(0), kWorkersHelp)("json", po::bool_switch(), kJsonHelp);
  add_layout_option(arguments.options());
  arguments.example("precast verify --deep train.beton val.beton");
  arguments.exit_codes({3, 129, 130, 143});
  return arguments;
}

const char* checksum_location(const data::BetonReader& reader) {
  if (reader.sums().empty()) return "none";
  return reader.has_embedded_sums() ? "inside" : "beside";
}

Json describe(const data::BetonReader& reader, const data::VerifySummary& found, bool deep) {
  Json damaged = Json::array();
  for (const data::DamagedValue& value : found.damaged)
    damaged.push_back({{"sample", value.sample},
                       {"field", reader.fields()[value.field].name},
                       {"error", value.error}});
  Json report = {{"file", reader.path().string()},
                 {"samples", reader.size()},
                 {"checksums", checksum_location(reader)},
                 {"deep", deep}};
  if (deep)
    report.update({{"values", found.values},
                   {"bytes", found.bytes},
                   {"jpegs_decoded", found.jpegs},
                   {"json_parsed", found.json},
                   {"damaged", damaged}});
  return report;
}

void print_found(const Json& report) {
  const Json& place = report["checksums"];
  fmt::print("{}: {}, checksums: {}", report["file"].get<std::string>(),
             format_count(report["samples"].get<std::uint64_t>(), "sample"),
             place == "inside"   ? "in the file"
             : place == "beside" ? "in the sidecar"
                                 : "none");
  if (!report["deep"]) {
    fmt::print("; structure is valid{}\n", report["checksums"] == "none" ? "" : ", and unchanged");
    return;
  }
  fmt::print(
      "; {} ({}) read, {} decoded: ", format_count(report["values"].get<std::uint64_t>(), "value"),
      format_bytes(report["bytes"].get<double>()),
      format_count(report["jpegs_decoded"].get<std::uint64_t>(), "JPEG"));
  constexpr std::size_t kMaxShown = 20;
  const Json& damaged = report["damaged"];
  if (damaged.empty()) return fmt::print("no damage found\n");
  fmt::print("{} damaged\n", damaged.size());
  for (std::size_t i = 0; i < std::min(damaged.size(), kMaxShown); ++i)
    fmt::print("  sample {} field '{}': {}\n", damaged[i]["sample"].get<std::uint64_t>(),
               damaged[i]["field"].get<std::string>(), damaged[i]["error"].get<std::string>());
  if (damaged.size() > kMaxShown)
    fmt::print("  ... and {} more; --json lists all\n", damaged.size() - kMaxShown);
}

void print(const Json& report) {
  if (report.contains("samples")) print_found(report);
  if (report.contains("wrote")) fmt::print("  wrote {}\n", report["wrote"].get<std::string>());
  if (report.contains("error")) fmt::print("error: {}\n", report["error"].get<std::string>());
}

struct Job {
  bool deep = false;
  bool write_sums = false;
  int workers = 1;
  data::BetonOptions layouts = {};
};

/// Checks one file.
/// @return the report; null if a signal arrived. If the checksums cannot be written after the
/// check, the report contains the error.
/// @throws DataError; IoError, also before values are read if the file for the checksums cannot be
/// created
Json verify_file(const std::string& file, const Job& job, ExitCode& code) {
  const data::BetonReader reader(file, data::BlobAccess::mapped, job.layouts);
  const bool write_sums = job.write_sums && reader.sums().empty();
  // Throws if the checksums cannot be written.
  if (write_sums) static_cast<void>(AtomicFile(data::sums_sidecar(file)));
  data::VerifySummary found;
  if (job.deep) {
    Progress progress;
    const auto show = [&](std::uint64_t done) {
      if (!progress.due()) return;
      progress.show(fmt::format("verify {}: {}/{} samples, {}", reader.path().filename().string(),
                                done, reader.size(), progress.rate(done, reader.size())));
    };
    found = verify_dataset(
        reader, {.workers = job.workers, .on_progress = show, .cancel = &StopSignals::requested()});
  }
  if (found.cancelled || StopSignals::requested()) return {};
  Json report = describe(reader, found, job.deep);
  if (!found.damaged.empty()) code = std::max(code, ExitCode::dataset_invalid);
  if (!write_sums || !found.damaged.empty()) return report;
  try {
    write_sums_sidecar(reader);
    report["wrote"] = data::sums_sidecar(file).string();
  } catch (const IoError& error) {
    code = std::max(code, error.exit_code());
    report["error"] = error.what();
  }
  return report;
}

/// Like verify_file(), but instead of throwing an error, returns a report with it. Raises `code` to
/// the exit code of the error or of the damage. @return null if a signal arrived
Json try_file(const std::string& file, const Job& job, ExitCode& code) {
  try {
    if (StopSignals::requested()) return {};
    return verify_file(file, job, code);
  } catch (const Error& error) {
    // A stop signal also ends HTTP requests, which then throw.
    if (StopSignals::requested()) return {};
    code = std::max(code, error.exit_code());
    return {{"file", file}, {"error", error.what()}};
  }
}

}  // namespace

int run_verify(const std::vector<std::string>& args) {
  Arguments arguments = declare();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const bool write_sums = arguments.get<bool>("write-sums");
  const Job job{arguments.get<bool>("deep") || write_sums, write_sums, worker_count(arguments),
                read_layouts(arguments)};
  const bool as_json = arguments.get<bool>("json");
  const StopSignals signals;
  Json reports = Json::array();
  ExitCode code = ExitCode::done;
  std::string stopped_at;
  for (const auto& file : arguments.get<std::vector<std::string>>("FILE.beton")) {
    Json report = try_file(file, job, code);
    if (report.is_null()) {
      stopped_at = file;
      break;
    }
    if (!as_json) print(report);
    reports.push_back(std::move(report));
  }
  if (as_json) print_json(reports);
  if (!stopped_at.empty())
    throw Error(stopped_at + ": stopped before it was checked",
                static_cast<ExitCode>(StopSignals::exit_code()));
  return static_cast<int>(code);
}

}  // namespace precast::tools
