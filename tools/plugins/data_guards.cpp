#include "tools/plugins/data_guards.h"

#include <vector>

namespace precast::tools {
namespace {

/// Guards the members that crops, transforms and label transforms have in common.
template <typename Part>
class GuardedOptions : public Part {
 public:
  explicit GuardedOptions(GuardedPart<DataGuards, Part> part) : part_(std::move(part)) {}

  void options(Schema& schema) override {
    part_.before("options", [&](auto& part) { part.options(schema); });
  }
  [[nodiscard]] std::string problem() const override {
    return part_.before("problem", [](auto& part) { return part.problem(); });
  }

 protected:
  GuardedPart<DataGuards, Part> part_;
};

class GuardedCrop final : public GuardedOptions<data::Crop> {
 public:
  using GuardedOptions::GuardedOptions;

  [[nodiscard]] data::Rect choose(int height, int width, RandomStream& random) const override {
    return part_.during("choose", [&](auto& crop) { return crop.choose(height, width, random); });
  }
};

class GuardedTransform final : public GuardedOptions<data::Transform> {
 public:
  using GuardedOptions::GuardedOptions;

  void prepare() override {
    part_.before("prepare", [](auto& transform) { transform.prepare(); });
  }
  [[nodiscard]] data::PixelShape output(const data::PixelShape& in) const override {
    return part_.before("output", [&](auto& transform) { return transform.output(in); });
  }
  [[nodiscard]] std::size_t scratch_bytes(const data::PixelShape& in) const override {
    return part_.before("scratch_bytes",
                        [&](auto& transform) { return transform.scratch_bytes(in); });
  }
  [[nodiscard]] bool moves_pixels() const override {
    return part_.before("moves_pixels", [](auto& transform) { return transform.moves_pixels(); });
  }
  [[nodiscard]] bool blends_moved_copies() const override {
    return part_.before("blends_moved_copies",
                        [](auto& transform) { return transform.blends_moved_copies(); });
  }
  [[nodiscard]] bool is_edit() const override {
    return part_.before("is_edit", [](auto& transform) { return transform.is_edit(); });
  }
  [[nodiscard]] data::PixelEdit edit(const data::PixelShape& shape,
                                     RandomStream& random) const override {
    return part_.during("edit", [&](auto& transform) { return transform.edit(shape, random); });
  }
  void apply(const data::Pixels& image, data::TransformContext& context) const override {
    part_.during("apply", [&](auto& transform) { transform.apply(image, context); });
  }
};

class GuardedLabels final : public GuardedOptions<data::LabelTransform> {
 public:
  using GuardedOptions::GuardedOptions;

  void prepare() override {
    part_.before("prepare", [](auto& transform) { transform.prepare(); });
  }
  [[nodiscard]] std::int64_t apply(std::int64_t label, std::uint64_t sample) const override {
    return part_.during("apply", [&](auto& transform) { return transform.apply(label, sample); });
  }
};

class GuardedOrder final : public data::SampleOrder {
 public:
  explicit GuardedOrder(GuardedPart<DataGuards, data::SampleOrder> part) : part_(std::move(part)) {}

  [[nodiscard]] std::uint64_t size() const override {
    return part_.during("size", [](auto& order) { return order.size(); });
  }
  [[nodiscard]] std::vector<std::uint64_t> ids(std::uint64_t seed,
                                               std::int64_t epoch) const override {
    return part_.during("ids", [&](auto& order) { return order.ids(seed, epoch); });
  }
  [[nodiscard]] std::uint64_t memory_bytes() const override {
    return part_.during("memory_bytes", [](auto& order) { return order.memory_bytes(); });
  }

 private:
  GuardedPart<DataGuards, data::SampleOrder> part_;
};

}  // namespace

std::unique_ptr<data::Crop> DataGuards::guarded(std::unique_ptr<data::Crop> crop,
                                                std::string where) {
  return std::make_unique<GuardedCrop>(
      GuardedPart<DataGuards, data::Crop>(std::move(crop), std::move(where)));
}

std::unique_ptr<data::Transform> DataGuards::guarded(std::unique_ptr<data::Transform> transform,
                                                     std::string where) {
  return std::make_unique<GuardedTransform>(
      GuardedPart<DataGuards, data::Transform>(std::move(transform), std::move(where)));
}

std::unique_ptr<data::LabelTransform> DataGuards::guarded(
    std::unique_ptr<data::LabelTransform> transform, std::string where) {
  return std::make_unique<GuardedLabels>(
      GuardedPart<DataGuards, data::LabelTransform>(std::move(transform), std::move(where)));
}

std::unique_ptr<data::SampleOrder> DataGuards::guarded(std::unique_ptr<data::SampleOrder> order,
                                                       std::string where) {
  return std::make_unique<GuardedOrder>(
      GuardedPart<DataGuards, data::SampleOrder>(std::move(order), std::move(where)));
}

}  // namespace precast::tools
