#include "tools/commands/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "data/beton/file_info.h"
#include "data/jobs/copy_dataset.h"
#include "data/order/labels.h"
#include "framework/core/error.h"
#include "framework/core/format.h"
#include "tools/cli/arguments.h"
#include "tools/cli/custom_fields.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/commands/dataset_output.h"
#include "tools/commands/merge_labels.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using data::BetonReader;

Arguments declare() {
  Arguments arguments(
      "merge A.beton B.beton... OUT.beton [options]",
      "Writes the samples of several .beton files into one, file after file. The files must have "
      "the same fields. Values are copied unchanged, except labels with --label-rule offset or "
      "by-name.");
  arguments.positional_list("A.beton B.beton... OUT.beton",
                            "the files to read, and the file to write");
  arguments.options().add_options()(
      "label-rule", po::value<std::string>()->default_value("keep"),
      "labels in the merged file; keep: unchanged; offset: the labels of each file start after the "
      "labels of the previous file; by-name: classes with the same name become one class. Class "
      "names are kept if all files have them and, with keep, agree")(
      "label-field", po::value<std::string>()->default_value(""),
      (std::string(kLabelFieldHelp) + "; with --label-rule offset or by-name").c_str())(
      "workers", number(0), kWorkersHelp)("page-size", number(0),
                                          "page size in bytes; 0: the largest of the files")(
      "no-checksums", po::bool_switch(), kNoChecksumsHelp)("json", po::bool_switch(), kJsonHelp);
  add_layout_option(arguments.options());
  arguments.example("precast merge dogs.beton cats.beton pets.beton --label-rule offset");
  arguments.exit_codes({3, 129, 130, 143});
  return arguments;
}

std::vector<std::unique_ptr<BetonReader>> open_all(const std::vector<std::string>& names,
                                                   const data::BetonOptions& layouts) {
  std::vector<std::unique_ptr<BetonReader>> files;
  for (const std::string& name : names) {
    files.push_back(std::make_unique<BetonReader>(name, data::BlobAccess::mapped, layouts));
    data::check_same_fields(*files.front(), *files.back());
  }
  return files;
}

/// A copy of all samples, file after file.
data::DatasetCopy concatenation(const std::vector<const BetonReader*>& files) {
  std::vector<std::uint64_t> ends;
  std::uint64_t end = 0;
  for (const BetonReader* file : files) ends.push_back(end += file->size());
  const auto locate = [ends](std::uint64_t i) {
    const auto at = static_cast<std::size_t>(std::ranges::upper_bound(ends, i) - ends.begin());
    return data::CopiedSample{at, at == 0 ? i : i - ends[at - 1]};
  };
  return {.files = files, .num_samples = end, .sample = locate, .relabel = {}};
}

/// How the files were written: the entries that are equal in all of them.
std::map<std::string, std::string> common_options(const std::vector<const BetonReader*>& files) {
  auto common = data::file_info_of(*files.front()).written;
  for (const BetonReader* file : std::span(files).subspan(1)) {
    const auto others = data::file_info_of(*file).written;
    std::erase_if(common, [&](const auto& entry) {
      const auto other = others.find(entry.first);
      return other == others.end() || other->second != entry.second;
    });
  }
  return common;
}

/// The field of --label-field; by default, the label field of the first file that has class names,
/// or of the first file if none has any.
/// @throws ConfigError if there is no such field
std::size_t merged_label_field(const std::vector<const BetonReader*>& files,
                               const std::string& name) {
  if (name.empty()) {
    for (const BetonReader* file : files) {
      const std::size_t field = data::default_label_field(*file);
      if (field < file->fields().size() && !data::class_names_of(*file, field).empty())
        return field;
    }
  }
  return data::label_field(*files.front(), name);
}

