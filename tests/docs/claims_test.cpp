#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "tests/docs/markdown.h"
#include "tests/support/paths.h"
#include "tests/support/text_file.h"

namespace precast::test {
namespace {

using testing::HasSubstr;

const std::filesystem::path kSource = test::source_dir();

/// @return the text of all .cpp and .h files of a folder, with adjacent string literals joined.
std::string printed_by(const std::string& folder) {
  std::string all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kSource / folder))
    if (entry.path().extension() == ".cpp" || entry.path().extension() == ".h")
      all += read_text(entry.path());
  static const std::regex kJoint("\"\\s*\\n\\s*\"");
  return std::regex_replace(all, kJoint, "");
}

/// The parts of a message between the `...` that stand for variable text.
std::vector<std::string> fixed_parts(const std::string& message) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= message.size()) {
    const std::size_t end = std::min(message.find("...", begin), message.size());
    const std::string part = message.substr(begin, end - begin);
    // Parts that consist only of spaces and quotes around a value are left out.
    if (part.find_first_not_of(" '") != part.npos) parts.push_back(part);
    begin = end + 3;
  }
  return parts;
}

TEST(TroubleshootingTest, QuotesWhatTheProgramsPrint) {
  std::string sources;
  for (const char* folder : {"framework", "data", "models", "recipes", "tools"})
    sources += printed_by(folder);
  int messages = 0;
  for (const Quoted& quoted : quoted_in(read_text(kSource / "docs/troubleshooting.md"))) {
    if (!quoted.first_column || quoted.text.starts_with("find_package")) continue;
    ++messages;
    for (const std::string& part : fixed_parts(quoted.text))
      EXPECT_TRUE(sources.find(part) != sources.npos)
          << "docs/troubleshooting.md:" << quoted.line << ": no program prints '" << part << "'";
  }
  EXPECT_GT(messages, 15);
}

TEST(DocumentsTest, LinksLeadToFilesAndHeadings) {
  const std::regex link("\\]\\(([^)#: ]*)(#[^) ]*)?\\)");
  int links = 0, anchors = 0;
  for (const std::string& document : documents(kSource)) {
    const std::string text = read_text(kSource / document);
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string path = at->str(1), anchor = at->str(2);
      if (path.empty() && anchor.empty()) continue;
      ++links;
      const std::filesystem::path file = kSource / document;
      std::filesystem::path target = path.empty() ? file : file.parent_path() / path;
      EXPECT_TRUE(exists(target)) << document << ": " << at->str(0);
      // GitHub shows the README of a folder.
      if (is_directory(target)) target /= "README.md";
      if (anchor.empty() || target.extension() != ".md") continue;
      ++anchors;
      EXPECT_THAT(anchors_in(read_text(target)), testing::Contains(anchor.substr(1)))
          << document << ": " << at->str(0);
    }
  }
  EXPECT_GT(links, 20);
  EXPECT_GT(anchors, 20);
}

/// The keys that train_imagenet.py of libffcv/ffcv-imagenet declares, and those that only its
/// configuration files contain: data.gpu, training.bn_wd and uid.
TEST(FromFfcvTest, NamesEveryKeyOfThePublishedScript) {
  const std::string text = read_text(kSource / "docs/from_ffcv.md");
  for (const char* key : {"model.arch",
                          "model.pretrained",
                          "resolution.min_res",
                          "resolution.max_res",
                          "resolution.end_ramp",
                          "resolution.start_ramp",
                          "data.train_dataset",
                          "data.val_dataset",
                          "data.num_workers",
                          "data.in_memory",
                          "data.gpu",
                          "lr.step_ratio",
                          "lr.step_length",
                          "lr.lr_schedule_type",
                          "lr.lr",
                          "lr.lr_peak_epoch",
                          "logging.folder",
                          "logging.log_level",
                          "validation.batch_size",
                          "validation.resolution",
                          "validation.lr_tta",
                          "training.eval_only",
                          "training.batch_size",
                          "training.optimizer",
                          "training.momentum",
                          "training.weight_decay",
                          "training.epochs",
                          "training.label_smoothing",
                          "training.distributed",
                          "training.use_blurpool",
                          "training.bn_wd",
                          "uid",
                          "dist.world_size",
                          "dist.address",
                          "dist.port"})
    EXPECT_THAT(text, HasSubstr(fmt::format("`{}`", key)));
}

/// Options of pytorch/vision's references/classification/train.py (0.14 and later).
TEST(FromTorchvisionTest, NamesEveryOptionOfTheReferenceScript) {
  const std::string text = read_text(kSource / "docs/from_torchvision.md");
  for (const char* option : {"--data-path",
                             "--model",
                             "--device",
                             "-b",
                             "--epochs",
                             "-j",
                             "--opt",
                             "--lr",
                             "--momentum",
                             "--wd",
                             "--norm-weight-decay",
                             "--bias-weight-decay",
                             "--transformer-embedding-decay",
                             "--label-smoothing",
                             "--mixup-alpha",
                             "--cutmix-alpha",
                             "--lr-scheduler",
                             "--lr-warmup-epochs",
                             "--lr-warmup-method",
                             "--lr-warmup-decay",
                             "--lr-step-size",
                             "--lr-gamma",
                             "--lr-min",
                             "--print-freq",
                             "--output-dir",
                             "--resume",
                             "--start-epoch",
                             "--cache-dataset",
                             "--sync-bn",
                             "--test-only",
                             "--auto-augment",
                             "--ra-magnitude",
                             "--augmix-severity",
                             "--random-erase",
                             "--amp",
                             "--world-size",
                             "--dist-url",
                             "--model-ema",
                             "--model-ema-steps",
                             "--model-ema-decay",
                             "--use-deterministic-algorithms",
                             "--interpolation",
                             "--val-resize-size",
                             "--val-crop-size",
                             "--train-crop-size",
                             "--clip-grad-norm",
                             "--ra-sampler",
                             "--ra-reps",
                             "--weights",
                             "--backend",
                             "--use-v2"})
    EXPECT_THAT(text, testing::ContainsRegex(fmt::format("[`( ]{}[` ]", option)));
}

}  // namespace
}  // namespace precast::test
