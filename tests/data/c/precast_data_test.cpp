#include "data/c/precast_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "data/beton/reader.h"
#include "data/loader/loader.h"
#include "data/transforms/pipeline.h"
#include "tests/data/beton/golden_beton.h"
#include "tests/data/beton/synthetic_beton.h"
#include "tests/data/c/iterate.h"
#include "tests/support/child.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

// The structs of dlpack.h as a consumer declares them. They are declared again here, so that a
// wrong layout in the library is detected.
struct DLTensor {
  void* data;
  std::int32_t device[2];
  std::int32_t ndim;
  std::uint8_t code, bits;
  std::uint16_t lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  std::uint32_t major, minor;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};

namespace precast::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

template <auto kDestroy>
struct Destroy {
  template <typename Handle>
  void operator()(Handle* handle) const {
    kDestroy(handle);
  }
};
using DatasetHandle = std::unique_ptr<precast_data_dataset, Destroy<precast_data_dataset_destroy>>;
using LoaderHandle = std::unique_ptr<precast_data_loader, Destroy<precast_data_loader_destroy>>;
using BatchHandle = std::unique_ptr<precast_data_batch, Destroy<precast_data_batch_release>>;
using WriterHandle = std::unique_ptr<precast_data_writer, Destroy<precast_data_writer_destroy>>;

DatasetHandle open_dataset(const std::string& path) {
  const char* const name = path.c_str();
  precast_data_dataset* handle = nullptr;
  EXPECT_EQ(precast_data_dataset_open(&name, 1, nullptr, &handle), PRECAST_DATA_OK)
      << precast_data_error_message();
  return DatasetHandle(handle);
}

LoaderHandle open_loader(const DatasetHandle& dataset, const char* options) {
  precast_data_loader* handle = nullptr;
  EXPECT_EQ(precast_data_loader_open(dataset.get(), options, &handle), PRECAST_DATA_OK)
      << precast_data_error_message();
  return LoaderHandle(handle);
}

BatchHandle next_batch(const LoaderHandle& loader) {
  precast_data_batch* handle = nullptr;
  const auto status = precast_data_loader_next(loader.get(), -1, &handle);
  EXPECT_EQ(status == PRECAST_DATA_OK, handle != nullptr) << precast_data_error_message();
  return BatchHandle(handle);
}

std::vector<std::uint64_t> ids_of(const BatchHandle& batch) {
  const std::uint64_t* const ids = precast_data_batch_sample_ids(batch.get());
  return {ids, ids + precast_data_batch_samples(batch.get())};
}

precast_data_tensor tensor_of(const BatchHandle& batch, std::size_t index) {
  precast_data_tensor tensor{};
  EXPECT_EQ(precast_data_batch_tensor(batch.get(), index, &tensor), PRECAST_DATA_OK);
  return tensor;
}

std::vector<std::byte> image_bytes(const BatchHandle& batch) {
  const precast_data_tensor tensor = tensor_of(batch, 0);
  std::size_t count = 1;
  for (int i = 0; i < tensor.ndim; ++i) count *= static_cast<std::size_t>(tensor.shape[i]);
  const auto* const data = static_cast<const std::byte*>(tensor.data);
  return {data, data + count};
}

class PrecastDataTest : public testing::Test {
 protected:
  PrecastDataTest() { write_made_beton(path_, {.samples = 100, .width = 16, .height = 16}); }

  TemporaryFolder folder_;
  std::string path_ = (folder_ / "made.beton").string();
};

TEST_F(PrecastDataTest, ReadsAnEpochFromC) {
  epoch_facts facts;
  EXPECT_EQ(iterate_in_c(path_.c_str(), "{batch_size: 32, image_size: 16, workers: 2}", &facts),
            PRECAST_DATA_END)
      << precast_data_error_message();
  EXPECT_EQ(facts.batches, 4);
  EXPECT_EQ(facts.samples, 100);
  EXPECT_EQ(facts.label_sum, 450);
  EXPECT_EQ(facts.height, 16);
  EXPECT_GT(facts.pixel_sum, 0U);
}

