#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/beton/disk_file.h"
#include "data/http/remote_file.h"
#include "framework/core/file.h"

namespace precast::data {

/// How the bytes of images and other blobs are read.
enum class BlobAccess {
  /// The whole file is mapped. Its pages in the page cache are shared by all processes that map it.
  mapped,
  /// Metadata, checksums and the sizes of blobs are in memory (36 bytes per sample with an image
  /// and a label); callers read blobs through disk(). Nothing is mapped: if the file shrinks during
  /// use, the result is an error instead of a SIGBUS.
  on_disk,
  /// Like `on_disk`, but bypasses the page cache (O_DIRECT).
  on_disk_direct,
};

/// The bytes of a .beton file that is mapped, on disk, in memory, or on a server. The spans that
/// available() returns stay valid as long as this object exists, even after it is moved; if the
/// file is on disk, load() invalidates them.
class BetonBytes {
 public:
  /// @throws IoError if the file cannot be opened.
  BetonBytes(const std::filesystem::path& path, BlobAccess access);
  /// A file on a server. Its local copy is mapped; bytes that have not been fetched are 0.
  explicit BetonBytes(std::shared_ptr<RemoteFile> remote);
  /// A file in memory. Borrows `bytes`. @param path only for messages.
  BetonBytes(std::span<const std::byte> bytes, std::filesystem::path path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The path as text, for messages.
  [[nodiscard]] std::string location() const { return path_.string(); }
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The file to read blobs from, or null if the file is mapped or in memory.
  [[nodiscard]] const DiskFile* disk() const { return disk_.get(); }
  /// The mapping, or null.
  [[nodiscard]] const MappedFile* mapping() const {
    return remote_ ? &remote_->mapping() : mapping_.get();
  }
  /// The file on a server, or null.
  [[nodiscard]] RemoteFile* remote() const { return remote_.get(); }

  /// Loads the first `end` bytes of the file, or the whole file if it is shorter; available() then
  /// contains them.
  void load(std::uint64_t end);
  /// The whole file. Exceptions: for a file on disk, the span ends after the bytes that load() has
  /// read; for a file on a server, bytes that have not been fetched are 0.
  [[nodiscard]] std::span<const std::byte> available() const { return available_; }
  /// Returns `bytes` bytes from `offset`. @param memory receives the bytes if the file is on disk.
  [[nodiscard]] std::span<const std::byte> read(std::uint64_t offset, std::uint64_t bytes,
                                                std::vector<std::byte>& memory) const;
  /// Number of bytes that load() has copied into memory.
  [[nodiscard]] std::uint64_t memory_bytes() const { return head_.size(); }
  /// Makes disk() bypass the page cache from now on. Only for a file on disk.
  void enable_direct_io() { disk_->enable_direct_io(); }

 private:
  std::filesystem::path path_;
  std::shared_ptr<RemoteFile> remote_;
  std::unique_ptr<MappedFile> mapping_;
  std::unique_ptr<DiskFile> disk_;
  std::vector<std::byte> head_;
  /// For a remote file: the end of the part that load() has fetched.
  std::uint64_t loaded_ = 0;
  std::span<const std::byte> available_;
  std::uint64_t size_ = 0;
};

}  // namespace precast::data
