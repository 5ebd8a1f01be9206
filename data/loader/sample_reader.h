#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "data/beton/disk_file.h"
#include "data/loader/batch_layout.h"
#include "data/loader/outputs.h"
#include "data/loader/sample_decoder.h"

namespace precast::data {

/// Brings one sample of the file after the other into its row of a batch. Keeps scratch memory: one
/// a thread.
class SampleReader {
 public:
  /// Borrows both; they outlive this.
  /// @param jpeg its index is that of the file's first image field. Borrowed.
  /// @param verify holds each value against its checksum, where the file has checksums.
  SampleReader(const BetonReader& reader, const std::vector<Output>& outputs, std::uint64_t seed,
               const JpegDecoding& jpeg, bool verify = false);

  /// Where the bytes of the next sample lie, for a file that is not mapped.
  void set_window(const FileWindow& window) { window_ = window; }
  /// @param layout of the outputs. @param memory a batch's memory, of layout.bytes().
  /// @throws DataError naming file, sample and field if something is damaged; ConfigError, too, if
  /// a value is sound but not what the outputs ask for: larger than pad_to, of another size than
  /// the first one, a mask of another size than its image.
  void read(const SamplePlace& place, const BatchLayout& layout, std::size_t row,
            std::byte* memory);

 private:
  /// The value's bytes, checked if that is asked for.
  [[nodiscard]] std::span<const std::byte> value(std::size_t field, std::uint64_t sample) const;
  [[nodiscard]] ImageRecord image(std::size_t field, std::uint64_t sample) const;
  /// Of a bytes or JSON field, without the zero behind a text.
  [[nodiscard]] std::span<const std::byte> text(std::size_t field, std::uint64_t sample) const;
  void read_text(const Output& output, std::uint64_t sample, std::byte* out) const;
  void read_shaped(const Output& output, std::uint64_t sample, std::byte* out);
  void read_extents(const Output& output, std::uint64_t sample, std::byte* out);
  void read_output(std::size_t output, const SamplePlace& place, int image_size_px, std::byte* out);
  void read_mask(std::size_t output, const SamplePlace& place, int image_size_px, std::byte* out);
  void check_mask_size(const Output& output, std::uint64_t sample, std::uint64_t height,
                       std::uint64_t width) const;

  const BetonReader& reader_;
  const std::vector<Output>& outputs_;
  /// One an output; null where it needs none.
  std::vector<std::unique_ptr<SampleDecoder>> images_;
  std::vector<std::unique_ptr<MaskDecoder>> masks_;
  std::vector<std::uint8_t> mask_values_;
  FileWindow window_;
  bool verify_;
  /// Of the value at hand.
  std::vector<std::uint64_t> extents_;
};

}  // namespace precast::data
