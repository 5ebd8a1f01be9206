#include "framework/core/archive/zip_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstring>
#include <optional>
#include <utility>

#include "framework/core/archive/byte_reader.h"
#include "framework/core/error.h"

namespace precast {
namespace {

constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kDirectoryEntry = 0x02014b50;
constexpr std::uint32_t kDirectoryEnd = 0x06054b50;
constexpr std::uint32_t kDirectoryEnd64 = 0x06064b50;
constexpr std::uint32_t kLocator64 = 0x07064b50;
constexpr std::size_t kLocalHeaderBytes = 30;
constexpr std::size_t kDirectoryEndBytes = 22;
constexpr std::size_t kLocatorBytes = 20;
constexpr std::uint64_t kDirectoryEntryBytes = 46;
constexpr std::uint16_t kZip64Extra = 1;
/// The extra field that torch uses for padding.
constexpr std::uint16_t kPaddingExtra = 0x4246;
constexpr std::uint16_t kEncrypted = 1;
constexpr std::uint16_t kNamesAreUtf8 = 0x800;
constexpr std::uint16_t kVersion20 = 20;
constexpr std::uint16_t kVersion45 = 45;
constexpr std::size_t kAlignment = 64;
constexpr std::uint16_t kNoDate = 0x21;  // 1980-01-01: equal weights produce equal files

/// Eight tables that let crc32() process eight bytes at a time (Intel's "slicing-by-8").
constexpr auto kCrcTables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320U : 0);
    tables[0][i] = crc;
  }
  for (std::size_t i = 0; i < 256; ++i) {
    for (std::size_t table = 1; table < 8; ++table) {
      const std::uint32_t last = tables[table - 1][i];
      tables[table][i] = (last >> 8) ^ tables[0][last & 0xFF];
    }
  }
  return tables;
}();

template <std::integral Number>
void put(std::string& text, Number value) {
  std::array<char, sizeof value> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);
  text.append(bytes.data(), bytes.size());
}

/// The 64-bit values that replace 32-bit fields in which all bits are set.
struct Zip64Fields {
  std::uint64_t size;
  std::uint64_t stored_size;
  std::uint64_t offset;
};

void read_zip64_extra(std::span<const std::byte> extra, const std::string& source,
                      Zip64Fields& fields) {
  ByteReader reader(extra, source + ": extra field");
  while (reader.left() >= 4) {
    const auto id = reader.number<std::uint16_t>();
    const auto size = reader.number<std::uint16_t>();
    if (id != kZip64Extra) {
      reader.skip(size);
      continue;
    }
    for (std::uint64_t* field : {&fields.size, &fields.stored_size, &fields.offset}) {
      if (*field == UINT32_MAX) *field = reader.number<std::uint64_t>();
    }
    return;
  }
}

/// An entry as the directory lists it.
struct ListedEntry {
  std::string name;
  Zip64Fields fields{};
  std::uint32_t crc = 0;
  /// Whether the entry is neither compressed nor encrypted.
  bool stored = false;
};

ListedEntry read_entry(ByteReader& reader, const std::string& source) {
  ListedEntry entry;
  Zip64Fields& fields = entry.fields;
  if (reader.number<std::uint32_t>() != kDirectoryEntry)
    reader.fail("expected a zip entry, got other bytes");
  reader.skip(4);
  const auto flags = reader.number<std::uint16_t>();
  const auto method = reader.number<std::uint16_t>();
  reader.skip(4);
  entry.crc = reader.number<std::uint32_t>();
  fields.stored_size = reader.number<std::uint32_t>();
  fields.size = reader.number<std::uint32_t>();
  const auto name_bytes = reader.number<std::uint16_t>();
  const auto extra_bytes = reader.number<std::uint16_t>();
  const auto comment_bytes = reader.number<std::uint16_t>();
  reader.skip(8);
  fields.offset = reader.number<std::uint32_t>();
  entry.name = reader.text(name_bytes);
  read_zip64_extra(reader.take(extra_bytes), source, fields);
  reader.skip(comment_bytes);
  entry.stored = (flags & kEncrypted) == 0 && method == 0 && fields.size == fields.stored_size;
  return entry;
}

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    std::array<std::uint32_t, 2> words{};
    std::memcpy(words.data(), at, sizeof words);
    words[0] ^= crc;
    crc = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      crc ^= kCrcTables[7 - i][(words[0] >> (8 * i)) & 0xFF];
      crc ^= kCrcTables[3 - i][(words[1] >> (8 * i)) & 0xFF];
    }
  }
  for (; left > 0; --left, ++at) {
    crc = (crc >> 8) ^ kCrcTables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xFF];
  }
  return ~crc;
}

