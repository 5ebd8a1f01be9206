#include "data/beton/joined_files.h"

namespace precast::data {

void DiskFiles::read(std::uint64_t offset, std::span<std::byte> to) const {
  const Part& part = at(offset);
  part.file->read(offset - part.begin, to);
}

bool MappedFiles::cached(std::uint64_t offset) const {
  const Part& part = at(offset);
  return part.file->cached(offset - part.begin);
}

void MappedFiles::will_need(std::uint64_t offset, std::uint64_t bytes) const {
  const Part& part = at(offset);
  part.file->will_need(offset - part.begin, bytes);
}

void MappedFiles::disable_readahead() const {
  for (const Part& part : parts()) part.file->disable_readahead();
}

}  // namespace precast::data
