#include "tests/data/beton/small_pages.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/beton/layout.h"
#include "data/beton/sums.h"

namespace precast::test {
namespace {

using namespace precast::data;

/// An empty value also takes a byte, so that no other value begins at the same position.
std::uint64_t room_of(std::uint64_t bytes) {
  return std::max<std::uint64_t>(1, bytes);
}

std::uint64_t smallest_page(const BetonReader& reader) {
  std::uint64_t largest = kSmallPages.min_page_bytes;
  for (std::uint64_t sample = 0; sample < reader.size(); ++sample) {
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < reader.fields().size(); ++i)
      if (has_blob(reader.fields()[i].type)) bytes += room_of(reader.blob_bytes(sample, i));
    largest = std::max(largest, bytes);
  }
  return std::bit_ceil(largest);
}

/// Places the values in small pages and stores their positions.
class SmallFile {
 public:
  SmallFile(const BetonReader& reader, std::size_t record_bytes)
      : reader_(reader),
        page_(smallest_page(reader)),
        records_at_(kHeaderBytes + reader.fields().size() * kFieldBytes),
        record_bytes_(record_bytes),
        bytes_(reader.bytes().begin(),
               reader.bytes().begin() +
                   static_cast<std::ptrdiff_t>(records_at_ + reader.size() * record_bytes)) {
    const bool paged = std::ranges::any_of(reader.fields(), has_blob, &FieldInfo::type);
    if (paged) bytes_.resize(round_up(bytes_.size(), page_));
    for (std::uint64_t sample = 0; sample < reader.size(); ++sample) add(sample);
    if (paged) bytes_.resize(round_up(bytes_.size(), page_));
  }

  std::vector<std::byte> finish(bool checksums) {
    const std::uint64_t extra =
        checksums ? sums_bytes(reader_.size(), hashes_.size() / reader_.size(), 2) : 0;
    store(bytes_.data() + 4, static_cast<std::uint32_t>(page_));
    store(bytes_.data() + 16, bytes_.size() + extra);
    if (checksums) append_sums();
    bytes_.insert(bytes_.end(), table_.begin(), table_.end());
    return std::move(bytes_);
  }

 private:
  void add(std::uint64_t sample) {
    std::uint64_t needed = 0;
    for (std::size_t i = 0; i < reader_.fields().size(); ++i)
      if (has_blob(reader_.fields()[i].type)) needed += room_of(reader_.blob_bytes(sample, i));
    if (bytes_.size() / page_ != (bytes_.size() + needed - (needed > 0 ? 1 : 0)) / page_)
      bytes_.resize(round_up(bytes_.size(), page_));
    for (std::size_t i = 0; i < reader_.fields().size(); ++i) {
      const FieldInfo& field = reader_.fields()[i];
      if (!has_blob(field.type)) continue;
      const auto blob = reader_.blob(sample, i);
      const std::uint64_t pointer = bytes_.size();
      const std::size_t record = records_at_ + sample * record_bytes_ + field.offset;
      store(bytes_.data() + record + (field.type == FieldType::image ? kImagePointerAt : 0),
            pointer);
      bytes_.insert(bytes_.end(), blob.begin(), blob.end());
      bytes_.resize(pointer + room_of(blob.size()));
      for (const std::uint64_t number : {sample, pointer, std::uint64_t{blob.size()}}) {
        table_.resize(table_.size() + 8);
        store(table_.data() + table_.size() - 8, number);
      }
      hashes_.push_back(hash_of(blob));
    }
  }

  void append_sums() {
    store(bytes_.data() + kHeaderBytes + 1 + kFieldNameBytes + kSumsFlagAt, kSumsFlag);
    SumsTrailer trailer;
    trailer.samples = reader_.size();
    trailer.value_fields = hashes_.size() / reader_.size();
    const std::span<const std::byte> bytes(bytes_);
    trailer.head = hash_of(bytes.first(records_at_));
    trailer.records = hash_of(bytes.subspan(records_at_, reader_.size() * record_bytes_));
    trailer.table = hash_of(table_);
    const auto sums = encode_sums(trailer, hashes_, "{}");
    bytes_.insert(bytes_.end(), sums.begin(), sums.end());
  }

  const BetonReader& reader_;
  std::uint64_t page_;
  std::size_t records_at_;
  std::size_t record_bytes_;
  std::vector<std::byte> bytes_;
  std::vector<std::byte> table_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace

std::vector<std::byte> with_small_pages(std::span<const std::byte> file, bool checksums) {
  const BetonReader reader(file, "the file to copy");
  std::vector<FieldType> types;
  for (const FieldInfo& field : reader.fields()) types.push_back(field.type);
  return SmallFile(reader, record_layout(types).bytes).finish(checksums);
}

}  // namespace precast::test
