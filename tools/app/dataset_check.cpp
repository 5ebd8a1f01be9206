#include "tools/app/dataset_check.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "data/beton/file_info.h"
#include "data/http/http_client.h"
#include "data/order/class_names.h"
#include "framework/core/error.h"

namespace precast::tools {
namespace {

namespace fs = std::filesystem;

/// The end of a message about a missing file: the folder to which relative paths refer. Empty for
/// an absolute path.
std::string relative_path_hint(const std::string& path) {
  std::error_code ignored;
  if (fs::path(path).is_absolute()) return {};
  return fmt::format(". Paths are relative to the current folder, {}",
                     fs::current_path(ignored).string());
}

data::SampleSet all_of(const data::BetonReader& reader) {
  return {0, reader.size()};
}

}  // namespace

void check_datasets(const std::vector<NamedDataset>& datasets) {
  Diagnostics unnamed;
  std::string missing;
  for (const NamedDataset& dataset : datasets) {
    std::error_code failure;
    if (dataset.path.empty()) {
      unnamed.error(
          dataset.origin, dataset.key,
          fmt::format("missing. Expected the path of a .beton file, such as --{}=FILE.beton",
                      dataset.key));
    } else if (!data::is_url(dataset.path) && !fs::exists(dataset.path, failure)) {
      const int reason = failure ? failure.value() : ENOENT;
      const std::string line =
          fmt::format("{}: {}: cannot open {}: {}{}", dataset.origin.text(), dataset.key,
                      dataset.path, std::strerror(reason), relative_path_hint(dataset.path));
      missing += (missing.empty() ? "" : "\n") + line;
    }
  }
  if (!unnamed.errors().empty() && !missing.empty())
    throw ConfigError(fmt::format("{}\n{}", unnamed.errors().front(), missing));
  unnamed.throw_if_errors();
  if (!missing.empty()) throw IoError(missing);
}

void check_same_classes(const data::BetonReader& train, std::size_t train_field,
                        const data::BetonReader& val, std::size_t val_field) {
  const std::string conflict = data::class_conflict(data::class_names_of(train, train_field),
                                                    data::class_names_of(val, val_field));
  if (conflict.empty()) return;
  const std::string file = val.path().string();
  throw ConfigError(fmt::format(
      "data.val_dataset: expected the classes of data.train_dataset, got other classes: {} ({}). "
      "Write the file again with the same classes: precast write SOURCE {} --class-names {}",
      conflict, file, file, train.path().string()));
}

std::vector<std::string> class_warnings(const data::BetonReader& train, std::size_t train_field,
                                        const data::OrderOptions& options,
                                        const data::BetonReader& val, std::size_t val_field) {
  std::vector<std::string> warnings;
  const std::vector<std::string> names = data::class_names_of(train, train_field);
  if (const bool val_has_names = !data::class_names_of(val, val_field).empty();
      val_has_names == names.empty()) {
    const data::BetonReader& unnamed = val_has_names ? train : val;
    warnings.push_back(
        fmt::format("{}: expected class names, as in {}, got none. If its labels mean other "
                    "classes, the accuracy is wrong",
                    unnamed.path().string(), (val_has_names ? val : train).path().string()));
  }
  const auto labels = data::labels_of(train, train_field, all_of(train));
  const auto add = [&](std::string_view key, const std::vector<std::int64_t>& absent,
                       std::size_t classes, std::string_view hint) {
    if (absent.empty()) return;
    warnings.push_back(fmt::format("{}: has no samples of {} of {} classes: {}{}", key,
                                   absent.size(), classes, data::class_list_text(absent, names),
                                   hint));
  };
  if (!options.subset.empty()) {
    // A filter may leave classes out on purpose.
    const auto required = data::labels_of(train, train_field,
                                          data::select_samples(train, {.filter = options.filter}));
    const auto chosen = data::labels_of(train, train_field, data::select_samples(train, options));
    std::string_view hint = ". data.subset: random:N draws N samples from the entire file";
    if (options.subset.starts_with("random:")) hint = ". Draw more samples";
    if (options.subset.starts_with('@')) hint = "";
    add("data.subset", data::absent_labels(required, chosen), required.size(), hint);
  }
  add("data.val_dataset", data::absent_labels(labels, data::labels_of(val, val_field, all_of(val))),
      labels.size(), "");
  return warnings;
}

}  // namespace precast::tools
