#include "framework/core/archive/weights_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "framework/core/archive/safetensors.h"
#include "framework/core/archive/torch_zip.h"
#include "framework/core/archive/weights_spec.h"
#include "framework/core/error.h"

namespace precast {
namespace {

constexpr std::string_view kWrapperPrefixes[] = {"module.", "_orig_mod."};

void strip_wrappers(std::vector<TensorRecord>& records, const std::string& source) {
  std::set<std::string_view> names;
  for (TensorRecord& record : records) {
    std::string_view name = record.name;
    for (bool stripped = true; stripped;) {
      stripped = false;
      for (const std::string_view prefix : kWrapperPrefixes) {
        if (!name.starts_with(prefix)) continue;
        name.remove_prefix(prefix.size());
        stripped = true;
      }
    }
    record.name = std::string(name);
    if (!names.insert(record.name).second) {
      throw CheckpointError(
          fmt::format("{}: tensor '{}' occurs twice, with and without a prefix such as 'module.'",
                      source, record.name));
    }
  }
}

/// A safetensors file starts with 8 bytes of header length and `{`. Call this before
/// looks_like_torch(): a header length of 640 is stored as the bytes 80 02, with which a pickle
/// starts too.
bool looks_like_safetensors(std::span<const std::byte> file) {
  return file.size() >= 9 && file[8] == std::byte{'{'};
}

}  // namespace

WeightsFile::WeightsFile(std::unique_ptr<MappedFile> file, TensorArchive archive,
                         WeightsFormat format)
    : file_(std::move(file)), archive_(std::move(archive)), format_(format) {}

const TensorRecord* WeightsFile::find(std::string_view name) const {
  for (const TensorRecord& record : records()) {
    if (record.name == name) return &record;
  }
  return nullptr;
}

bool has_wrapper_prefix(std::string_view name) {
  return std::ranges::any_of(kWrapperPrefixes,
                             [&](std::string_view prefix) { return name.starts_with(prefix); });
}

WeightsFile load_weights(const std::filesystem::path& path, WrapperPrefixes prefixes) {
  auto file = std::make_unique<MappedFile>(path);
  const auto bytes = file->bytes();
  const std::string source = path.string();
  const bool safetensors = looks_like_safetensors(bytes);
  if (!safetensors && !looks_like_torch(bytes)) {
    throw CheckpointError(
        fmt::format("{}: expected weights (.safetensors, or .pt from torch.save), got a file of "
                    "another format ({} bytes)",
                    source, bytes.size()));
  }
  TensorArchive archive =
      safetensors ? parse_safetensors(bytes, source) : parse_torch_zip(bytes, source);
  const bool own = archive.metadata.contains(std::string(kWeightsSpecKey));
  if (prefixes == WrapperPrefixes::strip && !own) strip_wrappers(archive.records, source);
  return {std::move(file), std::move(archive),
          safetensors ? WeightsFormat::safetensors : WeightsFormat::torch};
}

void save_weights(const std::filesystem::path& path, std::span<const TensorRecord> records,
                  const std::map<std::string, std::string>& metadata, FileOps& ops) {
  const std::string extension = path.extension().string();
  if (extension == ".safetensors") return write_safetensors(path, records, metadata, ops);
  if (extension == ".pt" || extension == ".pth")
    return write_torch_zip(path, records, metadata, ops);
  throw CheckpointError(
      fmt::format("{}: expected a name that ends in .safetensors, .pt or .pth", path.string()));
}

}  // namespace precast
