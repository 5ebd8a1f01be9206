// A text classifier that needs no vocabulary: it uses the mean of the embeddings of hashed byte
// n-grams, as in fastText (Joulin et al., "Bag of Tricks for Efficient Text Classification", EACL
// 2017).
//
//   precast train recipe.yaml
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <memory>

#include "framework/api/model_spec.h"
#include "framework/api/plugin.h"
#include "models/detail/module_model.h"

namespace {

using at::Tensor;
namespace nn = torch::nn;

/// The keys of model.params.
struct Options {
  std::int64_t longest = 3;
  std::int64_t buckets = 8192;
  std::int64_t width = 64;

  void options(precast::Schema& schema) {
    schema.add("longest", &longest, "length of the longest n-grams, in bytes").min(1).max(7);
    schema.add("buckets", &buckets, "number of embeddings; n-grams with the same hash share one")
        .min(1);
    schema.add("width", &width, "width of an embedding").min(1);
  }
};

struct ByteNgrams : nn::Module {
  ByteNgrams(const Options& o, std::int64_t classes)
      : options(o),
        embedding(register_module("embedding", nn::Embedding(o.buckets, o.width))),
        hidden(register_module("hidden", nn::Linear(o.width, o.width))),
        fc(register_module("fc", nn::Linear(o.width, classes))) {
    nn::init::normal_(embedding->weight, 0, 0.1);
  }

  /// @param text [N, bytes] uint8, padded with zeros, which are ignored.
  Tensor forward(const Tensor& text) {
    const Tensor bytes = text.to(at::kLong);
    const std::int64_t length = bytes.size(1);
    Tensor sum = at::zeros({bytes.size(0), options.width}, embedding->weight.options());
    Tensor count = at::zeros({bytes.size(0), 1}, sum.options());
    Tensor grams = bytes;
    for (std::int64_t n = 1; n <= std::min(options.longest, length); ++n) {
      const Tensor last = bytes.slice(1, n - 1);
      // An n-gram has at most 7 bytes and fits into an int64.
      if (n > 1) grams = grams.slice(1, 0, length - n + 1) * 256 + last;
      // Fibonacci hashing. The upper bits of the product are distributed best.
      const Tensor hashes =
          ((grams + n) * kGolden).bitwise_right_shift(20).remainder(options.buckets);
      const Tensor counts = last.ne(0).to(sum.scalar_type()).unsqueeze(2);
      sum = sum + (embedding->forward(hashes) * counts).sum(1);
      count = count + counts.sum(1);
    }
    return fc(at::relu(hidden(sum / count.clamp_min(1))));
  }

  /// 2^64 / golden ratio, as a signed number.
  static constexpr std::int64_t kGolden = -7046029254386353131;

  Options options;
  nn::Embedding embedding;
  nn::Linear hidden;
  nn::Linear fc;
};

std::unique_ptr<precast::Model> make(const precast::ModelSpec& spec, const Options& options) {
  return precast::models::detail::as_model(std::make_shared<ByteNgrams>(options, spec.num_classes));
}

void add_parts(precast::TrainParts& parts) {
  parts.models.add("byte_ngrams", "bag of hashed byte n-grams", make);
}

}  // namespace

PRECAST_TRAIN_PLUGIN(add_parts)
