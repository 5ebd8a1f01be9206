#include "framework/core/archive/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "framework/core/error.h"
#include "tests/framework/core/archive/sample_tensors.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"

namespace precast {
namespace {

using namespace std::string_literals;
using test::Names;

std::vector<std::byte> file_of(const std::string& header, const std::string& data) {
  std::string text = "\x93NUMPY\x01\x00"s;
  text += static_cast<char>(header.size() & 0xFF);
  text += static_cast<char>(header.size() >> 8);
  text += header + data;
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::string problem(const std::vector<std::byte>& file) {
  try {
    static_cast<void>(parse_npy(file, "x.npy"));
  } catch (const DataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Npy, WritesTheBytesThatNumPyWrites) {
  const test::TemporaryFolder folder;
  const std::vector<std::byte> data(6);
  write_npy(folder / "x.npy", DType::u8, std::vector<std::int64_t>{2, 3}, data);
  // NumPy 2.4 writes the same file with numpy.save(f, numpy.zeros((2, 3), numpy.uint8)).
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }";
  header.resize(117, ' ');
  EXPECT_EQ(read_file(folder / "x.npy"), file_of(header + "\n", std::string(6, '\0')));
}

TEST(Npy, GivesBackWhatWasWritten) {
  const test::TemporaryFolder folder;
  for (const TensorRecord& record : test::sample_tensors()) {
    if (record.dtype == DType::bf16) continue;
    write_npy(folder / "x.npy", record.dtype, record.shape, record.bytes);
    const NpyArray array = read_npy(folder / "x.npy");
    EXPECT_EQ(array.dtype, record.dtype);
    EXPECT_EQ(array.shape, record.shape);
    EXPECT_TRUE(std::ranges::equal(array.bytes, record.bytes)) << record.name;
  }
}

TEST(Npy, ReadsTheHeadersOfOtherWriters) {
  EXPECT_THAT(problem(file_of("{\"x\"", "")), Names("x.npy", "'''", "'\"x\"'"));
  EXPECT_EQ(problem(file_of("{'shape':(2,),'fortran_order':False,'descr':'|u1'}", "ab")),
            "accepted");
  EXPECT_EQ(problem(file_of("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n",
                            std::string(8, 'x'))),
            "accepted");
}

TEST(Npy, RefusesWhatItDoesNotHold) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  EXPECT_EQ(problem(file_of(good, "12345678")), "accepted");
  EXPECT_THAT(problem(file_of(good, "1234567")), Names("x.npy", "float32 [2]", 7));
  EXPECT_THAT(
      problem(file_of("{'descr': '<f4', 'fortran_order': True, 'shape': (2,), }", "12345678")),
      Names("x.npy", "fortran_order", "ascontiguousarray"));
  const std::string maybe =
      problem(file_of("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", "12345678"));
  EXPECT_THAT(maybe, Names("x.npy", "fortran_order"));
  EXPECT_THAT(maybe, testing::Not(Names("ascontiguousarray")));
  EXPECT_THAT(
      problem(file_of("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "12345678")),
      Names("x.npy", "'>f4'"));
  EXPECT_THAT(problem(file_of("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "")),
              Names("x.npy", "'|O'"));
  EXPECT_THAT(problem(file_of("{'descr': '<f4', 'shape': (-2,), 'fortran_order': False}", "")),
              Names("x.npy", "shape", "'-2,), 'fortran_order'"));
  EXPECT_THAT(problem(file_of("{'descr': '<f4', 'shape': (9223372036854775807, 4), "
                              "'fortran_order': False}",
                              "")),
              Names("x.npy", "float32 [9223372036854775807, 4]", 0));
  EXPECT_THAT(problem(file_of("{'descr': '<f4', 'shape': (2,)}", "12345678")),
              Names("x.npy", "descr", "fortran_order", "shape"));
  EXPECT_THAT(problem(file_of("{'descr': '<f4', 'descr': '<f4'}", "")), Names("x.npy", "'descr'"));
}

TEST(Npy, RefusesOrReadsEveryDamagedFile) {
  const auto file =
      file_of("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(problem({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}),
              "accepted");
  }
  auto damaged = file;
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int value = 0; value < 256; ++value) {
      damaged[i] = static_cast<std::byte>(value);
      static_cast<void>(problem(damaged));
    }
    damaged[i] = file[i];
  }
}

}  // namespace
}  // namespace precast
