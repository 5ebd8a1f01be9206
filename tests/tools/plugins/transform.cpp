// A plug-in as it should be: a transform with an option, a field.
#include <algorithm>
#include <cstddef>

#include "data/plugin.h"
#include "data/write/number_fields.h"

namespace {

class Invert final : public precast::data::Transform {
 public:
  void options(precast::Schema& schema) override {
    schema.add("white", &white_, "what becomes black").min(0).max(255);
  }
  void apply(const precast::data::Pixels& image,
             precast::data::TransformContext& /*context*/) const override {
    const std::size_t values = image.shape.values();
    for (std::size_t v = 0; v < values; ++v)
      image.data[v] = static_cast<std::uint8_t>(std::max<std::int64_t>(0, white_ - image.data[v]));
  }

 private:
  std::int64_t white_ = 255;
};

/// Integers, ten times as large in the file.
class Tenfold final : public precast::data::Field {
 public:
  [[nodiscard]] precast::data::FieldType type() const override { return field_.type(); }
  void encode(const precast::data::Value& value, std::uint64_t sample,
              precast::data::EncodedValue& out) override {
    field_.encode(std::get<std::int64_t>(value) * 10, sample, out);
  }

 private:
  precast::data::IntField field_;
};

void add_parts(precast::data::DataParts& parts) {
  parts.pipeline.transforms.add("invert", "white - value",
                                [] { return std::make_unique<Invert>(); });
  parts.fields.add("tenfold", "an integer, ten times as large",
                   [](const precast::data::FieldOptions&) { return std::make_unique<Tenfold>(); });
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
