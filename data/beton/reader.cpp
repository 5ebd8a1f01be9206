#include "data/beton/reader.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "data/beton/several_files.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// Maximum number of attempts to fetch valid header, metadata and table of a file on a server.
constexpr int kMaxOpenTries = 3;

}  // namespace

BetonReader::File::File(BetonBytes file, const BetonLimits& limits, const BetonOptions& options)
    : bytes(std::move(file)), metadata(bytes, limits, options) {
  const std::uint64_t begin = metadata.header().table_offset;
  std::vector<std::byte> memory;
  const std::span<const std::byte> rest = bytes.read(begin, bytes.size() - begin, memory);
  sums = StoredSums(bytes, metadata, rest);
  const AllocationTable table(rest, metadata.header(), metadata.end(), bytes.location());
  blobs = BlobIndex(metadata, table, bytes.location());
  if (RemoteFile* const remote = bytes.remote())
    remote->set_values(metadata.size() * value_fields_before(metadata, metadata.fields().size()));
}

std::shared_ptr<const BetonReader::File> BetonReader::File::open(const std::filesystem::path& path,
                                                                 BlobAccess access,
                                                                 const BetonOptions& options) {
  if (is_url(path.string())) return open_remote(path.string(), access, options);
  auto file = std::make_shared<File>(BetonBytes(path, access), BetonLimits{}, options);
  if (access == BlobAccess::on_disk_direct) file->bytes.enable_direct_io();
  return file;
}

std::shared_ptr<const BetonReader::File> BetonReader::File::open_remote(
    const std::string& url, BlobAccess access, const BetonOptions& options) {
  if (access != BlobAccess::mapped) {
    throw ConfigError(
        fmt::format("{}: expected data.in_memory: 1 or 2 for a remote file, got 0, "
                    "which reads only local files",
                    redacted_url(url)));
  }
  const auto remote = std::make_shared<RemoteFile>(url, options.remote);
  for (int tries = 1;; ++tries) {
    try {
      return std::make_shared<const File>(BetonBytes(remote), BetonLimits{}, options);
    } catch (const DataError&) {
      // The bytes may have been damaged in transit, so they are fetched again.
      remote->forget_ranges();
      if (tries == kMaxOpenTries) throw;
    }
  }
}

BetonReader::BetonReader(std::shared_ptr<const File> file)
    : path_(file->bytes.path()), header_(file->metadata.header()) {
  add(std::move(file), 0);
}

BetonReader::BetonReader(const std::filesystem::path& path, BlobAccess access,
                         const BetonOptions& options)
    : BetonReader(File::open(path, access, options)) {}

BetonReader::BetonReader(std::span<const std::byte> bytes, std::filesystem::path path,
                         const BetonLimits& limits, const BetonOptions& options)
    : BetonReader(
          std::make_shared<const File>(BetonBytes(bytes, std::move(path)), limits, options)) {}

BetonReader::BetonReader(const std::vector<std::filesystem::path>& paths, BlobAccess access,
                         const BetonOptions& options)
    : BetonReader(File::open(paths.at(0), access, options)) {
  if (paths.size() == 1) return;
  std::vector<BetonReader> readers = {*this};
  std::string names = path_.string();
  for (const std::filesystem::path& path : std::span(paths).subspan(1)) {
    readers.emplace_back(path, access, options);
    check_same_fields(*this, readers.back());
    names += ", " + readers.back().path().string();
  }
  std::vector<const BetonReader*> all;
  for (const BetonReader& reader : readers) all.push_back(&reader);
  header_.page_bytes = static_cast<std::uint32_t>(copy_page_bytes(all));
  // Reads that bypass the page cache begin at multiples of this.
  const std::uint64_t unit =
      std::max<std::uint64_t>(header_.page_bytes, DiskFile::kDirectAlignment);
  for (std::size_t i = 1; i < readers.size(); ++i) {
    const std::uint64_t end = parts_.back().begin + parts_.back().file->bytes.size();
    add(readers[i].parts_.front().file, round_up(end, unit));
  }
  path_ = names;
}

void BetonReader::add(std::shared_ptr<const File> file, std::uint64_t begin) {
  const std::uint64_t first = parts_.empty() ? 0 : header_.num_samples;
  if (const DiskFile* const disk = file->bytes.disk()) disk_.add(begin, *disk);
  if (const MappedFile* const mapping = file->bytes.mapping()) mappings_.add(begin, *mapping);
  if (RemoteFile* const remote = file->bytes.remote()) remotes_.push_back(remote);
  header_.num_samples = first + file->metadata.size();
  header_.table_offset = begin + file->metadata.header().table_offset;
  parts_.push_back({std::move(file), first, begin});
}