TEST_F(PrecastDataTest, BatchesEqualThoseOfTheLoaderClass) {
  const DatasetHandle dataset = open_dataset(path_);
  const LoaderHandle loader = open_loader(
      dataset,
      R"({"batch_size": 24, "image_size": 12, "workers": 2, "seed": 7, "order": "random",
          "pipeline": ["random_resized_crop", "horizontal_flip"], "rank": 1, "world": 2})");
  const data::BetonReader reader(path_);
  data::LoaderOptions options;
  options.batch_size = 24;
  options.order = data::make_order(reader, {.name = "random"});
  options.seed = 7;
  data::Loader expected(reader, data::standard_train_pipeline(), options);
  expected.begin_epoch({.epoch = 3, .first_batch = 1, .image_size_px = 12, .rank = 1, .world = 2});
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 3, 1, 0), PRECAST_DATA_OK);
  int batches = 0;
  while (const auto batch = expected.next()) {
    const BatchHandle actual = next_batch(loader);
    ASSERT_NE(actual, nullptr);
    EXPECT_EQ(ids_of(actual), batch->sample_ids);
    const auto pixels = batch->fields[0].values<std::byte>();
    EXPECT_EQ(image_bytes(actual), std::vector<std::byte>(pixels.begin(), pixels.end()));
    ++batches;
  }
  EXPECT_EQ(batches, 2);
  precast_data_batch* none = nullptr;
  EXPECT_EQ(precast_data_loader_next(loader.get(), 0, &none), PRECAST_DATA_END);
  EXPECT_EQ(precast_data_loader_batches(loader.get()), 3);
  EXPECT_EQ(precast_data_loader_samples(loader.get()), 50);
}

TEST_F(PrecastDataTest, HeldBatchesAreNeverOverwritten) {
  const DatasetHandle dataset = open_dataset(path_);
  LoaderHandle loader = open_loader(dataset, "{batch_size: 5, image_size: 16, batches_ahead: 1}");
  std::vector<BatchHandle> held;
  std::vector<std::vector<std::byte>> copies;
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
  while (BatchHandle batch = next_batch(loader)) {
    copies.push_back(image_bytes(batch));
    held.push_back(std::move(batch));
  }
  ASSERT_EQ(held.size(), 20U);
  loader.reset();
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(image_bytes(held[i]), copies[i]);
}

TEST_F(PrecastDataTest, ReleasedMemoryIsUsedAgain) {
  const DatasetHandle dataset = open_dataset(path_);
  const LoaderHandle loader =
      open_loader(dataset, "{batch_size: 5, image_size: 16, batches_ahead: 1}");
  std::vector<void*> addresses;
  for (int epoch = 0; epoch < 3; ++epoch) {
    ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), epoch, 0, 0), PRECAST_DATA_OK);
    while (const BatchHandle batch = next_batch(loader))
      addresses.push_back(tensor_of(batch, 0).data);
  }
  std::ranges::sort(addresses);
  const auto distinct = std::ranges::unique(addresses).begin() - addresses.begin();
  // One batch that the loader prepares, and one that the consumer reads.
  EXPECT_EQ(distinct, 2);
}

TEST_F(PrecastDataTest, ADlpackTensorKeepsTheMemory) {
  const DatasetHandle dataset = open_dataset(path_);
  const LoaderHandle loader =
      open_loader(dataset, "{batch_size: 5, image_size: 16, batches_ahead: 1}");
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
  BatchHandle batch = next_batch(loader);
  const std::vector<std::byte> copy = image_bytes(batch);
  void* plain = nullptr;
  void* versioned = nullptr;
  ASSERT_EQ(precast_data_batch_dlpack(batch.get(), 0, 0, &plain), PRECAST_DATA_OK);
  ASSERT_EQ(precast_data_batch_dlpack(batch.get(), 1, 1, &versioned), PRECAST_DATA_OK);
  batch.reset();
  while (next_batch(loader)) continue;
  auto* const image = static_cast<DLManagedTensor*>(plain);
  EXPECT_EQ(std::memcmp(image->tensor.data, copy.data(), copy.size()), 0);
  EXPECT_EQ(image->tensor.device[0], 1);
  EXPECT_EQ(image->tensor.ndim, 4);
  EXPECT_EQ(image->tensor.code, 1);
  EXPECT_EQ(image->tensor.bits, 8);
  EXPECT_EQ(image->tensor.strides[0], 16 * 16 * 3);
  EXPECT_EQ(image->tensor.strides[3], 1);
  image->deleter(image);
  auto* const label = static_cast<DLManagedTensorVersioned*>(versioned);
  EXPECT_EQ(label->major, 1U);
  EXPECT_EQ(label->flags, 0U);
  EXPECT_EQ(label->tensor.code, 0);
  EXPECT_EQ(label->tensor.bits, 64);
  EXPECT_EQ(static_cast<std::int64_t*>(label->tensor.data)[4], 4);
  label->deleter(label);
}

