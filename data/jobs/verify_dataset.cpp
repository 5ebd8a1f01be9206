#include "data/jobs/verify_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <tuple>

#include "data/beton/json_text.h"
#include "data/decode/jpeg_decoder.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

void check_json(std::span<const std::byte> value) {
  // An empty document is valid: FFCV's readers return an empty value for it.
  if (!value.empty() && !is_json(json_text(value)))
    throw DataError("expected a JSON document, got bytes that are not JSON");
}

/// Checks samples, for one thread.
class Verifier {
 public:
  Verifier(const BetonReader& reader, VerifySummary& all, std::mutex& mutex)
      : reader_(reader), decoder_({.libjpeg_only = true}), total_(all), mutex_(mutex) {}
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  ~Verifier() {
    const std::scoped_lock lock(mutex_);
    total_.values += local_.values;
    total_.bytes += local_.bytes;
    total_.jpegs += local_.jpegs;
    total_.json += local_.json;
    std::ranges::move(local_.damaged, std::back_inserter(total_.damaged));
  }

  void check(std::uint64_t sample) {
    for (std::size_t field = 0; field < reader_.fields().size(); ++field) {
      if (!reader_.fields()[field].has_pointer()) continue;
      try {
        check_value(sample, field);
      } catch (const DataError& error) {
        local_.damaged.push_back({sample, field, strip_prefix(error.what(), sample, field)});
      }
    }
  }

 private:
  /// Removes the names of the file, the sample and the field from the start of a message, because
  /// DamagedValue stores sample and field separately.
  [[nodiscard]] std::string strip_prefix(std::string_view message, std::uint64_t sample,
                                         std::size_t field) const {
    const std::string text = reader_.sample_text(sample);
    for (const std::string& prefix :
         {fmt::format("{} field '{}': ", text, reader_.fields()[field].name), text + ": "}) {
      if (message.starts_with(prefix)) return std::string(message.substr(prefix.size()));
    }
    return std::string(message);
  }

  void check_value(std::uint64_t sample, std::size_t field) {
    const std::span<const std::byte> value = reader_.blob(sample, field);
    ++local_.values;
    local_.bytes += value.size();
    reader_.check_value(sample, field, value);
    const FieldTag& tag = reader_.fields()[field].tag;
    if (tag.kind == FieldTag::Kind::pixels || tag.kind == FieldTag::Kind::ragged)
      (void)shaped_elements(tag, value, extents_);
    const FieldType type = reader_.fields()[field].type;
    if (type == FieldType::json) {
      check_json(value);
      ++local_.json;
    }
    if (type != FieldType::image || reader_.image_mode(sample, field) != ImageMode::jpg) return;
    const ImageRecord image = reader_.image(sample, field);
    decoder_.decode(value, image.height, image.width, {0, 0, image.height, image.width});
    ++local_.jpegs;
  }

  const BetonReader& reader_;
  JpegDecoder decoder_;
  std::vector<std::uint64_t> extents_;
  VerifySummary local_;
  VerifySummary& total_;
  std::mutex& mutex_;
};

}  // namespace

VerifySummary verify_dataset(const BetonReader& reader, const ForEachOptions& options) {
  VerifySummary summary;
  std::mutex mutex;
  summary.cancelled = !for_each_sample(reader.size(), options, [&] {
    auto verifier = std::make_shared<Verifier>(reader, summary, mutex);
    return [verifier](std::uint64_t sample) { verifier->check(sample); };
  });
  std::ranges::sort(summary.damaged, {}, [](const DamagedValue& damaged) {
    return std::tuple(damaged.sample, damaged.field);
  });
  return summary;
}

}  // namespace precast::data
