#pragma once

#include <cstddef>

#include "data/cache/disk_file.h"
#include "data/loader/batch_layout.h"
#include "data/loader/sample_decoder.h"

namespace precast::data {

/// Brings one sample of the file after the other into its row of a batch. Keeps scratch memory: one
/// a thread.
class SampleReader {
 public:
  /// Borrows all three; they outlive this.
  SampleReader(const BetonReader& reader, const ImagePipeline& pipeline, const Normalize& normalize,
               std::uint64_t seed)
      : reader_(reader), normalize_(normalize), decoder_(pipeline, seed) {}

  /// Where the bytes of the next sample lie, for a file that is not mapped.
  void set_window(const FileWindow& window) { window_ = window; }
  /// @param memory a batch's memory, of layout.bytes().
  /// @throws DataError naming file, sample and field if something is damaged.
  void read(const SamplePlace& place, const BatchLayout& layout, std::size_t row,
            std::byte* memory);

 private:
  void read_field(const SamplePlace& place, const OutputField& field, std::byte* out);

  const BetonReader& reader_;
  const Normalize& normalize_;
  SampleDecoder decoder_;
  FileWindow window_;
};

}  // namespace precast::data
