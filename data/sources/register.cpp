#include "data/sources/register.h"

#include <fmt/format.h>

#include <cerrno>
#include <string>
#include <vector>

#include "data/http/http_client.h"
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

constexpr const char* kWebDataset = "webdataset";

}  // namespace

Source::~Source() = default;

std::string SourceRegistry::recognize(const std::filesystem::path& path) const {
  for (std::size_t i = 0; i < entries().size(); ++i) {
    if (recognizers_[i](path)) return entries()[i].name;
  }
  return {};
}

void register_sources(SourceRegistry& sources) {
  using Open = std::unique_ptr<Source> (*)(const std::filesystem::path&);
  sources.add("beton", "a .beton file, to store its samples in another way", is_beton,
              static_cast<Open>(open_beton));
  sources.add("cifar",
              "CIFAR binary: a folder with data_batch_*.bin or train.bin, or one .bin file",
              is_cifar, open_cifar);
  sources.add(kWebDataset,
              "a WebDataset shard, a folder of them, or a pattern such as 'train-{000..127}.tar'",
              is_webdataset, open_webdataset);
  sources.add("folder",
              "a folder with one subfolder of images (JPEG, PNG, WebP) per class, or a folder of "
              "images with --labels, or of images all named like n01440764_10026.JPEG, whose class "
              "is n01440764",
              is_folder, open_folder);
  sources.add("idx", "the images file of an IDX pair (MNIST family), plain or .gz", is_idx,
              open_idx);
  sources.add("numpy", "NumPy arrays: a .npz file, or a .npy file and a second one with its labels",
              is_numpy, open_numpy);
  sources.add("table", "a list of samples (.csv, .tsv or .jsonl) with one field per column",
              is_table, open_table);
  sources.add("tar",
              "an uncompressed tar file that contains class folders, one tar per class, or, with "
              "--labels, images",
              is_tar, open_tar);
}

SourceRegistry make_sources() {
  SourceRegistry sources;
  register_sources(sources);
  return sources;
}

std::string kind_of_source(const SourceRegistry& sources, const std::filesystem::path& path,
                           const std::string& kind) {
  if (kind != "auto" && !sources.contains(kind)) {
    std::vector<std::string> names = sources.names();
    names.insert(names.begin(), "auto");
    throw ConfigError(fmt::format("source: unknown kind '{}'. {}", kind, suggest(kind, names)));
  }
  if (is_url(path.string())) {
    if (kind == "auto" || kind == "beton") return "beton";
    throw ConfigError(
        fmt::format("{}: expected a remote file to be a .beton file, got --source-kind {}",
                    redacted_url(path.string()), kind));
  }
  const std::vector<std::filesystem::path> paths = source_paths(path);
  if (paths.size() > 1) {
    if (kind == "auto" || kind == kWebDataset) return kWebDataset;
    throw ConfigError(
        fmt::format("{}: expected one source of kind {}, got a pattern with braces. Only "
                    "WebDataset shards can be given as a pattern",
                    paths[0].string(), kind));
  }
  std::error_code failure;
  if (!std::filesystem::exists(paths[0], failure))
    throw IoError("cannot open", paths[0].string(), failure ? failure.value() : ENOENT);
  const std::string found = kind == "auto" ? sources.recognize(paths[0]) : kind;
  if (!found.empty()) return found;
  std::string list;
  for (const auto& known : sources.entries())
    list += fmt::format("\n  {:<10} {}", known.name, known.help);
  throw DataError(
      fmt::format("{}: expected a source of one of these kinds, got one that is not recognised:{}\n"
                  "If it is of one of these kinds, name the kind with --source-kind",
                  path.string(), list));
}

std::unique_ptr<Source> open_source(const SourceRegistry& sources,
                                    const std::filesystem::path& path, const PartSpec& spec) {
  if (is_url(path.string())) return sources.make(spec, path);
  const std::vector<std::filesystem::path> paths = source_paths(path);
  // The kind webdataset has no options.
  if (paths.size() > 1) return open_webdataset_shards(paths);
  return sources.make(spec, paths[0]);
}

std::unique_ptr<Source> open_source(const std::filesystem::path& path, const std::string& kind,
                                    const ConfigNode& options) {
  const SourceRegistry sources = make_sources();
  return open_source(sources, path,
                     {.name = kind_of_source(sources, path, kind), .options = options});
}

}  // namespace precast::data
