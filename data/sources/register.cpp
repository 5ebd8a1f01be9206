#include "data/sources/register.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "data/sources/beton.h"
#include "data/sources/braces.h"
#include "data/sources/cifar.h"
#include "data/sources/folder.h"
#include "data/sources/idx.h"
#include "data/sources/numpy.h"
#include "data/sources/table.h"
#include "data/sources/tar.h"
#include "data/sources/webdataset.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// For sources that bring their labels along.
void refuse_lists(const std::filesystem::path& path, const SourceOptions& options) {
  if (options.labels.empty() && options.classes.empty()) return;
  const std::filesystem::path& given = options.labels.empty() ? options.classes : options.labels;
  throw ConfigError(
      fmt::format("{}: expected no --labels and no --classes, got {}. They are for images that lie "
                  "in folders and tar files",
                  path.string(), given.string()));
}

template <std::unique_ptr<Source> (*open)(const std::filesystem::path&)>
std::unique_ptr<Source> open_plain(const std::filesystem::path& path,
                                   const SourceOptions& options) {
  refuse_lists(path, options);
  return open(path);
}

std::unique_ptr<Source> open_list(const std::filesystem::path& path, const SourceOptions& options) {
  refuse_lists(path, options);
  return open_table(path, options);
}

std::unique_ptr<Source> open_shards(const std::vector<std::filesystem::path>& shards,
                                    std::string_view kind, const SourceOptions& options) {
  if (kind != "auto" && kind != "webdataset") {
    throw ConfigError(
        fmt::format("{}: expected one source of kind {}, got a list in braces, which is for "
                    "WebDataset's shards",
                    shards[0].string(), kind));
  }
  refuse_lists(shards[0], options);
  return open_webdataset_shards(shards);
}

constexpr std::array kKinds = {
    SourceKind{"beton", "another .beton file, to store it in another way", is_beton,
               open_plain<open_beton>},
    SourceKind{"cifar",
               "CIFAR binary: a folder with data_batch_*.bin or train.bin, or one .bin file",
               is_cifar, open_plain<open_cifar>},
    SourceKind{"webdataset",
               "a WebDataset shard, a folder of them, or a list as 'train-{000..127}.tar'",
               is_webdataset, open_plain<open_webdataset>},
    SourceKind{"folder",
               "a folder with one folder of images (JPEG, PNG, WebP) a class, or of images with "
               "--labels",
               is_folder, open_folder},
    SourceKind{"idx", "the images file of an IDX pair (MNIST family), plain or .gz", is_idx,
               open_plain<open_idx>},
    SourceKind{"numpy", "arrays of NumPy: .npz, or .npy with labels beside it", is_numpy,
               open_numpy},
    SourceKind{"table", "a list of samples: .csv, .tsv or .jsonl, a column a field", is_table,
               open_list},
    SourceKind{"tar",
               "an uncompressed tar file of class folders, of a tar for each class, or of images "
               "with --labels",
               is_tar, open_tar},
};

}  // namespace

Source::~Source() = default;

std::span<const SourceKind> source_kinds() {
  return kKinds;
}

std::unique_ptr<Source> open_source(const std::filesystem::path& path, std::string_view kind,
                                    const SourceOptions& options) {
  std::vector<std::string> names = {"auto"};
  std::string list;
  for (const SourceKind& known : kKinds) {
    names.emplace_back(known.name);
    list += fmt::format("\n  {:<10} {}", known.name, known.help);
  }
  bool kind_exists = kind == "auto";
  for (const SourceKind& known : kKinds) kind_exists = kind_exists || known.name == kind;
  if (!kind_exists) {
    throw ConfigError(
        fmt::format("source: unknown kind '{}'. {}", kind, suggest(std::string(kind), names)));
  }
  const std::vector<std::filesystem::path> paths = source_paths(path);
  if (paths.size() > 1) return open_shards(paths, kind, options);
  const std::filesystem::path& only = paths[0];
  std::error_code failure;
  if (!std::filesystem::exists(only, failure))
    throw IoError("cannot open", only.string(), failure ? failure.value() : ENOENT);
  for (const SourceKind& known : kKinds) {
    if (kind == "auto" ? known.recognizes(only) : known.name == kind)
      return known.open(only, options);
  }
  throw DataError(
      fmt::format("{}: expected a dataset of one of these kinds, got something else:{}\nIf it is "
                  "one, name its kind with --kind",
                  path.string(), list));
}

}  // namespace precast::data
