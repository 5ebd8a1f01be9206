#include "data/write/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <unordered_set>
#include <utility>

#include "data/beton/field_tag.h"
#include "data/decode/jpeg_sidecar.h"
#include "framework/core/error.h"
#include "framework/core/failpoint.h"

namespace precast::data {
namespace {

/// Records are written in pieces of about this size.
constexpr std::size_t kMetadataPieceBytes = std::size_t{1} << 20;

BetonHeader checked_header(std::span<const FieldColumn> columns, std::uint64_t num_samples,
                           std::uint64_t page_bytes) {
  if (!std::has_single_bit(page_bytes) || page_bytes < kMinPageBytes ||
      page_bytes > kMaxPageBytes) {
    throw ConfigError(fmt::format("page_size: expected a power of two from {} to {} bytes, got {}",
                                  kMinPageBytes, kMaxPageBytes, page_bytes));
  }
  if (num_samples == 0) throw ConfigError("dataset: expected at least one sample, got none");
  if (columns.empty() || columns.size() > kMaxFields) {
    throw ConfigError(
        fmt::format("dataset: expected 1 to {} fields, got {}", kMaxFields, columns.size()));
  }
  BetonHeader header;
  header.num_fields = static_cast<std::uint16_t>(columns.size());
  header.page_bytes = static_cast<std::uint32_t>(page_bytes);
  header.num_samples = num_samples;
  return header;
}

/// @throws ConfigError for a custom field whose layout is not in its arguments.
FieldLayout layout_of(const FieldColumn& column) {
  if (column.type != FieldType::custom) return field_layout(column.type);
  std::vector<std::byte> arguments = column.arguments;
  arguments.resize(kFieldArgumentsBytes);
  const FieldTag tag = parse_tag(arguments.data(), column.name);
  if (tag.kind == FieldTag::Kind::custom) return tag.layout;
  throw ConfigError(
      fmt::format("field '{}': expected arguments with a tag that gives the layout of its custom "
                  "metadata (put_tag() in field_tag.h), got arguments without such a tag",
                  column.name));
}

std::vector<FieldLayout> layouts_of(std::span<const FieldColumn> columns) {
  std::vector<FieldLayout> layouts;
  for (const FieldColumn& column : columns) layouts.push_back(layout_of(column));
  return layouts;
}

RecordLayout checked_layout(std::span<const FieldColumn> columns) {
  std::unordered_set<std::string> names;
  for (const auto& [name, type, arguments] : columns) {
    require(arguments.size() <= kFieldArgumentsBytes, "arguments fit into a descriptor");
    const bool printable = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
    if (name.empty() || name.size() > kFieldNameBytes || !printable) {
      throw ConfigError(
          fmt::format("field name: expected 1 to {} printable ASCII characters, got '{}'",
                      kFieldNameBytes, name));
    }
    if (!names.insert(name).second) {
      throw ConfigError(fmt::format("field name: expected unique names, got '{}' twice", name));
    }
  }
  return record_layout(layouts_of(columns));
}

/// Returns the number of bytes that a value needs in a page. An empty value also needs one byte:
/// FFCV's readers look up a value's size by its position, so two values at the same position would
/// get the same size.
std::uint64_t room_of(const std::vector<std::byte>& blob) {
  return std::max<std::uint64_t>(1, blob.size());
}

void append_number(std::vector<std::byte>& out, std::uint64_t number) {
  out.resize(out.size() + sizeof number);
  store(out.data() + out.size() - sizeof number, number);
}

/// @param to has room for kHeaderBytes.
void store_header(const BetonHeader& header, std::byte* to) {
  store(to, header.version);
  store(to + 2, header.num_fields);
  store(to + 4, header.page_bytes);
  store(to + 8, header.num_samples);
  store(to + 16, header.table_offset);
}

}  // namespace

BetonWriter::BetonWriter(const std::filesystem::path& path, std::vector<FieldColumn> columns,
                         std::uint64_t num_samples, const BetonLayout& layout, FileOps& ops)
    : columns_(std::move(columns)),
      layout_(checked_layout(columns_)),
      fields_(layouts_of(columns_)),
      checksums_(layout.checksums),
      info_(layout.info),
      header_(checked_header(columns_, num_samples, layout.page_bytes)),
      ops_(ops),
      file_(path, ops),
      names_{path, file_.path()},
      metadata_at_(kHeaderBytes + columns_.size() * kFieldBytes) {
  for (const std::filesystem::path& name : names_) check_sums_sidecar(name);
  std::uint64_t metadata_end = 0;
  if (__builtin_mul_overflow(num_samples, std::uint64_t{layout_.bytes}, &metadata_end) ||
      metadata_end > UINT64_MAX / 4) {
    throw ConfigError(fmt::format(
        "dataset: expected records of less than 2^62 bytes in total, got {} samples of {} bytes",
        num_samples, layout_.bytes));
  }
  metadata_end += metadata_at_;
  const bool paged = std::ranges::any_of(
      fields_, [](const FieldLayout& field) { return field.pointer_at.has_value(); });
  // A file that contains only numbers has no pages and no padding: its empty table follows the
  // metadata.
  first_page_at_ = metadata_end;
  if (paged) {
    page_.resize(layout.page_bytes);
    first_page_at_ = round_up(metadata_end, layout.page_bytes);
    if (checksums_ && first_page_at_ > metadata_end) {
      // No reader needs the gap that FFCV leaves between records and values.
      first_page_at_ -= layout.page_bytes;
      page_begin_ = page_used_ = metadata_end - first_page_at_;
    }
  }
  pages_end_ = first_page_at_ + page_begin_;
  file_.write_at(0, head());
}

/// Returns the header and the descriptors. The header's pointer to the table stays 0 until
/// complete(), and readers reject a file with this pointer.
std::vector<std::byte> BetonWriter::head() const {
  std::vector<std::byte> bytes(kHeaderBytes + columns_.size() * kFieldBytes);
  store_header(header_, bytes.data());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::byte* at = bytes.data() + kHeaderBytes + i * kFieldBytes;
    *at = static_cast<std::byte>(columns_[i].type);
    std::memcpy(at + 1, columns_[i].name.data(), columns_[i].name.size());
    std::ranges::copy(columns_[i].arguments, at + 1 + kFieldNameBytes);
  }
  std::byte* const flag = bytes.data() + kHeaderBytes + 1 + kFieldNameBytes + kSumsFlagAt;
  const auto stored_flag = load<std::uint64_t>(flag);
  if (checksums_ && stored_flag != 0 && stored_flag != kSumsFlag) {
    throw ConfigError(
        fmt::format("field '{}': expected zeros in bytes {} to {} of the first field's arguments, "
                    "where a file with checksums has its mark, got other bytes. Leave out "
                    "checksums (--no-checksums), or put another field first",
                    columns_[0].name, kSumsFlagAt, kSumsFlagAt + sizeof stored_flag - 1));
  }
  // The arguments of a custom field that comes from a file with checksums contain the mark.
  if (checksums_ || stored_flag == kSumsFlag) store(flag, checksums_ ? kSumsFlag : 0);
  return bytes;
}