ZipReader::ZipReader(std::span<const std::byte> file, std::string source)
    : file_(file), source_(std::move(source)) {
  read_directory(find_directory());
}

ZipReader::Directory ZipReader::find_directory() const {
  ByteReader reader(file_, source_);
  const std::uint64_t earliest =
      file_.size() - std::min<std::uint64_t>(file_.size(), kDirectoryEndBytes + UINT16_MAX);
  std::optional<std::uint64_t> found;
  for (std::uint64_t at = file_.size() - std::min(file_.size(), kDirectoryEndBytes) + 1;
       at-- > earliest && !found;) {
    if (at + kDirectoryEndBytes > file_.size()) continue;
    reader.seek(at);
    if (reader.number<std::uint32_t>() != kDirectoryEnd) continue;
    reader.skip(16);
    if (reader.number<std::uint16_t>() == reader.left()) found = at;
  }
  if (!found) {
    throw CheckpointError(
        fmt::format("{}: expected a zip directory at the end, got none in {} bytes. The file is "
                    "truncated or damaged: copy it again",
                    source_, file_.size()));
  }
  reader.seek(*found + 10);
  Directory directory{};
  directory.entries = reader.number<std::uint16_t>();
  directory.size = reader.number<std::uint32_t>();
  directory.offset = reader.number<std::uint32_t>();
  const bool zip64 = directory.entries == UINT16_MAX || directory.size == UINT32_MAX ||
                     directory.offset == UINT32_MAX;
  if (!zip64) return directory;

  reader.seek(*found - std::min<std::uint64_t>(*found, kLocatorBytes));
  if (reader.number<std::uint32_t>() != kLocator64)
    reader.fail("expected a zip64 locator, got other bytes");
  reader.skip(4);
  reader.seek(reader.number<std::uint64_t>());
  if (reader.number<std::uint32_t>() != kDirectoryEnd64)
    reader.fail("expected a zip64 directory, got other bytes");
  reader.skip(28);
  directory.entries = reader.number<std::uint64_t>();
  directory.size = reader.number<std::uint64_t>();
  directory.offset = reader.number<std::uint64_t>();
  return directory;
}

void ZipReader::read_directory(const Directory& directory) {
  ByteReader reader(file_, source_);
  reader.seek(directory.offset);
  if (directory.entries > reader.left() / kDirectoryEntryBytes) {
    reader.fail(fmt::format("expected at most {} zip entries, got {}",
                            reader.left() / kDirectoryEntryBytes, directory.entries));
  }
  std::uint64_t stored_bytes_left = file_.size();
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const ListedEntry listed = read_entry(reader, source_);
    const std::string& name = listed.name;
    // Limits the sum of the sizes. Otherwise, entries could share bytes, and checking a small file
    // could take hours.
    if (listed.fields.stored_size > stored_bytes_left) {
      throw CheckpointError(fmt::format(
          "{}: entry '{}': expected entries that do not overlap, got more bytes than the file has",
          source_, name));
    }
    stored_bytes_left -= listed.fields.stored_size;
    const Entry entry{listed.fields.offset, listed.fields.size, listed.crc, listed.stored};
    if (!entries_.emplace(name, entry).second) {
      throw CheckpointError(
          fmt::format("{}: expected each entry name once, got '{}' twice", source_, name));
    }
    names_.push_back(name);
  }
}

const ZipReader::Entry& ZipReader::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    throw CheckpointError(
        fmt::format("{}: expected an entry '{}', got none. The file is damaged", source_, name));
  }
  return found->second;
}

bool ZipReader::is_stored(std::string_view name) const {
  return entry(name).stored;
}

std::span<const std::byte> ZipReader::read(std::string_view name) const {
  const Entry& entry = this->entry(name);
  if (!entry.stored) {
    throw CheckpointError(
        fmt::format("{}: entry '{}': expected a stored entry as torch writes it, got a compressed "
                    "or encrypted one. Save the file again with torch.save",
                    source_, name));
  }
  ByteReader reader(file_, fmt::format("{}: entry '{}'", source_, name));
  reader.seek(entry.header_offset);
  if (reader.number<std::uint32_t>() != kLocalHeader)
    reader.fail("expected a zip entry header, got other bytes");
  reader.skip(kLocalHeaderBytes - 8);
  const auto name_bytes = reader.number<std::uint16_t>();
  const auto extra_bytes = reader.number<std::uint16_t>();
  if (reader.text(name_bytes) != name)
    reader.fail(
        "expected the entry's header to contain the same name as the zip directory, got another "
        "name");
  reader.skip(extra_bytes);
  const auto bytes = reader.take(entry.size);
  if (entry.crc != 0 && crc32(bytes) != entry.crc) {
    reader.fail(fmt::format("expected CRC {:08x}, got {:08x}. The file is damaged: copy it again",
                            entry.crc, crc32(bytes)));
  }
  return bytes;
}