TEST_F(PrecastDataTest, WrongOptionsAreAllReported) {
  const DatasetHandle dataset = open_dataset(path_);
  precast_data_loader* loader = nullptr;
  EXPECT_EQ(precast_data_loader_open(
                dataset.get(), "{image_size: 0, wokers: 2, pipeline: [no_such], rank: 3}", &loader),
            PRECAST_DATA_CONFIG_ERROR);
  EXPECT_EQ(loader, nullptr);
  EXPECT_THAT(precast_data_error_message(),
              AllOf(HasSubstr("batch_size"), HasSubstr("image_size"), HasSubstr("wokers"),
                    HasSubstr("no_such"), HasSubstr("rank")));
  EXPECT_EQ(precast_data_loader_open(nullptr, "{batch_size: 1}", &loader),
            PRECAST_DATA_CONFIG_ERROR);
  EXPECT_EQ(precast_data_loader_open(dataset.get(), "{batch_size: 1, order: no_such}", &loader),
            PRECAST_DATA_CONFIG_ERROR);
  EXPECT_EQ(precast_data_loader_open(dataset.get(), "{batch_size: [", &loader),
            PRECAST_DATA_CONFIG_ERROR);
}

TEST_F(PrecastDataTest, ALabelFieldThatNoOrderReadsIsAnError) {
  const DatasetHandle dataset = open_dataset(path_);
  const auto options = [](const std::string& order) {
    return "{batch_size: 2, image_size: 16, label_field: label" + order + "}";
  };
  for (const auto& [order, name] : std::vector<std::pair<std::string, std::string>>{
           {"", "sequential"},
           {", order: random", "random"},
           {", order: {quasi_random: }", "quasi_random"},
           {", order: {weighted: {weight_field: weight}}", "weight_field"}}) {
    precast_data_loader* none = nullptr;
    EXPECT_EQ(precast_data_loader_open(dataset.get(), options(order).c_str(), &none),
              PRECAST_DATA_CONFIG_ERROR)
        << order;
    EXPECT_THAT(precast_data_error_message(),
                Names("label_field", name, "class_balanced", "weighted"));
  }
  for (const char* order : {", order: class_balanced",
                            ", order: {weighted: {weights: [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]}}"})
    EXPECT_NE(open_loader(dataset, options(order).c_str()).get(), nullptr) << order;
}

TEST_F(PrecastDataTest, WhatDeterminesTheOrderIsReported) {
  const DatasetHandle dataset = open_dataset(path_);
  const auto resolved = [&](const std::string& options) {
    const LoaderHandle loader =
        open_loader(dataset, ("{batch_size: 2, image_size: 16, " + options + "}").c_str());
    return json::parse(precast_data_loader_info(loader.get())).at("resolved");
  };
  const auto listed = [&](const std::string& name, const std::string& text) {
    const std::string list = (folder_ / name).string();
    std::ofstream(list) << text;
    return resolved("subset: '@" + list + "'");
  };
  const json one = listed("a.txt", "0:4\n7\n");
  EXPECT_EQ(listed("b.txt", "7\n0:4\n"), one);
  EXPECT_NE(listed("a.txt", "0:4\n8\n"), one);
  EXPECT_EQ(resolved("subset: '0:4'").dump(), R"({"subset":"0:4"})");
  EXPECT_EQ(resolved("order: random").dump(), R"({"subset":""})");
  // The file has pages of 2 MiB. FFCV's window is two pages for each of the two samples of a batch.
  EXPECT_EQ(resolved("order: quasi_random, shuffle_window_mb: ffcv").at("shuffle_window_mb"), "8");
  EXPECT_EQ(resolved("order: quasi_random, shuffle_window_mb: 5").at("shuffle_window_mb"), "4");
  EXPECT_NE(resolved("order: quasi_random").at("shuffle_window_mb"), "auto");
  // Ranks on hosts with different amounts of memory must have the same order.
  for (const char* rank : {"0", "1"}) {
    const std::string ranks = std::string(", world: 2, rank: ") + rank;
    EXPECT_EQ(resolved("order: quasi_random" + ranks),
              resolved("order: quasi_random, shuffle_window_mb: ffcv" + ranks));
  }
}

