// A valid plug-in: a transform, an order, a field and a source, each with an option.
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>

#include "data/plugin.h"
#include "data/write/number_fields.h"

namespace {

class Invert final : public precast::data::Transform {
 public:
  void options(precast::Schema& schema) override {
    schema.add("white", &white_, "the value that becomes black").min(0).max(255);
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

struct TenfoldOptions {
  std::int64_t factor = 10;

  void options(precast::Schema& schema) { schema.add("factor", &factor, "multiplier").min(1); }
};

/// Stores integers, multiplied by a factor that is 10 by default.
class Tenfold final : public precast::data::Field {
 public:
  explicit Tenfold(std::int64_t factor) : factor_(factor) {}
  [[nodiscard]] precast::data::FieldType type() const override { return field_.type(); }
  void encode(const precast::data::Value& value, std::uint64_t sample,
              precast::data::EncodedValue& out) override {
    field_.encode(std::get<std::int64_t>(value) * factor_, sample, out);
  }

 private:
  std::int64_t factor_;
  precast::data::IntField field_;
};

std::unique_ptr<precast::data::Field> make_tenfold(const precast::data::FieldInputs& /*inputs*/,
                                                   const TenfoldOptions& options) {
  return std::make_unique<Tenfold>(options.factor);
}

struct CountOptions {
  std::int64_t step = 1;

  void options(precast::Schema& schema) { schema.add("step", &step, "difference between numbers"); }
};

/// A source with one sample, a number, for each byte of the file.
class Count final : public precast::data::Source {
 public:
  Count(const std::filesystem::path& path, std::int64_t step)
      : size_(std::filesystem::file_size(path)), step_(step) {
    fields_ = {{"number", "int"}};
  }
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] precast::data::Sample sample(std::uint64_t i) const override {
    return {.name = std::to_string(i), .values = {static_cast<std::int64_t>(i) * step_}};
  }

 private:
  std::uint64_t size_;
  std::int64_t step_;
};

std::unique_ptr<precast::data::Source> open_count(const std::filesystem::path& path,
                                                  const CountOptions& options) {
  return std::make_unique<Count>(path, options.step);
}

bool is_count(const std::filesystem::path& path) {
  return path.extension() == ".count";
}

struct BackwardsOptions {
  bool twice = false;

  void options(precast::Schema& schema) { schema.add("twice", &twice, "use each sample twice"); }
};

/// An order from the last sample to the first; with `twice`, each sample occurs two times in a row.
class Backwards final : public precast::data::SampleOrder {
 public:
  Backwards(std::uint64_t members, bool twice) : members_(members), twice_(twice) {}
  [[nodiscard]] std::uint64_t size() const override { return members_ * (twice_ ? 2 : 1); }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t /*seed*/,
                                               std::int64_t /*epoch*/) const override {
    std::vector<std::uint64_t> all;
    for (std::uint64_t i = size(); i > 0; --i) all.push_back((i - 1) / (twice_ ? 2 : 1));
    return all;
  }

 private:
  std::uint64_t members_;
  bool twice_;
};

std::unique_ptr<precast::data::SampleOrder> make_backwards(const precast::data::OrderInputs& inputs,
                                                           const BackwardsOptions& options) {
  return std::make_unique<Backwards>(inputs.members.size(), options.twice);
}

void add_parts(precast::data::DataParts& parts) {
  parts.orders.add("backwards", "from the last sample to the first", make_backwards);
  parts.pipeline.transforms.add("invert", "white - value",
                                [] { return std::make_unique<Invert>(); });
  parts.fields.add("tenfold", "an integer, ten times as large", make_tenfold);
  parts.sources.add("count", "one sample for each byte of the file", is_count, open_count);
}

}  // namespace

PRECAST_DATA_PLUGIN(add_parts)
