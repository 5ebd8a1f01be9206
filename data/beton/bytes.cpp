#include "data/beton/bytes.h"

#include <algorithm>
#include <utility>

namespace precast::data {

BetonBytes::BetonBytes(const std::filesystem::path& path, BlobAccess access) : path_(path) {
  if (access != BlobAccess::mapped) {
    disk_ = std::make_unique<DiskFile>(path);
    size_ = disk_->size();
  } else {
    mapping_ = std::make_unique<MappedFile>(path);
    available_ = mapping_->bytes();
    size_ = available_.size();
  }
}

BetonBytes::BetonBytes(std::shared_ptr<RemoteFile> remote)
    : path_(redacted_url(remote->url())),
      remote_(std::move(remote)),
      available_(remote_->mapping().bytes()),
      size_(available_.size()) {}

BetonBytes::BetonBytes(std::span<const std::byte> bytes, std::filesystem::path path)
    : path_(std::move(path)), available_(bytes), size_(bytes.size()) {}

void BetonBytes::load(std::uint64_t end) {
  end = std::min(end, size_);
  if (remote_ && end > loaded_) {
    remote_->ensure(loaded_, end);
    loaded_ = end;
  }
  if (disk_ == nullptr || end <= head_.size()) return;
  const std::uint64_t loaded = head_.size();
  head_.resize(end);
  disk_->read(loaded, std::span(head_).subspan(loaded));
  available_ = head_;
}

std::span<const std::byte> BetonBytes::read(std::uint64_t offset, std::uint64_t bytes,
                                            std::vector<std::byte>& memory) const {
  if (remote_) remote_->ensure(offset, offset + bytes);
  if (disk_ == nullptr) return available_.subspan(offset, bytes);
  memory.resize(bytes);
  disk_->read(offset, memory);
  return memory;
}

}  // namespace precast::data
