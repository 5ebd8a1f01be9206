#include "tools/bench/cost/cards.h"

#include <algorithm>

#include "tools/cli/arguments.h"

namespace precast::tools {

// Sources:
//   copies     te42kyfo/gpu-benches, gpu-stream and cuda-stream, column `scale` (reads one array,
//              writes one), the largest value: v100.txt 804, a100_40.txt 1381,
//              a100_80.txt 1732 GB/s.
//              H100 SXM: 2,988 GB/s, measured by this project's authors with kernel_bench.
//              H200: 4.3 TB/s, measured by this project's authors with a copy in
//              torch 2.11.0+cu130.
//   products   stas00/ml-engineering, "Maximum Achievable Matmul FLOPS", bf16: A100 SXM 271.2,
//              H100 SXM 794.5 TFLOP/s ("H200 is the same"; 769 to 798 were measured on an H200 by
//              this project's authors). V100: zzc0721/torch-performance-test-data#140, fp16 97.36.
//   fp32       TF32 runs at half of the rate of fp16 (NVIDIA's data sheets of A100, H100 and H200).
//              V100 has no TF32; the same issue #140 gives 14.5 TFLOP/s for fp32.
//   multiprocessors  NVIDIA's data sheets.
const std::array<Card, 5>& cards() {
  static constexpr std::array<Card, 5> kCards{{
      {"a100_40gb", "A100 SXM 40 GB", 271.2e12, 135.6e12, 1381e9, 108, true,
       "gpu-benches a100_40.txt; ml-engineering"},
      {"a100_80gb", "A100 SXM 80 GB", 271.2e12, 135.6e12, 1732e9, 108, true,
       "gpu-benches a100_80.txt; ml-engineering"},
      {"h100", "H100 SXM 80 GB", 794.5e12, 397e12, 2988e9, 132, true, "measured; ml-engineering"},
      {"h200", "H200 SXM 141 GB", 794.5e12, 397e12, 4300e9, 132, true, "measured; ml-engineering"},
      {"v100", "V100 SXM2 16 GB", 97.4e12, 14.5e12, 804e9, 80, false,
       "gpu-benches v100.txt; torch-performance-test-data#140"},
  }};
  return kCards;
}

std::vector<const Card*> parse_cards(std::string_view option, const std::string& list) {
  std::vector<const Card*> chosen;
  std::vector<std::string_view> names;
  for (const Card& card : cards()) names.push_back(card.name);
  if (list == "all") {
    for (const Card& card : cards()) chosen.push_back(&card);
    return chosen;
  }
  for (const std::string& name : split_list(option, list))
    chosen.push_back(&cards()[find_name(option, names, name)]);
  return chosen;
}

// Chosen so that the projected speed of one V100 equals the published one (1,200 img/s, see below).
const double kAchievedFraction = 0.894;
// NVIDIA/DeepLearningExamples, ResNet-50 in mixed precision: 8 V100s reach 8,322 img/s, one
// V100 1,200 img/s.
const double kNodeEfficiency = 8322.0 / (8 * 1200.0);
// gpu-benches, gpu-small-kernels/a100_80.txt and h200.txt: 4,096 elements of 16 bytes at 25 GB/s.
const double kMinKernelSeconds = 2.6e-6;

const std::array<PublishedSpeed, 5>& published_speeds() {
  static constexpr std::array<PublishedSpeed, 5> kSpeeds{{
      {"DeepLearningExamples, DGX-1 16 GB", "v100", "resnet50", false, 224, 256, 1, 1200, true},
      {"DeepLearningExamples, DGX A100 80 GB", "a100_80gb", "resnet50", false, 224, 256, 1, 2470,
       false},
      {"ffcv-imagenet, 8 x A100 40 GB", "a100_40gb", "resnet50", true, 160, 512, 8, 3517, false},
      {"ffcv-imagenet, 8 x A100 40 GB", "a100_40gb", "resnet50", true, 192, 512, 8, 2601, false},
      {"Python torch on one H100, docs/benchmarks.md", "h100", "resnet50", false, 224, 256, 1, 4701,
       false},
  }};
  return kSpeeds;
}

bool is_checked(const Card& card) {
  return std::ranges::any_of(published_speeds(), [&](const PublishedSpeed& speed) {
    return speed.card == card.name && !speed.calibrates;
  });
}

}  // namespace precast::tools
