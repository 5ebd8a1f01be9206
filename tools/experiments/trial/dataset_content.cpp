#include "tools/experiments/trial/dataset_content.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <vector>

#include "data/beton/reader.h"
#include "data/beton/sums.h"
#include "data/http/http_client.h"
#include "framework/core/config/value.h"
#include "framework/core/error.h"

namespace precast::tools {
namespace {

using Paths = std::vector<std::filesystem::path>;

/// A text that changes whenever the file is written or replaced.
std::string status_of(const std::filesystem::path& file) {
  struct ::stat status = {};
  if (::stat(file.c_str(), &status) != 0) return "none";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                     status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                     status.st_ctim.tv_nsec);
}

std::vector<std::string> statuses_of(const Paths& paths) {
  std::vector<std::string> statuses;
  for (const std::filesystem::path& path : paths) {
    statuses.push_back(status_of(path));
    statuses.push_back(status_of(data::sums_sidecar(path)));
  }
  return statuses;
}

/// DatasetContent::checksums.
std::string hash_checksums(const data::BetonReader& dataset) {
  data::RunningHash hash;
  for (const data::BetonReader& file : dataset.files()) {
    const data::FileSums& sums = file.sums();
    if (sums.empty()) return {};
    std::vector<std::uint64_t> values(sums.trailer().value_fields);
    for (std::uint64_t sample = 0; sample < file.size(); ++sample) {
      for (std::size_t field = 0; field < values.size(); ++field)
        values[field] = sums.value(sample, field);
      hash.add(std::as_bytes(std::span(values)));
    }
  }
  return fmt::format("{:016x}", hash.value());
}

std::optional<DatasetContent> read_content(const Paths& paths) {
  try {
    // Not mapped: if another program truncates a file meanwhile, the result is an error, not
    // SIGBUS.
    const data::BetonReader dataset(paths, data::BlobAccess::on_disk);
    return DatasetContent{dataset.fingerprint(), hash_checksums(dataset)};
  } catch (const Error&) {  // the trials report it, unless the dataset is not for BetonReader
    return std::nullopt;
  }
}

}  // namespace

std::optional<DatasetContent> dataset_content(const ConfigNode& files) {
  struct Known {
    std::vector<std::string> statuses;
    std::optional<DatasetContent> content;
  };
  static std::mutex mutex;
  static std::map<Paths, Known> known;

  std::vector<std::string> names;
  if (!read_value(files, &names) || names.empty() || std::ranges::any_of(names, data::is_url))
    return std::nullopt;
  const Paths paths(names.begin(), names.end());
  const std::scoped_lock lock(mutex);
  // Read before the content, so that a file that is replaced in between is read again later.
  std::vector<std::string> statuses = statuses_of(paths);
  const auto found = known.find(paths);
  if (found != known.end() && found->second.statuses == statuses) return found->second.content;
  const std::optional<DatasetContent> content = read_content(paths);
  known.insert_or_assign(paths, Known{std::move(statuses), content});
  return content;
}

}  // namespace precast::tools