TEST_F(PrecastDataTest, NormalizeAndLayoutNeedAType) {
  const DatasetHandle dataset = open_dataset(path_);
  const auto options = [](const std::string& more) {
    return "{batch_size: 2, image_size: 16, " + more + "}";
  };
  const std::string layout = "layout: {order: nchw}";
  for (const std::string& items : {std::string("normalize"), layout, "normalize, " + layout}) {
    precast_data_loader* none = nullptr;
    for (const auto& [pipeline, key] : {std::pair{"[" + items + "]", "pipeline"},
                                        std::pair{"{image: [" + items + "]}", "pipeline.image"}}) {
      EXPECT_EQ(
          precast_data_loader_open(dataset.get(), options("pipeline: " + pipeline).c_str(), &none),
          PRECAST_DATA_CONFIG_ERROR);
      EXPECT_THAT(precast_data_error_message(), Names(key, "convert", "normalize: true"));
    }
    for (const std::string& more : {"pipeline: [convert: {type: f32}, " + items + "]",
                                    "pipeline: [" + items + "], normalize: true"}) {
      const LoaderHandle loader = open_loader(dataset, options(more).c_str());
      ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
      const BatchHandle batch = next_batch(loader);
      const precast_data_tensor image = tensor_of(batch, 0);
      EXPECT_EQ(image.dtype, PRECAST_DATA_F32);
      const std::vector<std::int64_t> shape(image.shape, image.shape + image.ndim);
      EXPECT_EQ(shape, items == "normalize" ? (std::vector<std::int64_t>{2, 16, 16, 3})
                                            : (std::vector<std::int64_t>{2, 3, 16, 16}))
          << more;
    }
  }
}

TEST_F(PrecastDataTest, TheOptionNormalizeNeedsTheItemForImagesThatAreConverted) {
  const DatasetHandle dataset = open_dataset(path_);
  const auto options = [](const std::string& pipeline) {
    return "{batch_size: 2, image_size: 16, normalize: true, pipeline: " + pipeline + "}";
  };
  for (const std::string type : {"f16", "u8"}) {
    const std::string convert = "convert: {type: " + type + "}";
    for (const std::string& pipeline :
         {"[" + convert + "]", "[center_crop, " + convert + "]", "{image: [" + convert + "]}",
          "{image: [center_crop, " + convert + "]}",
          "{plain: {field: image, transforms: []}, image: [" + convert + "], label: }"}) {
      precast_data_loader* none = nullptr;
      EXPECT_EQ(precast_data_loader_open(dataset.get(), options(pipeline).c_str(), &none),
                PRECAST_DATA_CONFIG_ERROR)
          << pipeline;
      EXPECT_THAT(precast_data_error_message(), Names("normalize", "'image'", "convert"));
    }
  }
  for (const char* pipeline : {"[convert: {type: f16}, normalize]",
                               "{image: [convert: {type: f16}, normalize], label: {field: label, "
                               "transforms: [convert: {type: f32}]}}"}) {
    const LoaderHandle loader = open_loader(dataset, options(pipeline).c_str());
    ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
    EXPECT_EQ(tensor_of(next_batch(loader), 0).dtype, PRECAST_DATA_F16);
  }
}

TEST_F(PrecastDataTest, MissingAndDamagedFilesHaveTheirCodes) {
  const std::string missing = (folder_ / "missing.beton").string();
  const char* path = missing.c_str();
  precast_data_dataset* dataset = nullptr;
  EXPECT_EQ(precast_data_dataset_open(&path, 1, nullptr, &dataset), PRECAST_DATA_IO_ERROR);
  EXPECT_THAT(precast_data_error_message(), HasSubstr(missing));
  const std::string cut = (folder_ / "cut.beton").string();
  std::ofstream(cut) << "not a dataset";
  path = cut.c_str();
  EXPECT_EQ(precast_data_dataset_open(&path, 1, nullptr, &dataset), PRECAST_DATA_DATA_ERROR);
  EXPECT_THAT(precast_data_error_message(), HasSubstr(cut));
  EXPECT_EQ(precast_data_dataset_open(&path, 0, nullptr, &dataset), PRECAST_DATA_CONFIG_ERROR);
}

