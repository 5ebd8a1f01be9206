#include "tools/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>
#include <string>

#include "framework/process/child_process.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;
using test::Names;
using Facts = std::vector<std::string>;

Json healthy_facts() {
  return Json::parse(R"({
    "libraries": {"simd": {"in_use": "AVX2"}},
    "machine": {"cores_online": 8, "cores_usable": 8, "memory_limit_bytes": 16000000000,
                "shm_bytes": 8000000000, "open_files": 1024},
    "nvidia": {"driver": "NVRM version 580.1"},
    "torch": {"torch": {"build": "2.11.0", "run": "2.11.0"},
              "cuda": {"build": "13.0", "run": "13.0", "driver": "13.0"},
              "cudnn": {"build": "9.19.0", "run": "9.19.0"},
              "nccl": {"build": "2.28.9", "run": "2.28.9"},
              "devices": [{"name": "A GPU"}]}})");
}

/// Judges healthy facts after one of them is changed.
std::vector<Finding> judge_with(const std::string& pointer, const Json& value) {
  Json facts = healthy_facts();
  facts[Json::json_pointer(pointer)] = value;
  return diagnose(facts);
}

TEST(DoctorTest, FindsNothingOnAHealthyMachine) {
  EXPECT_TRUE(diagnose(healthy_facts()).empty());
}

struct Case {
  std::string pointer;
  Json value;
  bool problem;
  /// Facts that the finding and its fix must name.
  Facts what;
  Facts fix;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.pointer << " = " << one.value.dump();
}

class DoctorFindingTest : public testing::TestWithParam<Case> {};

TEST_P(DoctorFindingTest, NamesCauseAndFix) {
  const std::vector<Finding> findings = judge_with(GetParam().pointer, GetParam().value);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].problem, GetParam().problem);
  EXPECT_THAT(findings[0].what, test::NamesMatcher(GetParam().what));
  EXPECT_THAT(findings[0].fix, test::NamesMatcher(GetParam().fix));
}

INSTANTIATE_TEST_SUITE_P(
    All, DoctorFindingTest,
    testing::Values(
        Case{"/machine/cores_usable", 1, false, {"1", "8"}, {"cpus"}},
        Case{"/machine/memory_limit_bytes", 512000000, false, {"512.0 MB"}, {"--memory"}},
        Case{"/machine/shm_bytes", 67108864, false, {"/dev/shm", "67.1 MB"}, {"--shm-size"}},
        Case{"/machine/shm_bytes", nullptr, false, {"/dev/shm"}, {"--shm-size"}},
        Case{"/machine/open_files", 256, false, {"256"}, {"ulimit -n"}},
        Case{"/libraries/simd/in_use", "SSE2", false, {"SSE2"}, {"CPU"}},
        Case{"/torch/torch/run", "2.12.0", true, {"torch", "2.12.0", "2.11.0"}, {"./tools/setup"}},
        Case{"/torch/nccl/run", "2.27.3", true, {"nccl", "2.27.3", "2.28.9"}, {"pip"}},
        Case{"/torch/nccl/run", "2.28.1", false, {"nccl", "2.28.1", "2.28.9"}, {"pip"}},
        Case{"/torch/cuda/driver", "0.0", false, {"NVIDIA"}, {"--gpus all"}},
        Case{"/torch/cuda/driver", "12.4", true, {"CUDA", "12.4", "13.0"}, {"580"}},
        Case{"/torch/devices", Json::array(), false, {"GPU"}, {"CUDA_VISIBLE_DEVICES"}},
        Case{"/torch/cuda", nullptr, false, {"CUDA"}, {"nvcc"}},
        Case{"/torch",
             Json{{"missing", "x/precast-train"}},
             false,
             {"x/precast-train"},
             {"-DPRECAST_TORCH=ON"}},
        Case{"/torch",
             Json{{"error", "exit code 127: libcudart.so.13"}},
             true,
             {"libcudart.so.13"},
             {"./tools/setup"}}));

