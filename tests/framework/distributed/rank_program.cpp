// One rank of a small training run: `rank_program RANK WORLD PORT OUT KEY=VALUE...`. Writes
// the losses of all steps and the evaluation to OUT.RANK as JSON, and the final weights to
// OUT.RANK.weights as float64. With `group=1`, even a single rank has a process group. Exits with
// the code of the error that ends the training.
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "framework/api/single_rank.h"
#include "framework/core/error.h"
#include "framework/distributed/grad_sync.h"
#include "framework/distributed/process_group.h"
#include "framework/engine/trainer.h"
#include "models/register.h"
#include "recipes/register.h"
#include "tests/recipes/make_method.h"
#include "tests/support/fake_parts.h"
#include "tests/support/noise_tensor.h"
#include "tests/support/part_spec.h"

namespace precast {
namespace {

constexpr std::int64_t kClasses = 5;

/// Two convolutions and a linear layer in float64. Without batch statistics, the mean of the ranks'
/// gradients is the gradient of the global batch.
class PlainNet final : public ImageModel {
 public:
  /// @param bias_every after the first `sparse_after` training passes, only the first of every
  /// `bias_every` passes uses the bias of the linear layer; 0: no pass uses it
  /// @param sparse_after the number of training passes at the start, which all use the bias
  explicit PlainNet(std::int64_t bias_every, std::int64_t sparse_after = 0)
      : bias_every_(bias_every), passes_(-sparse_after) {
    add("conv1.weight", {8, 3, 3, 3});
    add("conv2.weight", {16, 8, 3, 3});
    add("fc.weight", {kClasses, 16});
    add("fc.bias", {kClasses});
  }
  at::Tensor classify(const at::Tensor& images) override {
    at::Tensor x = at::relu(at::conv2d(images.to(at::kDouble), weights_[0].tensor, {}, 2, 1));
    x = at::relu(at::conv2d(x, weights_[1].tensor, {}, 2, 1)).mean({2, 3});
    const std::int64_t pass = training_ ? passes_++ : -1;
    const bool biased = pass < 0 || (bias_every_ > 0 && pass % bias_every_ == 0);
    return at::linear(x, weights_[2].tensor, biased ? weights_[3].tensor : at::Tensor());
  }
  [[nodiscard]] std::vector<NamedTensor> parameters() const override { return weights_; }
  [[nodiscard]] std::vector<NamedTensor> state() const override { return weights_; }
  void train(bool training) override { training_ = training; }
  void to(at::Device /*device*/, bool /*channels_last*/) override {}

 private:
  void add(const std::string& name, at::IntArrayRef shape) {
    const auto stream = static_cast<std::uint32_t>(weights_.size() + 1);
    weights_.push_back(
        {name, test::noise_tensor(stream, shape).to(at::kDouble).requires_grad_(true)});
  }
  std::vector<NamedTensor> weights_;
  std::int64_t bias_every_;
  std::int64_t passes_;
  bool training_ = false;
};

/// Images of noise: sample s of an epoch has the same pixels and label on every rank that gets it.
/// `halves`: a single rank gets the samples of two ranks; those of rank 1 follow those of rank 0.
/// `twins`: all ranks see the same samples.
class NoiseSource final : public BatchSource {
 public:
  NoiseSource(std::int64_t samples, std::int64_t batch_size, std::int64_t size_px, bool halves,
              bool drop_last, bool twins = false)
      : samples_(samples),
        batch_size_(batch_size),
        size_px_(size_px),
        halves_(halves),
        drop_last_(drop_last),
        twins_(twins) {}

  void begin_epoch(const EpochRequest& request) override {
    request_ = request;
    if (twins_) request_.rank = 0, request_.world = 1;
    next_ = request.first_batch;
  }
  std::optional<Batch> next() override {
    const std::int64_t mine = (samples_ - request_.rank + request_.world - 1) / request_.world;
    const std::int64_t begin = next_ * batch_size_;
    std::int64_t count = std::min(batch_size_, mine - begin);
    if (count <= 0 || (drop_last_ && count < batch_size_)) return std::nullopt;
    ++next_;
    Batch batch;
    std::vector<at::Tensor> images;
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = halves_ ? (i < count / 2 ? 2 * i : 2 * (i - count / 2) + 1) : i;
      const std::int64_t position = (begin + row) * request_.world + request_.rank;
      const auto stream = static_cast<std::uint32_t>(1000 + request_.epoch * samples_ + position);
      images.push_back(test::noise_tensor(stream, {3, size_px_, size_px_}, 2));
      labels.push_back(static_cast<std::int64_t>((test::noise(7, stream) + 0.5) * kClasses));
      batch.sample_ids.push_back(static_cast<std::uint64_t>(position));
    }
    batch.fields = {{"image", at::stack(images)}, {"label", at::tensor(labels, at::kLong)}};
    return batch;
  }
  [[nodiscard]] std::int64_t size(int world) const override {
    const std::int64_t sharing = twins_ ? 1 : world;
    const std::int64_t longest = (samples_ + sharing - 1) / sharing;
    return (longest + batch_size_ - 1) / batch_size_;
  }
  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  [[nodiscard]] double seconds_waited() const override { return 0; }