std::uint64_t BetonWriter::file_bytes() const {
  const std::uint64_t sums =
      checksums_ ? 8 * value_sums_.size() + info_.size() + kSumsTrailerBytes : 0;
  return pages_end_ + sums + table_.size();
}

bool BetonWriter::points_to_value(std::size_t field, const EncodedValue& value) const {
  const FieldLayout& layout = fields_[field];
  if (!layout.pointer_at) return false;
  if (columns_[field].type != FieldType::custom || !value.blob.empty()) return true;
  return load<std::uint64_t>(value.metadata.data() + *layout.pointer_at) != 0;
}

void BetonWriter::add(std::span<const EncodedValue> values) {
  require(values.size() == columns_.size(), "a sample has one value per field");
  require(samples_ < header_.num_samples, "at most num_samples samples are added");
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (points_to_value(i, values[i])) bytes += room_of(values[i].blob);
  make_room(bytes);

  const std::size_t record = metadata_.size();
  metadata_.resize(record + layout_.bytes);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto& [metadata, blob] = values[i];
    std::byte* at = metadata_.data() + record + layout_.offsets[i];
    require(metadata.size() == fields_[i].bytes, "metadata has the size of its field");
    std::copy(metadata.begin(), metadata.end(), at);
    if (!fields_[i].pointer_at) continue;
    if (checksums_) value_sums_.push_back(hash_of(blob));
    if (!points_to_value(i, values[i])) continue;
    const std::uint64_t pointer = first_page_at_ + pages_ * header_.page_bytes + page_used_;
    store(at + *fields_[i].pointer_at, pointer);
    std::copy(blob.begin(), blob.end(), page_.begin() + static_cast<std::ptrdiff_t>(page_used_));
    page_used_ += room_of(blob);
    append_number(table_, samples_);
    append_number(table_, pointer);
    append_number(table_, blob.size());
  }
  ++samples_;
  if (metadata_.size() >= kMetadataPieceBytes) flush_metadata();
}