std::vector<BetonReader> BetonReader::files() const {
  std::vector<BetonReader> files;
  for (const Part& part : parts_) files.push_back(BetonReader(part.file));
  return files;
}

BetonReader::FileSample BetonReader::locate(std::uint64_t sample) const {
  const LocalSample at = to_local(sample);
  return {static_cast<std::size_t>(&at.part - parts_.data()), at.sample};
}

std::string BetonReader::sample_text(std::uint64_t sample) const {
  const LocalSample at = to_local(sample);
  return fmt::format("{}: sample {}", at.part.file->bytes.location(), at.sample);
}

std::span<const std::byte> BetonReader::bytes() const {
  require(disk() == nullptr, "bytes() needs a file that is mapped or in memory");
  return single_file().bytes.available();
}

std::uint64_t BetonReader::file_bytes() const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.file->bytes.size();
  return bytes;
}

std::uint64_t BetonReader::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const Part& part : parts_) {
    const File& file = *part.file;
    bytes += file.bytes.memory_bytes() + file.sums.memory_bytes() + file.blobs.memory_bytes();
  }
  return bytes;
}

std::span<const std::byte> BetonReader::arguments(std::size_t field) const {
  require(field < fields().size(), "the field exists");
  return first().bytes.available().subspan(kHeaderBytes + field * kFieldBytes + 1 + kFieldNameBytes,
                                           kFieldArgumentsBytes);
}

std::span<const Allocation> BetonReader::unclaimed(std::uint64_t sample) const {
  require(sample < size(), "the sample exists");
  return single_file().blobs.unclaimed(sample);
}

std::size_t BetonReader::field(std::string_view name) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < fields().size(); ++i) {
    if (fields()[i].name == name) return i;
    names.push_back(fields()[i].name);
  }
  throw DataError(fmt::format("{}: expected a field named '{}', got none. {}", path_.string(), name,
                              suggest(name, names)));
}

std::size_t BetonReader::first_field(FieldType type) const {
  std::size_t i = 0;
  while (i < fields().size() && fields()[i].type != type) ++i;
  return i;
}

std::span<const std::byte> BetonReader::metadata(std::uint64_t sample, std::size_t field) const {
  return {record(sample, field), fields()[field].layout.bytes};
}

void BetonReader::check_movable(std::uint64_t sample, std::size_t field) const {
  const std::span<const Allocation> blobs = unclaimed(sample);
  const FieldInfo& info = fields()[field];
  if (info.type != FieldType::custom || info.has_pointer() || blobs.empty()) return;
  throw DataError(fmt::format(
      "{} field '{}': expected a known pointer to every large value, got {} bytes at {} that "
      "belong to a custom field with an unknown pointer. Give --field-layout "
      "{}=BYTES:ALIGNMENT:POINTER, where POINTER is the offset of the pointer in the field's "
      "metadata",
      sample_text(sample), fields()[field].name, blobs[0].size, blobs[0].pointer,
      fields()[field].name));
}

ImageRecord BetonReader::image(std::uint64_t sample, std::size_t field,
                               const FileWindow& window) const {
  const std::byte* at = record(sample, field);
  require(fields()[field].type == FieldType::image, "image() needs an image field");
  const ImageRecord record{static_cast<ImageMode>(*at), load<std::uint16_t>(at + kImageWidthAt),
                           load<std::uint16_t>(at + kImageHeightAt), blob(sample, field, window)};
  // Another process may have changed the mapped file after the constructor's checks.
  if (record.mode != ImageMode::jpg &&
      record.bytes.size() !=
          static_cast<std::size_t>(record.width) * static_cast<std::size_t>(record.height) * 3) {
    throw DataError(fmt::format("{}: changed while it was read", sample_text(sample)));
  }
  return record;
}

BetonReader::ImageSize BetonReader::image_size(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  require(fields()[field].type == FieldType::image, "image_size() needs an image field");
  return {load<std::uint16_t>(at + kImageWidthAt), load<std::uint16_t>(at + kImageHeightAt)};
}

std::uint64_t BetonReader::image_pixels(std::uint64_t sample, std::size_t field) const {
  const ImageSize size = image_size(sample, field);
  return static_cast<std::uint64_t>(size.width) * static_cast<std::uint64_t>(size.height);
}

ImageMode BetonReader::image_mode(std::uint64_t sample, std::size_t field) const {
  require(fields()[field].type == FieldType::image, "image_mode() needs an image field");
  return static_cast<ImageMode>(*record(sample, field));
}

std::int64_t BetonReader::integer(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  require(fields()[field].type == FieldType::integer, "integer() needs an int field");
  return load<std::int64_t>(at);
}