TEST_F(PrecastDataTest, ADamagedSampleIsNamed) {
  std::uint64_t offset = 0;
  {
    const data::BetonReader reader(path_);
    offset = reader.blob_offset(37, 0);
  }
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset)) << "damaged";
  file.close();
  epoch_facts facts;
  EXPECT_EQ(iterate_in_c(path_.c_str(), "{batch_size: 10, verify: true}", &facts),
            PRECAST_DATA_DATA_ERROR);
  EXPECT_EQ(facts.batches, 3);
  EXPECT_THAT(precast_data_error_message(), AllOf(HasSubstr(path_), HasSubstr("sample 37")));

  const LoaderHandle loader = open_loader(
      open_dataset(path_), "{batch_size: 100, verify: true, on_corrupt: replace, image_size: 8}");
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
  EXPECT_EQ(ids_of(next_batch(loader))[37], 38U);
  const char* text = nullptr;
  ASSERT_EQ(precast_data_loader_statistics(loader.get(), &text), PRECAST_DATA_OK);
  const json replaced = json::parse(text)["replaced"];
  ASSERT_EQ(replaced.size(), 1U);
  EXPECT_EQ(replaced[0]["sample"], 37);
  EXPECT_EQ(replaced[0]["by"], 38);
}

TEST_F(PrecastDataTest, HandlesOfAnotherProcessAreRefused) {
  DatasetHandle dataset = open_dataset(path_);
  LoaderHandle loader = open_loader(dataset, "{batch_size: 10, image_size: 16, workers: 2}");
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
  BatchHandle batch = next_batch(loader);
  test::Child child([&] {
    precast_data_batch* next = nullptr;
    precast_data_value value;
    const bool refused =
        precast_data_loader_next(loader.get(), -1, &next) == PRECAST_DATA_ENVIRONMENT_ERROR &&
        precast_data_loader_begin_epoch(loader.get(), 1, 0, 0) == PRECAST_DATA_ENVIRONMENT_ERROR &&
        precast_data_dataset_read(dataset.get(), 0, 0, &value) == PRECAST_DATA_ENVIRONMENT_ERROR;
    // The loader's threads do not exist in this process, so releasing must not wait for them.
    batch.reset();
    loader.reset();
    dataset.reset();
    return refused ? 0 : 1;
  });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_NE(next_batch(loader), nullptr);
}

TEST_F(PrecastDataTest, ATimeoutEndsAWait) {
  const DatasetHandle dataset = open_dataset(path_);
  const LoaderHandle loader = open_loader(dataset, "{batch_size: 100, image_size: 64, workers: 1}");
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 0), PRECAST_DATA_OK);
  precast_data_batch* batch = nullptr;
  precast_data_status status = PRECAST_DATA_TIMEOUT;
  while (status == PRECAST_DATA_TIMEOUT) status = precast_data_loader_next(loader.get(), 1, &batch);
  EXPECT_EQ(status, PRECAST_DATA_OK);
  EXPECT_EQ(precast_data_batch_samples(batch), 100);
  precast_data_batch_release(batch);
  ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 1024), PRECAST_DATA_OK);
  // Preparing 300 MiB of pixels usually takes longer than the timeout of 0. But if this thread is
  // interrupted before the call, the batch may be ready, so the test tries up to 100 times.
  for (int i = 0; i < 100 && status == PRECAST_DATA_OK; ++i) {
    ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), 0, 0, 1024), PRECAST_DATA_OK);
    status = precast_data_loader_next(loader.get(), 0, &batch);
    if (status == PRECAST_DATA_OK) precast_data_batch_release(batch);
  }
  EXPECT_EQ(status, PRECAST_DATA_TIMEOUT);
}

precast_data_value integer(std::int64_t number) {
  precast_data_value value{};
  value.kind = PRECAST_DATA_INTEGER;
  value.integer = number;
  return value;
}

precast_data_value bytes(precast_data_kind kind, std::string_view text) {
  precast_data_value value{};
  value.kind = kind;
  value.data = text.data();
  value.bytes = text.size();
  return value;
}

template <typename T>
precast_data_value array(const char* dtype, const std::vector<std::int64_t>& shape,
                         const std::vector<T>& elements) {
  precast_data_value value{};
  value.kind = PRECAST_DATA_ARRAY;
  value.data = elements.data();
  value.bytes = elements.size() * sizeof(T);
  value.dtype = dtype;
  value.ndim = static_cast<std::int32_t>(shape.size());
  std::ranges::copy(shape, value.shape);
  return value;
}

std::string_view text_of(const precast_data_value& value) {
  return {static_cast<const char*>(value.data), value.bytes};
}