/// Begins a new page if another `bytes` bytes do not fit in this one.
void BetonWriter::make_room(std::uint64_t bytes) {
  if (bytes <= page_.size() - page_used_) return;
  if (bytes > page_.size()) {
    const std::uint64_t needed = bytes <= kMaxPageBytes ? std::bit_ceil(bytes) : 0;
    throw DataError(fmt::format(
        "expected a sample that fits in one page of {} bytes, got {} bytes. {}", page_.size(),
        bytes,
        needed > 0
            ? fmt::format(
                  "Use --page-size {0} (Python: page_size={0}) or a smaller --image.max_resolution",
                  needed)
            : std::string("No page is large enough; use a smaller --image.max_resolution")));
  }
  flush_page(page_.size());
}

void BetonWriter::flush_page(std::uint64_t end) {
  if (page_used_ > page_begin_) {
    std::fill(page_.begin() + static_cast<std::ptrdiff_t>(page_used_), page_.end(), std::byte{0});
    const std::uint64_t at = first_page_at_ + pages_ * header_.page_bytes;
    file_.write_at(at + page_begin_, std::span(page_).subspan(page_begin_, end - page_begin_));
    pages_end_ = at + end;
    ++filled_pages_;
  }
  ++pages_;
  page_begin_ = page_used_ = 0;
}

void BetonWriter::flush_metadata() {
  file_.write_at(metadata_at_, metadata_);
  if (checksums_) records_hash_.add(metadata_);
  metadata_at_ += metadata_.size();
  metadata_.clear();
}

void BetonWriter::complete() {
  if (samples_ == 0) throw DataError("dataset: expected at least one sample, got none");
  header_.num_samples = samples_;
  if (page_used_ > page_begin_) flush_page(checksums_ ? page_used_ : page_.size());
  flush_metadata();
  if (page_.empty()) pages_end_ = metadata_at_;
  header_.table_offset = file_bytes() - table_.size();
  if (checksums_) write_sums();
  failpoint("beton.before_table");
  file_.write_at(header_.table_offset, table_);
  failpoint("beton.before_header");
  std::array<std::byte, kHeaderBytes> header{};
  store_header(header_, header.data());
  file_.write_at(0, header);
  is_complete_ = true;
}

std::string BetonWriter::fingerprint() const {
  require(is_complete_, "the file is complete");
  RunningHash hash;
  std::vector<std::byte> piece(kMetadataPieceBytes);
  for (std::uint64_t at = 0; at < metadata_at_; at += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), metadata_at_ - at));
    file_.read_at(at, piece);
    hash.add(piece);
  }
  return fmt::format("{:016x}", hash.value());
}

void BetonWriter::finish() {
  if (!is_complete_) complete();
  // A dataset without its index is valid, but a dataset with the index of another dataset is not.
  for (const std::filesystem::path& name : names_) remove_jpeg_sidecar(name, ops_);
  file_.commit();
  // The checksums next to an older file of this name do not belong to the new file.
  for (const std::filesystem::path& name : names_) remove_sums_sidecar(name, ops_);
}

void BetonWriter::write_sums() {
  SumsTrailer trailer;
  trailer.samples = samples_;
  trailer.value_fields = value_sums_.size() / samples_;
  trailer.head = hash_of(head());
  trailer.records = records_hash_.value();
  trailer.table = hash_of(table_);
  const std::vector<std::byte> block = encode_sums(trailer, value_sums_, info_);
  file_.write_at(header_.table_offset - block.size(), block);
}

}  // namespace precast::data
