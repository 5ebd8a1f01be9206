#include "data/transforms/pipeline_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "data/transforms/stages.h"
#include "data/transforms/whole_image.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::data {
namespace {

/// The order of an image's items.
enum class Stage { crop, resize, transform, finish };

constexpr std::string_view kOrder =
    "Expected, in this order: at most one crop, at most one resize, any number of transforms, and "
    "then channels, convert, normalize and layout, in any order and each at most once";

class ItemReader {
 public:
  ItemReader(const TransformRegistries& registries, OutputSpec& spec, Diagnostics& diagnostics)
      : registries_(registries), spec_(spec), diagnostics_(diagnostics) {}

  void read(const PipelineItem& item) {
    if (registries_.labels.contains(item.name)) {
      if (require_content(item, OutputSpec::Content::number)) read_label(item);
    } else if (item.name == "convert") {
      if (enter_stage(item, Stage::finish)) read_convert(item);
    } else if (registries_.crops.contains(item.name)) {
      if (enter_image_stage(item, Stage::crop)) read_crop(item);
    } else if (registries_.transforms.contains(item.name)) {
      if (enter_image_stage(item, Stage::transform)) read_transform(item);
    } else if (item.name == "resize") {
      if (enter_image_stage(item, Stage::resize)) read_resize(item);
    } else if (item.name == "normalize") {
      if (enter_image_stage(item, Stage::finish)) read_normalize(item);
    } else if (item.name == "channels") {
      if (enter_image_stage(item, Stage::finish)) read_channels(item);
    } else if (item.name == "layout") {
      if (enter_image_stage(item, Stage::finish)) read_layout(item);
    } else {
      diagnostics_.error(
          item.origin, item.key,
          fmt::format("unknown transform '{}'. {}", item.name, suggest(item.name, names())));
    }
  }

  /// Sets the type and the normalisation of the output, and checks that they fit together. Call
  /// after the last read().
  void finish() {
    if (spec_.content == OutputSpec::Content::number) {
      spec_.type = convert_.type;
      return;
    }
    spec_.type = convert_.type;
    spec_.image.normalized = seen_.contains("normalize");
    if (spec_.image.channels_location) resolve_normalize(spec_.image, diagnostics_);
    if (!convert_.type || spec_.content == OutputSpec::Content::any) return;
    if (!convert_.fits_images()) {
      diagnostics_.error(
          convert_origin_, convert_key_,
          fmt::format("type: expected u8, f32, f16 or bf16 for an image, got {}", convert_.name()));
    }
    spec_.image.type = convert_.type;
    if (convert_.type == ElementType::u8 && spec_.image.normalized) {
      diagnostics_.error(convert_origin_, convert_key_,
                         "type: expected a float type for normalised pixels, got u8. Leave out "
                         "`convert` or `normalize`, or convert to a float type");
    }
  }

 private:
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all = registries_.crops.names();
    for (const auto& more : {registries_.transforms.names(), registries_.labels.names()}) {
      all.insert(all.end(), more.begin(), more.end());
    }
    all.insert(all.end(), {"resize", "channels", "convert", "normalize", "layout"});
    return all;
  }

  bool require_content(const PipelineItem& item, OutputSpec::Content content) {
    if (spec_.content == OutputSpec::Content::any) spec_.content = content;
    if (spec_.content == content) return true;
    diagnostics_.error(
        item.origin, item.key,
        fmt::format("'{}' is for {}, but earlier items in the list are not", item.name,
                    content == OutputSpec::Content::image ? "images" : "integers"));
    return false;
  }

  bool enter_stage(const PipelineItem& item, Stage stage) {
    const bool once = stage != Stage::transform;
    const bool repeated = once && (!seen_.insert(item.name).second ||
                                   (stage == Stage::crop && stage_ >= Stage::crop && cropped_));
    if (repeated || stage < stage_) {
      diagnostics_.error(item.origin, item.key,
                         fmt::format("'{}' is out of order or repeated. {}", item.name, kOrder));
      return false;
    }
    stage_ = stage;
    cropped_ = cropped_ || stage == Stage::crop;
    return true;
  }

  bool enter_image_stage(const PipelineItem& item, Stage stage) {
    return require_content(item, OutputSpec::Content::image) && enter_stage(item, stage);
  }

  void read_label(const PipelineItem& item) {
    std::shared_ptr<LabelTransform> label = registries_.labels.create(item.name);
    if (!read_options(*label, item, diagnostics_)) return;
    prepare(*label, item);
    spec_.labels.push_back(std::move(label));
  }

  void read_crop(const PipelineItem& item) {
    std::shared_ptr<Crop> crop = registries_.crops.create(item.name);
    read_options(*crop, item, diagnostics_);
    spec_.image.crop = std::move(crop);
  }