ZipWriter::ZipWriter(const std::filesystem::path& path, FileOps& ops, std::uint64_t zip32_limit)
    : file_(path, ops), zip32_limit_(zip32_limit) {}

void ZipWriter::add(const std::string& name, std::span<const std::byte> bytes) {
  require(name.size() <= UINT16_MAX, "a zip entry's name fits 16 bits");
  const Entry entry{name, file_.size(), bytes.size(), crc32(bytes)};
  const bool large = entry.size >= zip32_limit_;
  const auto size32 = large ? UINT32_MAX : static_cast<std::uint32_t>(entry.size);

  std::string extra;
  if (large) {
    put(extra, kZip64Extra);
    put(extra, std::uint16_t{16});
    put(extra, entry.size);
    put(extra, entry.size);
  }
  const std::uint64_t unpadded =
      file_.size() + kLocalHeaderBytes + name.size() + extra.size() + 2 * sizeof(std::uint16_t);
  const auto padding =
      static_cast<std::uint16_t>((kAlignment - unpadded % kAlignment) % kAlignment);
  put(extra, kPaddingExtra);
  put(extra, padding);
  extra.append(padding, 'Z');

  std::string header;
  put(header, kLocalHeader);
  put(header, large ? kVersion45 : kVersion20);
  put(header, kNamesAreUtf8);
  put(header, std::uint16_t{0});  // stored
  put(header, std::uint16_t{0});  // time
  put(header, kNoDate);
  put(header, entry.crc);
  put(header, size32);
  put(header, size32);
  put(header, static_cast<std::uint16_t>(name.size()));
  put(header, static_cast<std::uint16_t>(extra.size()));
  file_.append(header + name + extra);
  file_.append(bytes);
  entries_.push_back(entry);
}

std::string ZipWriter::directory_entry(const Entry& entry) const {
  const bool large = entry.size >= zip32_limit_;
  const bool far = entry.header_offset >= zip32_limit_;
  const auto size32 = large ? UINT32_MAX : static_cast<std::uint32_t>(entry.size);
  std::string extra;
  if (large || far) {
    put(extra, kZip64Extra);
    put(extra, static_cast<std::uint16_t>((large ? 16 : 0) + (far ? 8 : 0)));
    if (large) put(extra, entry.size);
    if (large) put(extra, entry.size);
    if (far) put(extra, entry.header_offset);
  }
  std::string text;
  put(text, kDirectoryEntry);
  put(text, kVersion45);
  put(text, large || far ? kVersion45 : kVersion20);
  put(text, kNamesAreUtf8);
  put(text, std::uint16_t{0});
  put(text, std::uint16_t{0});
  put(text, kNoDate);
  put(text, entry.crc);
  put(text, size32);
  put(text, size32);
  put(text, static_cast<std::uint16_t>(entry.name.size()));
  put(text, static_cast<std::uint16_t>(extra.size()));
  text.append(10, '\0');  // comment length, disk, attributes
  put(text, far ? UINT32_MAX : static_cast<std::uint32_t>(entry.header_offset));
  return text + entry.name + extra;
}

void ZipWriter::finish() {
  const std::uint64_t offset = file_.size();
  for (const Entry& entry : entries_) file_.append(directory_entry(entry));
  const std::uint64_t size = file_.size() - offset;
  const std::uint64_t count = entries_.size();

  std::string end;
  const bool zip64 = count >= UINT16_MAX || size >= zip32_limit_ || offset >= zip32_limit_;
  if (zip64) {
    const std::uint64_t end64_offset = file_.size();
    put(end, kDirectoryEnd64);
    put(end, std::uint64_t{44});  // bytes that follow
    put(end, kVersion45);
    put(end, kVersion45);
    put(end, std::uint64_t{0});  // two disk numbers
    put(end, count);
    put(end, count);
    put(end, size);
    put(end, offset);
    put(end, kLocator64);
    put(end, std::uint32_t{0});
    put(end, end64_offset);
    put(end, std::uint32_t{1});
  }
  const std::uint16_t count16 = zip64 ? UINT16_MAX : static_cast<std::uint16_t>(count);
  put(end, kDirectoryEnd);
  put(end, std::uint32_t{0});
  put(end, count16);
  put(end, count16);
  put(end, zip64 ? UINT32_MAX : static_cast<std::uint32_t>(size));
  put(end, zip64 ? UINT32_MAX : static_cast<std::uint32_t>(offset));
  put(end, std::uint16_t{0});
  file_.append(end);
  file_.commit();
}

}  // namespace precast