constexpr const char* kAllFields =
    "{image: {image: {mode: raw}}, label: int, weight: float, blob: bytes, meta: json, "
    "box: {ndarray: {dtype: <f4, shape: [2, 2]}}, code: {tensor: {dtype: '|u1', shape: [3]}}, "
    "depth: {pixels: {dtype: <u2, channels: 1}}, words: {ragged: {dtype: <i4, dims: 1}}}";

WriterHandle open_writer(const std::string& path, const char* fields, const char* options) {
  precast_data_writer* handle = nullptr;
  EXPECT_EQ(precast_data_writer_open(path.c_str(), fields, 10, options, &handle), PRECAST_DATA_OK)
      << precast_data_error_message();
  return WriterHandle(handle);
}

TEST_F(PrecastDataTest, WritesAndReadsEveryKindOfField) {
  const std::string path = (folder_ / "all.beton").string();
  WriterHandle writer =
      open_writer(path, kAllFields, "{classes: {label: [cat, dog]}, page_size: 2097152}");
  const std::vector<std::uint8_t> pixels(std::size_t{4} * 5 * 3, 9);
  const std::vector<float> box = {1, 2, 3, 4};
  const std::vector<std::uint8_t> code = {7, 8, 9};
  const std::vector<std::uint16_t> depth = {1, 2, 3, 65535, 5, 6};
  const std::vector<std::int32_t> words = {-1, 2};
  precast_data_value weight{};
  weight.kind = PRECAST_DATA_FLOATING;
  weight.floating = 0.5;
  const std::vector<precast_data_value> sample = {array("|u1", {4, 5, 3}, pixels),
                                                  integer(1),
                                                  weight,
                                                  bytes(PRECAST_DATA_BYTES, "b\0b"),
                                                  bytes(PRECAST_DATA_TEXT, R"({"a":1})"),
                                                  array("<f4", {2, 2}, box),
                                                  array("|u1", {3}, code),
                                                  array("<u2", {2, 3}, depth),
                                                  array("<i4", {2}, words)};
  for (int i = 0; i < 3; ++i)
    ASSERT_EQ(precast_data_writer_add(writer.get(), sample.data(), sample.size()), PRECAST_DATA_OK)
        << precast_data_error_message();
  ASSERT_EQ(precast_data_writer_finish(writer.get()), PRECAST_DATA_OK);
  EXPECT_EQ(precast_data_writer_finish(writer.get()), PRECAST_DATA_CONFIG_ERROR);
  writer.reset();

  const DatasetHandle dataset = open_dataset(path);
  EXPECT_EQ(precast_data_dataset_samples(dataset.get()), 3);
  const json info = json::parse(precast_data_dataset_info(dataset.get()));
  EXPECT_EQ(info["classes"]["label"], json({"cat", "dog"}));
  EXPECT_EQ(info["fields"][7]["type"], "pixels");
  EXPECT_EQ(info["fields"][5]["shape"], json({2, 2}));
  for (std::size_t f = 0; f < sample.size(); ++f) {
    precast_data_value value;
    ASSERT_EQ(precast_data_dataset_read(dataset.get(), 2, f, &value), PRECAST_DATA_OK)
        << precast_data_error_message();
    EXPECT_EQ(value.kind, sample[f].kind) << f;
    EXPECT_EQ(value.integer, sample[f].integer);
    EXPECT_EQ(value.floating, sample[f].floating);
    EXPECT_EQ(text_of(value), text_of(sample[f])) << f;
    if (value.kind == PRECAST_DATA_ARRAY) {
      EXPECT_STREQ(value.dtype, sample[f].dtype);
    }
  }
  precast_data_value value;
  EXPECT_EQ(precast_data_dataset_read(dataset.get(), 3, 0, &value), PRECAST_DATA_CONFIG_ERROR);
  EXPECT_EQ(precast_data_dataset_read(dataset.get(), 0, 9, &value), PRECAST_DATA_CONFIG_ERROR);
}

