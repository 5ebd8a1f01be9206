#include "framework/core/archive/safetensors.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <utility>

#include "framework/core/archive/byte_reader.h"
#include "framework/core/error.h"

namespace precast {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
constexpr std::size_t kMaxTensors = 1'000'000;
constexpr std::size_t kAlignment = 8;
constexpr const char* kMetadataKey = "__metadata__";
constexpr const char* kDigestKey = "precast_xxh3_64";

/// Hashes everything that parse_safetensors() returns, so that every changed byte that affects a
/// result is detected.
std::string digest(std::span<const TensorRecord> records,
                   const std::map<std::string, std::string>& metadata) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  const auto add_number = [&](std::uint64_t number) {
    XXH3_64bits_update(state.get(), &number, sizeof number);
  };
  const auto add_text = [&](std::string_view text) {
    add_number(text.size());
    XXH3_64bits_update(state.get(), text.data(), text.size());
  };
  for (const TensorRecord& record : records) {
    add_text(record.name);
    add_text(dtype_info(record.dtype).safetensors);
    add_number(record.shape.size());
    for (const std::int64_t size : record.shape) add_number(static_cast<std::uint64_t>(size));
    XXH3_64bits_update(state.get(), record.bytes.data(), record.bytes.size());
  }
  for (const auto& [key, value] : metadata) {
    if (key == kDigestKey) continue;
    add_text(key);
    add_text(value);
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> offsets;
  bool has_shape = false;
};

/// Receives the header as a stream of events, and stops at any structure that is not valid. No JSON
/// tree is built. Only the metadata and one entry per tensor are stored, so a malicious header
/// cannot make the parser use memory for anything else.
class HeaderReader {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;

  bool null() { return fail("null"); }
  bool boolean(bool) { return fail("true or false"); }
  bool number_float(double, const std::string& text) { return fail(text); }
  bool binary(json::binary_t&) { return fail("binary data"); }
  bool number_integer(std::int64_t value) { return fail(fmt::format("{}", value)); }

  bool number_unsigned(std::uint64_t value) {
    if (list_ == nullptr || value > INT64_MAX) return fail(fmt::format("{}", value));
    if (list_->size() == kMaxTensorDimensions) return fail("number beyond the first 64 of a list");
    list_->push_back(static_cast<std::int64_t>(value));
    return true;
  }

  bool string(std::string& value) {
    if (depth_ != 2 || list_ != nullptr) return fail(fmt::format("text '{}'", value));
    if (in_metadata_) {
      if (!metadata.emplace(key_, value).second) return fail("repeated metadata key");
      return true;
    }
    if (key_ != "dtype" || !entries.back().dtype.empty()) return fail(fmt::format("'{}'", value));
    entries.back().dtype = value;
    return true;
  }

  bool start_object(std::size_t) {
    const bool legal = depth_ == 0 || (depth_ == 1 && list_ == nullptr);
    if (!legal) return fail("map");
    if (++depth_ == 1) return true;
    in_metadata_ = name_ == kMetadataKey;
    if (in_metadata_) return !std::exchange(seen_metadata_, true) || fail("repeated metadata");
    if (entries.size() == kMaxTensors) return fail("tensor beyond the first million");
    if (!names_.insert(name_).second) return fail("repeated name");
    entries.emplace_back().name = name_;
    return true;
  }

  bool end_object() {
    --depth_;
    key_.clear();
    return true;
  }

  bool key(std::string& name) {
    (depth_ == 1 ? name_ : key_) = name;
    return true;
  }

  bool start_array(std::size_t) {
    if (depth_ != 2 || in_metadata_ || list_ != nullptr) return fail("list");
    Entry& entry = entries.back();
    if (key_ == "shape" && !std::exchange(entry.has_shape, true)) {
      list_ = &entry.shape;
    } else if (key_ == "data_offsets" && entry.offsets.empty()) {
      list_ = &entry.offsets;
    } else {
      return fail("list");
    }
    return true;
  }

  bool end_array() {
    list_ = nullptr;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    problem = fmt::format("expected a JSON header, got a syntax error at byte {}", position + 8);
    return false;
  }

 private:
  bool fail(std::string_view what) {
    problem = fmt::format("header: unexpected {} at '{}'{}{}", what, name_.substr(0, 200),
                          key_.empty() ? "" : ", ", key_.substr(0, 200));
    return false;
  }