double BetonReader::floating(std::uint64_t sample, std::size_t field) const {
  const std::byte* at = record(sample, field);
  require(fields()[field].type == FieldType::floating, "floating() needs a float field");
  return load<double>(at);
}

std::span<const std::byte> BetonReader::blob(std::uint64_t sample, std::size_t field,
                                             const FileWindow& window) const {
  require(field < fields().size() && sample < size(), "sample and field exist");
  require(first().blobs.has_blobs(field) || fields()[field].type == FieldType::custom,
          "blob() needs a field with bytes");
  const std::uint64_t size = blob_bytes(sample, field);
  if (size == 0) return {};
  if (!remotes_.empty()) {
    const Remote remote = remote_value(sample, field);
    if (remote.file != nullptr) remote.file->ensure(remote.value);
  }
  return stored({sample, blob_offset(sample, field), size}, window);
}

BetonReader::Remote BetonReader::remote_value(std::uint64_t sample, std::size_t field) const {
  const LocalSample at = to_local(sample);
  const File& file = *at.part.file;
  const std::uint64_t size = file.blobs.bytes(at.sample, field);
  if (file.bytes.remote() == nullptr || size == 0) return {};
  const std::size_t column = value_fields_before(file.metadata, field);
  const std::uint64_t columns = value_fields_before(file.metadata, file.metadata.fields().size());
  const std::uint64_t begin = file.metadata.pointer(at.sample, field);
  const FileSums& sums = file.sums.sums();
  return {file.bytes.remote(),
          {.index = at.sample * columns + column,
           .begin = begin,
           .end = begin + size,
           .has_hash = !sums.empty(),
           .hash = sums.empty() ? 0 : sums.value(at.sample, column)}};
}

std::span<const std::byte> BetonReader::bytes_of(const Allocation& allocation,
                                                 const FileWindow& window) const {
  const Part& part = to_local(allocation.sample).part;
  if (RemoteFile* const remote = part.file->bytes.remote()) {
    const std::uint64_t begin = allocation.pointer - part.begin;
    remote->ensure(begin, begin + allocation.size);
  }
  return stored(allocation, window);
}

std::span<const std::byte> BetonReader::stored(const Allocation& allocation,
                                               const FileWindow& window) const {
  const auto [sample, offset, size] = allocation;
  if (disk() != nullptr) {
    require(offset >= window.offset && offset - window.offset <= window.bytes.size() &&
                size <= window.bytes.size() - (offset - window.offset),
            "the window holds the sample's bytes");
    return window.bytes.subspan(offset - window.offset, size);
  }
  const Part& part = to_local(sample).part;
  const std::uint64_t end = part.begin + part.file->metadata.header().table_offset;
  if (offset < part.begin || offset > end || size > end - offset)
    throw DataError(fmt::format("{}: changed while it was read", sample_text(sample)));
  return part.file->bytes.available().subspan(offset - part.begin, size);
}

void BetonReader::check_value(std::uint64_t sample, std::size_t field,
                              std::span<const std::byte> value) const {
  const LocalSample at = to_local(sample);
  const FileSums& sums = at.part.file->sums.sums();
  if (sums.empty()) return;
  const std::uint64_t expected =
      sums.value(at.sample, value_fields_before(at.part.file->metadata, field));
  const std::uint64_t found = hash_of(value);
  if (expected == found) return;
  throw DataError(
      fmt::format("{} field '{}': expected checksum {:016x}, got {:016x}. Its bytes "
                  "have changed since they were written",
                  sample_text(sample), fields()[field].name, expected, found));
}

SumsTrailer BetonReader::hash_extents(std::span<const std::byte> table) const {
  return data::hash_extents(single_file().bytes, single_file().metadata, table);
}

std::string BetonReader::fingerprint() const {
  const auto hex = [](const void* data, std::size_t bytes) {
    return fmt::format("{:016x}", XXH3_64bits(data, bytes));
  };
  std::string all;
  for (const Part& part : parts_)
    all += hex(part.file->bytes.available().data(), part.file->metadata.end());
  return parts_.size() == 1 ? all : hex(all.data(), all.size());
}

void write_sums_sidecar(const BetonReader& reader, FileOps& ops) {
  const SumsTrailer trailer =
      reader.hash_extents(reader.bytes().subspan(reader.header().table_offset));
  std::vector<std::uint64_t> values;
  values.reserve(trailer.samples * trailer.value_fields);
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    for (std::size_t i = 0; i < reader.fields().size(); ++i) {
      if (reader.fields()[i].has_pointer()) values.push_back(hash_of(reader.blob(sample, i)));
    }
  }
  AtomicFile file(sums_sidecar(reader.path()), ops);
  file.append(encode_sums(trailer, values, {}));
  file.commit();
}

}  // namespace precast::data