TEST_F(PrecastDataTest, ClassesThatCannotBeStoredAreErrors) {
  const std::string path = (folder_ / "classes.beton").string();
  const std::vector<std::pair<const char*, NamesMatcher>> wrong = {
      {"{classes: [cat, dog]}", Names("options:1:11: classes")},
      {"{classes: cat}", Names("options:1:11: classes", "'cat'")},
      {"{classes: {lable: [cat]}}", Names("options:1:12: classes.lable", "'label'")},
      {"{classes: {weight: [cat]}}", Names("options:1:12: classes.weight", "int", "label")},
      {"{classes: {label: cat}}", Names("options:1:12: classes.label", "'cat'")},
      {"{classes: {label: [cat, [dog]]}}", Names("options:1:12: classes.label", "[cat, [dog]]")},
      {"{classes: {label: [cat]}, checksums: false}", Names("classes", "checksums: true")}};
  for (const auto& [options, facts] : wrong) {
    precast_data_writer* handle = nullptr;
    EXPECT_EQ(
        precast_data_writer_open(path.c_str(), "{label: int, weight: float}", 1, options, &handle),
        PRECAST_DATA_CONFIG_ERROR)
        << options;
    EXPECT_THAT(precast_data_error_message(), facts);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(PrecastDataTest, ALabelWithoutAClassNameIsAnError) {
  const std::string path = (folder_ / "labels.beton").string();
  precast_data_writer* handle = nullptr;
  ASSERT_EQ(precast_data_writer_open(path.c_str(), "{count: int, label: int}", 2,
                                     "{classes: {label: [cat, dog]}}", &handle),
            PRECAST_DATA_OK)
      << precast_data_error_message();
  const WriterHandle writer(handle);
  const auto add = [&](std::int64_t count, std::int64_t label) {
    const std::vector<precast_data_value> sample = {integer(count), integer(label)};
    return precast_data_writer_add(writer.get(), sample.data(), sample.size());
  };
  for (const std::int64_t label : {-1, 2}) {
    EXPECT_EQ(add(0, label), PRECAST_DATA_DATA_ERROR);
    EXPECT_THAT(precast_data_error_message(),
                Names("sample 0", "'label'", "0 to 1", std::to_string(label)));
  }
  EXPECT_EQ(add(-7, 1), PRECAST_DATA_OK) << precast_data_error_message();
}

TEST_F(PrecastDataTest, OptionsOfAnImageFieldWithoutEffectAreErrors) {
  const std::string path = (folder_ / "unread.beton").string();
  precast_data_writer* handle = nullptr;
  for (const auto& [options, facts] : std::vector<std::pair<std::string, NamesMatcher>>{
           {"mode: raw, quality: 80", Names("fields.image.quality", "fields.image.mode", "raw")},
           {"mode: jpg, compress_probability: 0.5",
            Names("fields.image.compress_probability", "proportion", "jpg")}}) {
    EXPECT_EQ(
        precast_data_writer_open(path.c_str(), ("{image: {image: {" + options + "}}}").c_str(), 1,
                                 nullptr, &handle),
        PRECAST_DATA_CONFIG_ERROR)
        << options;
    EXPECT_THAT(precast_data_error_message(), facts);
  }
}

TEST_F(PrecastDataTest, WrongValuesAreNamedAndLeftOut) {
  const std::string path = (folder_ / "some.beton").string();
  WriterHandle writer =
      open_writer(path, "{label: int, box: {ndarray: {dtype: <f4, shape: [2]}}}", nullptr);
  const std::vector<float> two = {1, 2};
  const std::vector<float> three = {1, 2, 3};
  const std::vector<precast_data_value> good = {integer(4), array("<f4", {2}, two)};
  const std::vector<precast_data_value> wrong = {integer(4), array("<f4", {3}, three)};
  const std::vector<precast_data_value> incomplete = {integer(4), array("<f4", {3}, two)};
  EXPECT_EQ(precast_data_writer_add(writer.get(), good.data(), 2), PRECAST_DATA_OK);
  EXPECT_EQ(precast_data_writer_add(writer.get(), good.data(), 1), PRECAST_DATA_CONFIG_ERROR);
  EXPECT_EQ(precast_data_writer_add(writer.get(), wrong.data(), 2), PRECAST_DATA_DATA_ERROR);
  EXPECT_THAT(precast_data_error_message(),
              AllOf(HasSubstr(path), HasSubstr("sample 1"), HasSubstr("'box'")));
  EXPECT_EQ(precast_data_writer_add(writer.get(), incomplete.data(), 2), PRECAST_DATA_DATA_ERROR);
  const std::vector<precast_data_value> unknown = {integer(4), array("<q4", {2}, two)};
  EXPECT_EQ(precast_data_writer_add(writer.get(), unknown.data(), 2), PRECAST_DATA_DATA_ERROR);
  EXPECT_THAT(precast_data_error_message(), Names(path, "sample 1", "'box'", "'<q4'"));
  EXPECT_EQ(precast_data_writer_add(writer.get(), good.data(), 2), PRECAST_DATA_OK);
  ASSERT_EQ(precast_data_writer_finish(writer.get()), PRECAST_DATA_OK);
  EXPECT_EQ(precast_data_dataset_samples(open_dataset(path).get()), 2);
}

TEST_F(PrecastDataTest, SamplesThatDoNotFitAreNamedWithTheFile) {
  const std::string path = (folder_ / "full.beton").string();
  const WriterHandle writer = open_writer(path, "{blob: bytes}", "{page_size: 2097152}");
  const precast_data_value small = bytes(PRECAST_DATA_BYTES, "12345");
  EXPECT_EQ(precast_data_writer_add(writer.get(), &small, 1), PRECAST_DATA_OK);
  const std::string page(2097152 + 1, 'x');
  const precast_data_value large = bytes(PRECAST_DATA_BYTES, page);
  EXPECT_EQ(precast_data_writer_add(writer.get(), &large, 1), PRECAST_DATA_DATA_ERROR);
  EXPECT_THAT(precast_data_error_message(), AllOf(HasSubstr(path), HasSubstr("sample 1")));
  for (int i = 1; i < 10; ++i)
    EXPECT_EQ(precast_data_writer_add(writer.get(), &small, 1), PRECAST_DATA_OK);
  EXPECT_EQ(precast_data_writer_add(writer.get(), &small, 1), PRECAST_DATA_CONFIG_ERROR);
  EXPECT_THAT(precast_data_error_message(), AllOf(HasSubstr(path), HasSubstr("10 samples")));
  EXPECT_EQ(precast_data_writer_finish(writer.get()), PRECAST_DATA_OK);
}

TEST_F(PrecastDataTest, AnUnfinishedFileIsDiscarded) {
  const std::string path = (folder_ / "none.beton").string();
  WriterHandle writer = open_writer(path, "{label: int}", nullptr);
  const precast_data_value value = integer(1);
  EXPECT_EQ(precast_data_writer_add(writer.get(), &value, 1), PRECAST_DATA_OK);
  writer.reset();
  EXPECT_FALSE(std::filesystem::exists(path));
  precast_data_writer* handle = nullptr;
  for (const char* const fields : {"{label: no_such}", "{box: ndarray}", "{label: [int]}", "",
                                   "{box: {ndarray: {dtype: <f4, shape: [2.5]}}}",
                                   "{box: {ndarray: {dtype: <f4, shape: [-1]}}}",
                                   "{box: {ndarray: {dtype: <f4, shape: [1e30]}}}"})
    EXPECT_EQ(precast_data_writer_open(path.c_str(), fields, 1, nullptr, &handle),
              PRECAST_DATA_CONFIG_ERROR)
        << fields;
}

TEST_F(PrecastDataTest, ReadsFilesOfFfcv) {
  const DatasetHandle dataset = open_dataset(put_golden_beton(folder_.path(), "img_jpg_w3"));
  precast_data_value value;
  ASSERT_EQ(precast_data_dataset_read(dataset.get(), 0, 0, &value), PRECAST_DATA_OK);
  EXPECT_EQ(value.kind, PRECAST_DATA_IMAGE_FILE);
  EXPECT_EQ(text_of(value).substr(0, 3), "\xFF\xD8\xFF");
  EXPECT_EQ(value.shape[2], 3);
}

/// Resident memory of this process in bytes.
std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t all = 0;
  std::int64_t resident = 0;
  statm >> all >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST_F(PrecastDataTest, TenThousandLoadersNeedConstantMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer keeps freed memory";
#endif
  const auto cycle = [&](int epoch) {
    const LoaderHandle loader = open_loader(
        open_dataset(path_), "{batch_size: 50, image_size: 16, workers: 1, batches_ahead: 1}");
    ASSERT_EQ(precast_data_loader_begin_epoch(loader.get(), epoch, 0, 0), PRECAST_DATA_OK);
    if (epoch % 100 == 0) {
      EXPECT_NE(next_batch(loader), nullptr);
    }
  };
  for (int i = 0; i < 500; ++i) cycle(i);
  const std::int64_t before = resident_bytes();
  for (int i = 500; i < 10'000; ++i) cycle(i);
  EXPECT_LT(resident_bytes() - before, 4 << 20);
}

}  // namespace
}  // namespace precast::test