/// Sets the labels and the class names of the merged file.
/// @return the reasons why class names are left out; empty if they are not.
/// @throws ConfigError if the given label field is not needed or does not exist; the errors of
/// merge_labels()
std::string set_labels(const Arguments& arguments, data::DatasetCopy& copy, data::FileInfo& info) {
  const BetonReader& first = *copy.files.front();
  const auto rule = static_cast<LabelRule>(
      find_name("label-rule", {"keep", "offset", "by-name"}, arguments.text("label-rule")));
  const bool changes_labels = rule != LabelRule::keep;
  if (!changes_labels && arguments.given("label-field"))
    throw ConfigError(
        "--label-field: expected --label-rule offset or by-name, got keep, which changes no field");
  if (changes_labels)
    copy.label_field = merged_label_field(copy.files, arguments.text("label-field"));
  const bool allow_conflicts = !changes_labels && arguments.given("label-rule");
  std::vector<std::string> dropped;
  for (std::size_t field = 0; field < first.fields().size(); ++field) {
    if (first.fields()[field].type != data::FieldType::integer) continue;
    const bool relabelled = field == copy.label_field;
    MergedLabels labels =
        merge_labels(copy.files, field, relabelled ? rule : LabelRule::keep, allow_conflicts);
    if (relabelled) copy.relabel = std::move(labels.relabel);
    if (!labels.names.empty()) info.classes[first.fields()[field].name] = std::move(labels.names);
    if (!labels.dropped.empty()) dropped.push_back(std::move(labels.dropped));
  }
  return fmt::format("{}", fmt::join(dropped, "; "));
}

/// The files to read and the file to write.
struct MergeFiles {
  std::vector<std::string> from;
  std::string out;
};

/// @throws ConfigError
MergeFiles read_files(const Arguments& arguments) {
  MergeFiles files{.from = arguments.get<std::vector<std::string>>("A.beton B.beton... OUT.beton"),
                   .out = {}};
  files.out = files.from.back();
  files.from.pop_back();
  if (files.from.size() < 2)
    throw ConfigError(
        fmt::format("expected at least two files to merge and one to write, got {}. usage: precast "
                    "merge A.beton B.beton... OUT.beton",
                    format_count(files.from.size() + 1, "file")));
  check_output(files.out, {files.from.begin(), files.from.end()});
  return files;
}

data::WriteOptions read_options(const Arguments& arguments, const data::FileInfo& info,
                                const std::vector<const BetonReader*>& files) {
  data::WriteOptions options;
  options.layout.info = data::file_info_text(info);
  options.layout.checksums = !arguments.get<bool>("no-checksums");
  options.workers = worker_count(arguments);
  options.layout.page_bytes =
      static_cast<std::uint64_t>(integer(arguments, "page-size", 0, INT64_MAX));
  if (options.layout.page_bytes == 0) options.layout.page_bytes = data::copy_page_bytes(files);
  return options;
}

/// @param dropped the result of set_labels()
void print_merged(const MergeFiles& files, const data::WriteSummary& summary,
                  const std::string& dropped, bool json) {
  if (!json) {
    print_written(files.out, summary);
    if (!dropped.empty()) fmt::print("class names are left out: {}\n", dropped);
    return;
  }
  nlohmann::ordered_json report = written_json(files.out, summary);
  report["from"] = files.from;
  if (!dropped.empty()) report["names_left_out"] = dropped;
  print_json(report);
}

}  // namespace

int run_merge(const std::vector<std::string>& args) {
  Arguments arguments = declare();
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  const MergeFiles files = read_files(arguments);
  const auto owned = open_all(files.from, read_layouts(arguments));
  std::vector<const BetonReader*> readers;
  for (const auto& file : owned) readers.push_back(file.get());
  data::DatasetCopy copy = concatenation(readers);
  data::FileInfo info{.classes = {}, .written = common_options(readers)};
  const std::string dropped = set_labels(arguments, copy, info);
  const auto summary = MonitoredWrite("merge").run(
      files.out, copy.num_samples, read_options(arguments, info, readers),
      [&](const data::WriteOptions& watched) {
        return data::copy_dataset(files.out, copy, watched);
      });
  print_merged(files, summary, dropped, arguments.get<bool>("json"));
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
