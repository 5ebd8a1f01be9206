#include "data/sources/register.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <string>
#include <vector>

#include "data/sources/beton.h"
#include "data/sources/cifar.h"
#include "data/sources/folder.h"
#include "data/sources/idx.h"
#include "data/sources/table.h"
#include "data/sources/tar.h"
#include "data/sources/webdataset.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

constexpr std::array kKinds = {
    SourceKind{"beton", "another .beton file, to store it in another way", is_beton, open_beton},
    SourceKind{"cifar",
               "CIFAR binary: a folder with data_batch_*.bin or train.bin, or one .bin file",
               is_cifar, open_cifar},
    SourceKind{"webdataset", "a WebDataset shard, or a folder of them", is_webdataset,
               open_webdataset},
    SourceKind{"folder", "a folder with one folder of images (JPEG, PNG, WebP) a class", is_folder,
               open_folder},
    SourceKind{"idx", "the images file of an IDX pair (MNIST family), plain or .gz", is_idx,
               open_idx},
    SourceKind{"table", "a list of samples: .csv, .tsv or .jsonl, a column a field", is_table,
               open_table},
    SourceKind{"tar", "an uncompressed tar file of class folders, or of a tar for each class",
               is_tar, open_tar},
};

}  // namespace

Source::~Source() = default;

std::span<const SourceKind> source_kinds() {
  return kKinds;
}

std::unique_ptr<Source> open_source(const std::filesystem::path& path, std::string_view kind) {
  std::vector<std::string> names = {"auto"};
  std::string list;
  for (const SourceKind& known : kKinds) {
    names.emplace_back(known.name);
    list += fmt::format("\n  {:<8} {}", known.name, known.help);
  }
  bool kind_exists = kind == "auto";
  for (const SourceKind& known : kKinds) kind_exists = kind_exists || known.name == kind;
  if (!kind_exists) {
    throw ConfigError(
        fmt::format("source: unknown kind '{}'. {}", kind, suggest(std::string(kind), names)));
  }
  if (!std::filesystem::exists(path)) throw IoError("cannot open", path.string(), ENOENT);
  for (const SourceKind& known : kKinds) {
    if (kind == "auto" ? known.recognizes(path) : known.name == kind) return known.open(path);
  }
  throw DataError(
      fmt::format("{}: expected a dataset of one of these kinds, got something else:{}\nIf it is "
                  "one, name its kind with --kind",
                  path.string(), list));
}

}  // namespace precast::data
