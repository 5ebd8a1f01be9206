#include "data/torch/batch_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "data/jobs/write_dataset.h"
#include "data/write/register.h"
#include "framework/core/error.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/transforms/parsed_pipeline.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::data {
namespace {

using test::Names;

constexpr std::int64_t kSizePx = 24;

class BatchSourceTest : public ::testing::Test {
 protected:
  void open(const std::string& golden) {
    test::write_bytes(folder_ / "x.beton", test::golden_beton(golden));
    reader_.emplace(folder_ / "x.beton");
  }
  std::unique_ptr<BatchSource> source(at::Device device, const FieldChoice& fields = {}) {
    LoaderOptions options;
    options.batch_size = 5;
    options.workers = 2;
    options.order = make_order(*reader_, {.name = "random"});
    return make_batch_source(*reader_, standard_train_pipeline(), options, fields, device,
                             at::kFloat);
  }
  std::vector<Batch> all(BatchSource& source) {
    source.begin_epoch({.epoch = 1, .image_size_px = kSizePx});
    std::vector<Batch> batches;
    while (auto batch = source.next()) batches.push_back(std::move(*batch));
    return batches;
  }
  test::TemporaryFolder folder_;
  std::optional<BetonReader> reader_;
};

/// Expects that a synthetic batch is like a real batch in everything except its values.
void expect_alike(const Batch& synthetic, const Batch& real) {
  ASSERT_EQ(synthetic.fields.size(), real.fields.size());
  EXPECT_EQ(synthetic.inputs, real.inputs);
  EXPECT_EQ(synthetic.targets, real.targets);
  EXPECT_EQ(synthetic.sample_ids.size(), real.sample_ids.size());
  for (std::size_t i = 0; i < real.fields.size(); ++i) {
    EXPECT_EQ(synthetic.fields[i].name, real.fields[i].name);
    EXPECT_EQ(synthetic.fields[i].tensor.sizes(), real.fields[i].tensor.sizes());
    EXPECT_EQ(synthetic.fields[i].tensor.strides(), real.fields[i].tensor.strides());
    EXPECT_EQ(synthetic.fields[i].tensor.scalar_type(), real.fields[i].tensor.scalar_type());
  }
}

TEST_F(BatchSourceTest, SyntheticBatchesAreLikeRealOnes) {
  open("img_jpg_w3");
  const BatchMaker make =
      make_batch_maker(*reader_, standard_train_pipeline(), {}, at::kCPU, at::kFloat);
  const auto train = source(at::kCPU);
  expect_alike(make(5, kSizePx), all(*train).at(0));
}

TEST_F(BatchSourceTest, InputsAndTargetsAreTakenByName) {
  open("img_jpg_w3");
  const std::string image = reader_->fields()[0].name, label = reader_->fields()[1].name;
  // A model may read any field.
  const auto train = source(at::kCPU, {.inputs = {label, image}, .targets = {label}});
  const Batch batch = all(*train).at(0);
  EXPECT_EQ(batch.input(0).dim(), 1);
  EXPECT_EQ(batch.input(1).dim(), 4);
  EXPECT_THAT([&] { (void)source(at::kCPU, {.inputs = {"lable"}, .targets = {}}); },
              testing::ThrowsMessage<DataError>(Names("lable", "x.beton", label)));
}

TEST_F(BatchSourceTest, ThereAreNoTargetsIfNoneIsNeeded) {
  open("img_jpg_w3");
  const FieldChoice choice{.inputs = {}, .targets = {}, .needs_target = false};
  const auto train = source(at::kCPU, choice);
  const Batch batch = all(*train).at(0);
  EXPECT_TRUE(batch.targets.empty());
  EXPECT_EQ(batch.size(), 5);
  expect_alike(make_batch_maker(*reader_, standard_train_pipeline(), choice, at::kCPU, at::kFloat)(
                   5, kSizePx),
               batch);
  FieldChoice named = choice;
  named.targets = {reader_->fields()[1].name};
  EXPECT_EQ(all(*source(at::kCPU, named)).at(0).target().scalar_type(), at::kLong);
}

TEST_F(BatchSourceTest, SyntheticImagesOfBytesCoverTheirRange) {
  open("img_jpg_w3");
  Pipeline pipeline = standard_train_pipeline();
  pipeline.images.type = ElementType::u8;
  const Batch batch =
      make_batch_maker(*reader_, pipeline, {}, at::kCPU, at::kFloat)(/*samples=*/2, kSizePx);
  ASSERT_EQ(batch.images().scalar_type(), at::kByte);
  EXPECT_EQ(batch.images().min().item<int>(), 0);
  EXPECT_EQ(batch.images().max().item<int>(), 255);
}

TEST_F(BatchSourceTest, ImagesAreChannelsLastViewsAndLabelsAreIntegers) {
  open("img_jpg_w3");
  const auto train = source(at::kCPU);
  EXPECT_EQ(train->size(/*world=*/1), 6);
  EXPECT_EQ(train->samples(), 26);
  auto batches = all(*train);
  ASSERT_EQ(batches.size(), 6U);
  EXPECT_EQ(batches[0].images().sizes(), (std::vector<std::int64_t>{5, 3, kSizePx, kSizePx}));
  EXPECT_TRUE(batches[0].images().is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batches[0].images().scalar_type(), at::kFloat);
  EXPECT_EQ(batches[5].size(), 1);
  for (Batch& batch : batches) {
    for (std::int64_t i = 0; i < batch.size(); ++i) {
      EXPECT_EQ(batch.labels()[i].item<std::int64_t>(),
                reader_->integer(batch.sample_ids[static_cast<std::size_t>(i)], 1));
    }
  }
}

TEST_F(BatchSourceTest, TheLabelMayStandBeforeTheImage) {
  open("img_smart_w3");
  auto batches = all(*source(at::kCPU));
  EXPECT_EQ(batches[0].images().dim(), 4);
  EXPECT_EQ(batches[0].labels().dim(), 1);
}

TEST_F(BatchSourceTest, OutputsOfAPipelineComeAsItSays) {
  open("masks_w1");
  const Pipeline pipeline = test::parsed_pipeline(
      "{ids: sample_id, label: , image: [center_crop], planar: {field: image, transforms: "
      "[center_crop, convert: {type: f16}, layout: {order: nchw}]}, mask: {geometry_of: image}, "
      "vector: }");
  LoaderOptions options;
  options.batch_size = 4;
  const auto source = make_batch_source(*reader_, pipeline, options, {}, at::kCPU, at::kFloat);
  std::vector<Batch> batches = all(*source);
  ASSERT_EQ(batches.size(), 2U);
  EXPECT_EQ(batches[1].size(), 2);
  Batch& batch = batches[0];
  EXPECT_EQ(batch.labels()[2].item<std::int64_t>(), 2);
  EXPECT_EQ(batch.images().sizes(), (std::vector<std::int64_t>{4, 3, kSizePx, kSizePx}));
  EXPECT_TRUE(batch.images().is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_EQ(batch.fields[0].tensor[3].item<std::int64_t>(), 3);
  const at::Tensor planar = batch.fields[3].tensor;
  EXPECT_EQ(planar.scalar_type(), at::kHalf);
  EXPECT_TRUE(planar.is_contiguous());
  EXPECT_EQ(planar.sizes(), batch.images().sizes());
  // The blue channel is the number of the sample and is not normalised.
  EXPECT_EQ(planar[3][2].min().item<float>(), 3);
  EXPECT_EQ(planar[3][2].max().item<float>(), 3);
  EXPECT_EQ(batch.fields[4].tensor.sizes(), (std::vector<std::int64_t>{4, kSizePx, kSizePx}));
  EXPECT_EQ(batch.fields[5].tensor.scalar_type(), at::kShort);
}

TEST_F(BatchSourceTest, FilesWithoutImagesComeAsTensors) {
  const auto write = [&](const char* kind, const FieldInputs& options, const auto& value) {
    FieldRegistry registry("field");
    register_fields(registry);
    (void)write_dataset(folder_ / "x.beton",
                        {{"x", [&] { return registry.make({kind}, options); }},
                         {"y", [&] { return registry.make({"int"}, options); }}},
                        4,
                        [&](std::uint64_t i) {
                          return Sample{"x", {value(i), static_cast<std::int64_t>(i)}};
                        },
                        {});
    reader_.emplace(folder_ / "x.beton");
    LoaderOptions loader;
    loader.batch_size = 4;
    const auto source =
        make_batch_source(*reader_, standard_train_pipeline(), loader, {}, at::kCPU, at::kFloat);
    return all(*source).at(0);
  };
  FieldInputs options;
  options.array = {"<f4", {3}};
  Batch table = write("ndarray", options, [](std::uint64_t i) -> Value {
    const std::vector<float> row(3, static_cast<float>(i));
    const auto bytes = std::as_bytes(std::span(row));
    return ArrayInput{{"<f4", {3}}, {bytes.begin(), bytes.end()}};
  });
  EXPECT_EQ(table.images().sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(table.images()[3][2].item<float>(), 3);
  Batch texts = write("bytes", {}, [](std::uint64_t i) -> Value { return std::string(i, 'a'); });
  EXPECT_EQ(texts.images().sizes(), (std::vector<std::int64_t>{4, 3}));
  EXPECT_EQ(texts.images().sum().item<std::int64_t>(), 6 * 'a');
  EXPECT_EQ(texts.fields[1].name, "x.lengths");
  EXPECT_EQ(texts.fields[1].tensor[2].item<std::int64_t>(), 2);
  EXPECT_EQ(texts.labels()[3].item<std::int64_t>(), 3);
}

TEST_F(BatchSourceTest, MissingFieldsAreNamed) {
  open("scalars_only");
  try {
    source(at::kCPU);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), Names("x.beton", "image", "array", "text"));
  }
  open("img_jpg_w3");
  EXPECT_THROW(source(at::kCPU, {.inputs = {}, .targets = {"lable"}}), DataError);
  EXPECT_THROW(source(at::kCPU, {.inputs = {"imgae"}, .targets = {}}), DataError);
}

}  // namespace
}  // namespace precast::data