  int depth_ = 0;
  std::string name_;
  std::string key_;
  std::vector<std::int64_t>* list_ = nullptr;
  bool in_metadata_ = false;
  bool seen_metadata_ = false;
  std::set<std::string> names_;
};

TensorRecord to_record(Entry& entry, std::span<const std::byte> data, const std::string& source) {
  const auto fail = [&](const std::string& message) {
    throw CheckpointError(fmt::format("{}: tensor '{}': {}", source, entry.name, message));
  };
  const auto dtype = find_dtype(&DTypeInfo::safetensors, entry.dtype);
  if (!dtype) {
    fail(fmt::format("expected a dtype such as F32, F16, BF16 or I64, got '{}'", entry.dtype));
  }
  if (!entry.has_shape || entry.offsets.size() != 2) {
    fail(fmt::format("expected dtype, shape and two data_offsets, got dtype {}, {} and {} of them",
                     entry.dtype, entry.has_shape ? "a shape" : "no shape", entry.offsets.size()));
  }
  const auto begin = static_cast<std::uint64_t>(entry.offsets[0]);
  const auto end = static_cast<std::uint64_t>(entry.offsets[1]);
  if (begin > end || end > data.size()) {
    fail(
        fmt::format("expected data_offsets within the {} bytes of data, got [{}, {}]. "
                    "The file is truncated or damaged",
                    data.size(), begin, end));
  }
  const auto expected = byte_count(*dtype, entry.shape);
  if (!expected || *expected != end - begin) {
    fail(fmt::format("expected {} of data for {} {}, got {} bytes",
                     expected ? fmt::format("{} bytes", *expected) : "fewer than 2^64 bytes",
                     entry.dtype, shape_text(entry.shape), end - begin));
  }
  return {std::move(entry.name), *dtype, std::move(entry.shape), data.subspan(begin, end - begin)};
}

/// Rejects bytes between tensors, and bytes that tensors share: different programs could read such
/// a file differently.
void check_no_holes(const std::vector<TensorRecord>& records, std::span<const std::byte> data,
                    const std::string& source) {
  std::vector<const TensorRecord*> order;
  for (const TensorRecord& record : records) order.push_back(&record);
  std::ranges::sort(order, {}, [](const TensorRecord* record) {
    return std::pair(record->bytes.data(), record->bytes.size());
  });
  const std::byte* end = data.data();
  for (const TensorRecord* record : order) {
    if (record->bytes.data() != end) {
      throw CheckpointError(
          fmt::format("{}: tensor '{}': expected its bytes at byte {} of the data, "
                      "got {}: tensors overlap or leave a gap",
                      source, record->name, end - data.data(), record->bytes.data() - data.data()));
    }
    end += record->bytes.size();
  }
  const auto used = static_cast<std::size_t>(end - data.data());
  if (used != data.size()) {
    throw CheckpointError(
        fmt::format("{}: expected {} bytes of tensor data, got {}. The file is "
                    "damaged or has extra bytes at its end",
                    source, used, data.size()));
  }
}

json header_entry(const TensorRecord& record, std::uint64_t offset) {
  return {{"dtype", dtype_info(record.dtype).safetensors},
          {"shape", record.shape},
          {"data_offsets", {offset, offset + record.bytes.size()}}};
}

/// The positions of the records' bytes. Tensors with larger elements come first, so that all
/// elements are aligned.
struct Layout {
  std::vector<std::size_t> order;
  /// offsets[i] belongs to record i.
  std::vector<std::uint64_t> offsets;
};

Layout lay_out(std::span<const TensorRecord> records) {
  Layout layout{std::vector<std::size_t>(records.size()),
                std::vector<std::uint64_t>(records.size())};
  std::iota(layout.order.begin(), layout.order.end(), 0);
  std::ranges::stable_sort(layout.order, std::greater<>(),
                           [&](std::size_t i) { return dtype_info(records[i].dtype).size_bytes; });
  std::uint64_t end = 0;
  for (const std::size_t i : layout.order) {
    layout.offsets[i] = end;
    end += records[i].bytes.size();
  }
  return layout;
}

/// The header as JSON, padded with spaces to a multiple of kAlignment. @param path for messages
std::string header_text(const std::filesystem::path& path, std::span<const TensorRecord> records,
                        const std::map<std::string, std::string>& metadata,
                        const std::vector<std::uint64_t>& offsets) {
  nlohmann::ordered_json header;
  header[kMetadataKey] = metadata;
  header[kMetadataKey][kDigestKey] = digest(records, metadata);
  std::set<std::string> names = {kMetadataKey};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const TensorRecord& record = records[i];
    require(byte_count(record.dtype, record.shape) == record.bytes.size(),
            "a record's bytes fill its shape");
    if (!names.insert(record.name).second)
      throw CheckpointError(repeated_name_text(path.string(), record.name));
    // Appends the pair directly, because ordered_json's operator[] searches all earlier keys.
    header.get_ref<nlohmann::ordered_json::object_t&>().push_back(
        {record.name, header_entry(record, offsets[i])});
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception&) {
    throw CheckpointError(
        fmt::format("{}: expected names and metadata in UTF-8, got other bytes", path.string()));
  }
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, std::span<const TensorRecord> records,
                       const std::map<std::string, std::string>& metadata, FileOps& ops) {
  const Layout layout = lay_out(records);
  const std::string text = header_text(path, records, metadata, layout.offsets);
  AtomicFile file(path, ops);
  const std::uint64_t length = text.size();
  file.append(std::as_bytes(std::span(&length, 1)));
  file.append(text);
  for (const std::size_t i : layout.order) file.append(records[i].bytes);
  file.commit();
}

TensorArchive parse_safetensors(std::span<const std::byte> file, const std::string& source) {
  ByteReader reader(file, source);
  const auto header_bytes = reader.number<std::uint64_t>();
  if (header_bytes > kMaxHeaderBytes) {
    reader.fail(
        fmt::format("expected a header of at most {} bytes, got {}. "
                    "This is not a safetensors file, or it is damaged",
                    kMaxHeaderBytes, header_bytes));
  }
  const std::string_view header = reader.text(header_bytes);
  const auto data = file.subspan(reader.position());
  if (!header.starts_with('{'))
    throw CheckpointError(source +
                          ": expected a JSON header that starts with '{', got another first byte");

  HeaderReader events;
  if (!json::sax_parse(header.begin(), header.end(), &events)) {
    throw CheckpointError(fmt::format("{}: {}", source, events.problem));
  }
  TensorArchive archive;
  archive.metadata = std::move(events.metadata);
  for (Entry& entry : events.entries) archive.records.push_back(to_record(entry, data, source));
  check_no_holes(archive.records, data, source);

  if (const auto stored = archive.metadata.extract(kDigestKey)) {
    const std::string computed = digest(archive.records, archive.metadata);
    if (stored.mapped() != computed) {
      throw CheckpointError(
          fmt::format("{}: expected the digest {}, got {}. The file is damaged: "
                      "copy it again",
                      source, stored.mapped(), computed));
    }
  }
  return archive;
}

}  // namespace precast
