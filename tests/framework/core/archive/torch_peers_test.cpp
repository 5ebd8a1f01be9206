#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/archive/npy.h"
#include "framework/core/archive/torch_zip.h"
#include "framework/core/archive/zip_file.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

const std::string kPython = test::source_dir() + "/.venv/bin/python";

struct Result {
  std::string output;
  int status;
};

Result run(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  std::string output;
  char buffer[4096];
  while (const std::size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) {
    output.append(buffer, size);
  }
  const int status = ::pclose(pipe);
  return {output, status};
}

class TorchPeer : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kPython) ||
        std::system((kPython + " -c 'import torch' 2>/dev/null").c_str()) != 0) {
      GTEST_SKIP() << "no Python with torch at " << kPython << ": run ./tools/setup";
    }
  }
  test::TemporaryFolder folder_;
};

TEST_F(TorchPeer, LoadsOurFilesWithWeightsOnly) {
  write_torch_zip(folder_ / "w.pt", test::sample_tensors());
  const Result result =
      run(kPython + " " + test::source_dir() +
          "/tests/framework/core/archive/describe_torch_file.py " + (folder_ / "w.pt").string());
  ASSERT_EQ(result.status, 0) << result.output;
  write_file(folder_ / "w.json", result.output);
  EXPECT_EQ(test::described(folder_ / "w.json"), test::dump(test::sample_tensors()));
}

TEST_F(TorchPeer, PythonReadsOurZip64Fields) {
  {
    ZipWriter zip(folder_ / "a.zip", posix_file_ops(), 0);
    const std::string text = "hello";
    zip.add("a", std::as_bytes(std::span(text.data(), text.size())));
    zip.add("b", std::as_bytes(std::span(text.data(), text.size())));
    zip.finish();
  }
  const Result result = run(kPython +
                            " -c \"import zipfile, sys; z = zipfile.ZipFile(sys.argv[1]); "
                            "print(z.testzip(), z.read('a'), z.read('b'))\" " +
                            (folder_ / "a.zip").string());
  EXPECT_EQ(result.output, "None b'hello' b'hello'\n");
}

TEST_F(TorchPeer, NumPyReadsOurArrays) {
  const std::vector<float> values = {0, 1.5F, -2, 3, 4, 5};
  write_npy(folder_ / "x.npy", DType::f32, std::vector<std::int64_t>{2, 3},
            std::as_bytes(std::span(values)));
  const Result result = run(kPython +
                            " -c \"import numpy, sys; a = numpy.load(sys.argv[1]); "
                            "print(a.dtype, a.tolist())\" " +
                            (folder_ / "x.npy").string());
  EXPECT_EQ(result.output, "float32 [[0.0, 1.5, -2.0], [3.0, 4.0, 5.0]]\n");
}

}  // namespace
}  // namespace precast
