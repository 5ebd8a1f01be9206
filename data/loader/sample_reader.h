#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/beton/disk_file.h"
#include "data/loader/batch_layout.h"
#include "data/loader/image_planner.h"
#include "data/loader/outputs.h"
#include "data/loader/sample_decoder.h"

namespace precast::data {

/// Reads one sample of the file at a time into its row of a batch. Keeps scratch memory: use one
/// per thread.
class SampleReader {
 public:
  /// Keeps references to `reader` and `outputs`, which must outlive this object.
  /// @param jpeg borrowed. Its index belongs to the file's first image field.
  /// @param verify whether to check each value against its checksum, if the file has checksums.
  SampleReader(const BetonReader& reader, const std::vector<Output>& outputs, std::uint64_t seed,
               const JpegDecoding& jpeg, bool verify = false);

  /// Sets the bytes of the next sample, for a file that is not mapped.
  void set_window(const FileWindow& window) { window_ = window; }
  /// @param layout the layout of the outputs. @param memory the batch's memory, layout.bytes()
  /// bytes.
  /// @throws DataError naming file, sample and field if something is damaged; ConfigError if a
  /// value is intact but does not fit its output: it is larger than pad_to, has another size than
  /// the first value (pixels without pad_to), is a mask that is a JPEG or whose size differs from
  /// its image's, or is a number that the type of `convert` cannot represent.
  void read(const SampleKey& key, const BatchLayout& layout, std::size_t row, std::byte* memory);

 private:
  /// The decoders of one output; null if the output does not need them.
  struct Decoders {
    std::unique_ptr<SampleDecoder> image;
    std::unique_ptr<ImagePlanner> plan;
    std::unique_ptr<MaskDecoder> mask;
  };
  /// One output of one sample, and the destination of its value.
  struct Item {
    const Output& output;
    Decoders& decoders;
    const SampleKey& key;
    int image_size_px;
    bool streamed;
    std::byte* out;
  };

  /// Writes the item's value. @{
  void read_as(const ImageOutput& image, const Item& item);
  void read_as(const MaskOutput& mask, const Item& item);
  void read_as(const IntegerOutput& integer, const Item& item) const;
  void read_as(const FloatingOutput& floating, const Item& item) const;
  void read_as(const ArrayOutput& array, const Item& item) const;
  void read_as(const BytesOutput& bytes, const Item& item) const;
  void read_as(const ShapedOutput& shaped, const Item& item);
  void read_as(const LengthOutput& length, const Item& item) const;
  void read_as(const ExtentsOutput& extents, const Item& item);
  void read_as(const SampleIdOutput& id, const Item& item) const;
  /// @}
  void decode_mask(const MaskOutput& mask, const Item& item, std::uint8_t* out);
  void check_mask_size(const MaskOutput& mask, std::uint64_t sample, std::uint64_t height,
                       std::uint64_t width) const;
  [[nodiscard]] BetonReader::ImageSize image_size(std::uint64_t sample, std::size_t field) const;

  [[nodiscard]] const FieldTag& tag_of(const Item& item) const;
  /// The value's bytes in the file.
  [[nodiscard]] std::span<const std::byte> unchecked_value(const Item& item) const;
  /// The value's bytes, checked against their checksum if requested. @{
  [[nodiscard]] std::span<const std::byte> stored_value(const Item& item) const;
  [[nodiscard]] ImageRecord stored_image(const Item& item) const;
  /// @}
  /// Returns `bytes`, a value of a bytes or JSON field, without the zero byte at the end of a JSON
  /// document.
  [[nodiscard]] std::span<const std::byte> text_of(const Item& item,
                                                   std::span<const std::byte> bytes) const;

  const BetonReader& reader_;
  const std::vector<Output>& outputs_;
  /// One per output.
  std::vector<Decoders> decoders_;
  std::vector<std::uint8_t> mask_values_;
  FileWindow window_;
  bool verify_;
  /// Shape of the current value.
  std::vector<std::uint64_t> extents_;
};

}  // namespace precast::data