TEST(DoctorTest, JudgesOnlyWhatIsKnown) {
  Json facts = healthy_facts();
  facts["torch"] = {{"torch", {{"build", "2.11.0"}, {"run", "2.11.0"}}}, {"cuda", nullptr}};
  facts["nvidia"] = nullptr;
  facts.erase("libraries");
  facts["machine"].erase("shm_bytes");
  EXPECT_TRUE(diagnose(facts).empty());
  for (const char* part : {"driver", "run"}) {
    facts = healthy_facts();
    facts["torch"]["cuda"].erase(part);
    EXPECT_TRUE(diagnose(facts).empty()) << part;
  }
  facts = healthy_facts();
  facts["torch"].erase("devices");
  EXPECT_TRUE(diagnose(facts).empty());
}

TEST(DoctorTest, SizesAreShownInUnitsInListsToo) {
  const std::string text = section_text("machine", Json::parse(R"({
    "memory_bytes": 512000000, "memory_limit_bytes": null,
    "cgroup": {"version": 2, "cpus": 1.5, "memory_bytes": 16000000000},
    "devices": [{"name": "A GPU", "memory_bytes": 80000000000}]})"));
  EXPECT_THAT(text, Names("512.0 MB", "16.0 GB", "80.0 GB", "A GPU", "1.5"));
  EXPECT_EQ(text.find("memory_bytes"), std::string::npos);
}

class DoctorFactsTest : public testing::Test {
 protected:
  /// Replaces precast-train with a script.
  void make_train(const std::string& script) {
    std::ofstream(folder_ / "precast-train") << "#!/bin/sh\n" << script << '\n';
    std::filesystem::permissions(folder_ / "precast-train", std::filesystem::perms::owner_all);
  }
  [[nodiscard]] Json torch_facts() const { return gather_facts(folder_.path())["torch"]; }

 private:
  test::TemporaryFolder folder_;
};

TEST_F(DoctorFactsTest, SaysThatThereIsNoTrainProgram) {
  EXPECT_THAT(torch_facts()["missing"].get<std::string>(), Names("precast-train"));
}

TEST_F(DoctorFactsTest, UsesTheResponseOfTheTrainProgram) {
  make_train(R"([ "$1 $2" = "versions --json" ] && echo '{"torch": {"run": "1.2.3"}}')");
  EXPECT_EQ(torch_facts()["torch"]["run"], "1.2.3");
}

TEST_F(DoctorFactsTest, CarriesTheMessageOfATrainProgramThatFails) {
  make_train("echo 'cannot open libtorch_cpu.so' >&2; exit 127");
  EXPECT_THAT(torch_facts()["error"].get<std::string>(), Names(127, "cannot open libtorch_cpu.so"));
}

TEST_F(DoctorFactsTest, RejectsAResponseThatIsNotJson) {
  make_train("echo hello");
  EXPECT_THAT(torch_facts()["error"].get<std::string>(), Names("hello"));
}

TEST_F(DoctorFactsTest, KnowsThisMachine) {
  const Json facts = gather_facts(".");
#ifdef __clang__
  EXPECT_THAT(facts["precast"]["compiler"].get<std::string>(), testing::HasSubstr("lang"));
  EXPECT_THAT(facts["precast"]["compiler"].get<std::string>(),
              testing::Not(testing::HasSubstr("g++")));
#else
  EXPECT_THAT(facts["precast"]["compiler"].get<std::string>(), testing::StartsWith("g++ "));
#endif
  EXPECT_GE(facts["machine"]["cores_usable"].get<int>(), 1);
  EXPECT_GT(facts["machine"]["memory_bytes"].get<double>(), 64e6);
  // The name of a file or, if the linker has left libjpeg out of this test program because it
  // decodes nothing, an explanation.
  EXPECT_FALSE(facts["libraries"]["libjpeg-turbo"]["run"].get<std::string>().empty());
  EXPECT_FALSE(facts["libraries"]["simd"]["usable"].empty());
}

}  // namespace
}  // namespace precast::tools