  void read_transform(const PipelineItem& item) {
    // If the flip is the first transform, it costs nothing, because the resizer does it.
    const bool fused = item.name == "horizontal_flip" && spec_.image.steps.empty() && !flipped_;
    if (fused) {
      FlipStage flip;
      if (read_options(flip, item, diagnostics_)) {
        spec_.image.flip_probability = flip.probability;
      }
      flipped_ = true;
      return;
    }
    std::shared_ptr<Transform> transform = registries_.transforms.create(item.name);
    const auto before = std::ranges::count(step_names_, item.name);
    step_names_.push_back(item.name);
    if (read_options(*transform, item, diagnostics_)) prepare(*transform, item);
    spec_.image.steps.push_back({.transform = std::move(transform),
                                 .random_key = fmt::format("{}/{}", item.name, before),
                                 .key = item.key,
                                 .origin = item.origin});
  }

  template <typename Part>
  void prepare(Part& part, const PipelineItem& item) {
    try {
      part.prepare();
    } catch (const Error& error) {
      diagnostics_.error(item.origin, item.key, error.what());
    }
  }

  void read_resize(const PipelineItem& item) {
    ResizeStage resize;
    read_options(resize, item, diagnostics_);
    spec_.image.filter = resize.filter();
  }

  void read_convert(const PipelineItem& item) {
    ConvertStage convert;
    if (read_options(convert, item, diagnostics_)) convert_ = convert;
    convert_origin_ = item.origin;
    convert_key_ = item.key;
  }

  void read_normalize(const PipelineItem& item) {
    NormalizeStage normalize;
    if (!read_options(normalize, item, diagnostics_) || normalize.values.mean.empty()) return;
    spec_.image.normalize = normalize.values;
    spec_.image.normalize_location = {item.key, item.origin};
  }

  void read_channels(const PipelineItem& item) {
    ChannelsStage channels;
    if (!read_options(channels, item, diagnostics_)) return;
    spec_.image.channels = static_cast<int>(channels.count);
    spec_.image.channels_location = {item.key, item.origin};
  }

  void read_layout(const PipelineItem& item) {
    LayoutStage layout;
    read_options(layout, item, diagnostics_);
    spec_.image.channels_first = layout.order == "nchw";
  }

  const TransformRegistries& registries_;
  OutputSpec& spec_;
  Diagnostics& diagnostics_;
  Stage stage_ = Stage::crop;
  std::set<std::string> seen_;
  std::vector<std::string> step_names_;
  bool cropped_ = false;
  bool flipped_ = false;
  ConvertStage convert_;
  Origin convert_origin_;
  std::string convert_key_;
};

}  // namespace

std::vector<PipelineItem> pipeline_items(const ConfigNode& list, std::string_view key,
                                         Diagnostics& diagnostics) {
  std::vector<PipelineItem> items;
  if (list.kind == ConfigNode::Kind::null) return items;
  if (list.kind != ConfigNode::Kind::list) {
    diagnostics.error(list.origin, key,
                      fmt::format("expected a list of transforms, got {}", list.text()));
    return items;
  }
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const ConfigNode& node = list.items[i];
    PipelineItem item{.name = node.scalar,
                      .options = {},
                      .origin = node.origin,
                      .key = fmt::format("{}[{}]", key, i)};
    if (node.kind == ConfigNode::Kind::map && node.entries.size() == 1) {
      item.name = node.entries[0].key;
      item.options = node.entries[0].value;
    } else if (node.kind != ConfigNode::Kind::scalar) {
      diagnostics.error(node.origin, item.key,
                        fmt::format("expected a name or `name: {{options}}`, got {}", node.text()));
      continue;
    }
    items.push_back(std::move(item));
  }
  return items;
}

void resolve_normalize(ImagePipeline& image, Diagnostics& diagnostics) {
  if (!image.normalize_location) {
    image.normalize = image.channels == 1 ? NormalizeOptions::of_luma() : NormalizeOptions();
  } else if (std::cmp_not_equal(image.normalize.mean.size(), image.channels)) {
    diagnostics.error(
        image.normalize_location->origin, image.normalize_location->key,
        fmt::format("expected mean and std of {} number{} each, one per channel, got {}. Without "
                    "numbers, ImageNet's are used; model.in_channels or the item `channels` sets "
                    "the number of channels",
                    image.channels, image.channels == 1 ? "" : "s", image.normalize.mean.size()));
  }
}

void read_items(const std::vector<PipelineItem>& items, const TransformRegistries& registries,
                const ImagePipeline& standard, OutputSpec& spec, Diagnostics& diagnostics) {
  spec.image = standard;
  if (items.empty()) return;
  spec.image.crop = std::make_shared<WholeImage>();
  spec.image.flip_probability = 0;
  ItemReader reader(registries, spec, diagnostics);
  for (const PipelineItem& item : items) reader.read(item);
  reader.finish();
}

}  // namespace precast::data