 private:
  std::int64_t samples_, batch_size_, size_px_;
  bool halves_, drop_last_, twins_;
  EpochRequest request_;
  std::int64_t next_ = 0;
};

class ConstantRate final : public Schedule {
 public:
  explicit ConstantRate(double lr) : lr_(lr) {}
  [[nodiscard]] double lr(std::int64_t /*epoch*/) const override { return lr_; }

 private:
  double lr_;
};

using Options = std::map<std::string, std::string>;

std::int64_t number(const Options& options, const std::string& key, std::int64_t otherwise) {
  return options.contains(key) ? std::stoll(options.at(key)) : otherwise;
}

std::string text(const Options& options, const std::string& key) {
  return options.contains(key) ? options.at(key) : "";
}

/// Parses a list of numbers, such as `also_evaluate=0,3`.
std::vector<std::int64_t> numbers(const Options& options, const std::string& key) {
  std::vector<std::int64_t> all;
  std::istringstream list(text(options, key));
  for (std::string item; std::getline(list, item, ',');) all.push_back(std::stoll(item));
  return all;
}

/// Parses the option `methods`, such as `methods=sam:{rho: 0.5};layer_freezing`.
std::vector<NamedMethod> make_methods(const Options& options) {
  std::vector<NamedMethod> methods;
  std::istringstream list(text(options, "methods"));
  for (std::string item; std::getline(list, item, ';');) {
    const std::size_t colon = item.find(':');
    const std::string name = item.substr(0, colon);
    methods.push_back(
        {name, test::make_method(name, colon == item.npos ? "{}" : item.substr(colon + 1))});
  }
  return methods;
}

std::unique_ptr<Model> make_model(const Options& options, Communicator& ranks) {
  if (text(options, "model") != "resnet18") {
    // With `bias_every=0 sparse_ranks=1`, rank 1 never uses the bias, but other ranks always do.
    const auto sparse = numbers(options, "sparse_ranks");
    const bool listed = std::ranges::find(sparse, ranks.rank()) != sparse.end();
    return std::make_unique<PlainNet>(listed ? number(options, "bias_every", 1) : 1,
                                      number(options, "sparse_after", 0));
  }
  ModelRegistry registry("model");
  models::register_models(registry);
  at::manual_seed(1);
  ModelSpec spec{.arch = "resnet18", .num_classes = kClasses};
  if (number(options, "sync_bn", 0) != 0) spec.batch_norm_ranks = &ranks;
  return make_model(registry, spec);
}

std::unique_ptr<GradSync> make_sync(distributed::ProcessGroup* group, const Model& model,
                                    const Options& options, std::vector<NamedTensor>& mine) {
  using namespace distributed;
  mine = model.parameters();
  if (group == nullptr) return make_single_rank_sync();
  GradSyncOptions sync;
  // The buckets are so small that even a small model has several.
  sync.bucket_bytes = static_cast<std::size_t>(number(options, "bucket_bytes", 4000));
  sync.first_bucket_bytes = sync.bucket_bytes / 4;
  const std::string update = text(options, "update");
  if (update == "after_backward") sync.update = VariableUpdate::allreduce_after_backward;
  if (update == "parameter_server") sync.update = VariableUpdate::parameter_server;
  if (text(options, "compression") == "fp16") sync.compression = GradCompression::fp16;
  if (text(options, "compression") == "bf16") sync.compression = GradCompression::bf16;
  std::vector<int> owners(mine.size(), 0);
  if (number(options, "zero", 0) != 0)
    owners = sync.owners = shard_parameters(mine, group->world());
  const auto all = mine;
  if (update == "parameter_server" || !sync.owners.empty()) {
    mine.clear();
    for (std::size_t i = 0; i < all.size(); ++i)
      if (owners[i] == group->rank()) mine.push_back(all[i]);
  }
  return make_grad_sync(*group, all, sync);
}

/// Ends the process if an exception ends the training. The other ranks see this at once, because no
/// destructor waits for them.
engine::TrainSummary train_or_exit(engine::Trainer& trainer) {
  ExitCode code = ExitCode::peer_failed;
  try {
    trainer.start();
    return trainer.run();
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    code = error.exit_code();
  } catch (const std::exception& error) {
    // c10d throws this in a backward pass when another rank has ended.
    std::fprintf(stderr, "%s\n", error.what());
  }
  std::_Exit(static_cast<int>(code));
}

nlohmann::json run(int rank, int world, int port, const Options& options, const std::string& out) {
  std::unique_ptr<distributed::ProcessGroup> group;
  if (world > 1 || number(options, "group", 0) != 0) {
    group = std::make_unique<distributed::ProcessGroup>(distributed::GroupOptions{
        .rank = rank, .world = world, .port = port, .timeout = std::chrono::seconds(60)});
  }
  const auto single = make_single_rank();
  Communicator& ranks = group ? static_cast<Communicator&>(*group) : *single;
  const auto model = make_model(options, ranks);
  std::vector<NamedTensor> mine;
  const auto sync = make_sync(group.get(), *model, options, mine);
  OptimizerRegistry optimizers("optimizer");
  recipes::register_optimizers(optimizers);
  const auto optimizer =
      optimizers.make(test::part_spec("sgd", "{momentum: 0.9, weight_decay: 1e-4}"), {mine});

  TrainPlan plan;
  plan.epochs = number(options, "epochs", 1);
  plan.steps_per_epoch = number(options, "steps", 100);
  plan.global_batch_size = number(options, "batch", 8);
  plan.micro_batches = number(options, "micro_batches", 1);
  const std::int64_t size_px = number(options, "size_px", 8);
  plan.image_size_px.assign(static_cast<std::size_t>(plan.epochs), size_px);
  plan.schedule =
      std::make_shared<ConstantRate>(options.contains("lr") ? std::stod(options.at("lr")) : 0.02);
  plan.model.num_classes = kClasses;
  const bool twins = number(options, "twins", 0) != 0;
  const std::int64_t samples = plan.steps_per_epoch * plan.global_batch_size / (twins ? world : 1);
  NoiseSource train(samples, plan.global_batch_size / world, size_px,
                    number(options, "halves", 0) != 0, /*drop_last=*/true, twins);
  NoiseSource val(7, 2, size_px, false, false);
  const engine::Evaluator evaluator({.image_size_px = size_px, .flip_tta = false});
  test::MemorySink sink;
  std::vector<NamedMethod> methods = make_methods(options);
  const test::MeanCrossEntropy loss;
  engine::Trainer trainer(plan,
                          {.model = *model,
                           .loss = loss,
                           .optimizer = *optimizer,
                           .methods = methods,
                           .train_source = train,
                           .val_source = val,
                           .evaluator = evaluator,
                           .ranks = ranks,
                           .sync = *sync,
                           .sinks = {&sink}},
                          {.log_every = 1});
  const engine::TrainSummary summary = train_or_exit(trainer);

  nlohmann::json result = {{"evaluations", nlohmann::json::array()}};
  const auto add = [&](const engine::EvalResult& evaluated) {
    result["evaluations"].push_back({{"samples", evaluated.samples},
                                     {"top_1_correct", evaluated.top_1_correct},
                                     {"val_loss", evaluated.loss}});
  };
  add(*summary.final_eval);
  for (const std::int64_t count : numbers(options, "also_evaluate")) {
    NoiseSource more(count, 2, size_px, false, false);
    add(*evaluator.evaluate(*model, loss, more, ranks, [](std::int64_t) { return true; }));
  }
  for (const std::string& record : sink.records) {
    const auto parsed = nlohmann::json::parse(record);
    if (parsed.contains("loss")) result["losses"].push_back(parsed.at("loss"));
  }
  std::ofstream weights(out + ".weights", std::ios::binary);
  for (const NamedTensor& parameter : model->parameters()) {
    const at::Tensor flat = parameter.tensor.detach().to(at::kDouble).contiguous().flatten();
    weights.write(reinterpret_cast<const char*>(flat.const_data_ptr<double>()),
                  static_cast<std::streamsize>(flat.nbytes()));
  }
  return result;
}

}  // namespace
}  // namespace precast

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  at::set_num_threads(1);
  precast::Options options;
  for (int i = 5; i < argc; ++i) {
    const std::string pair = argv[i];
    options[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
  }
  const int rank = std::stoi(argv[1]);
  const std::string out = std::string(argv[4]) + "." + argv[1];
  std::ofstream(out)
      << precast::run(rank, std::stoi(argv[2]), std::stoi(argv[3]), options, out).dump()
      << std::flush;
  // Skips the destructors of libtorch's tables of operators, which take about 0.2 s.
  std::_Exit(0);
}
