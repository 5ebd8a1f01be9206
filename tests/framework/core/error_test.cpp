#include "framework/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <stdexcept>

namespace precast {
namespace {

TEST(Error, CarriesTheExitCodeOfItsKind) {
  EXPECT_EQ(ConfigError("x").exit_code(), ExitCode::usage);
  EXPECT_EQ(DataError("x").exit_code(), ExitCode::dataset_invalid);
  EXPECT_EQ(CheckpointError("x").exit_code(), ExitCode::checkpoint_invalid);
  EXPECT_EQ(IoError("x").exit_code(), ExitCode::io);
  EXPECT_EQ(DeviceError("x").exit_code(), ExitCode::environment);
  EXPECT_EQ(Error("x").exit_code(), ExitCode::failed);
  EXPECT_EQ(Error("x", ExitCode::stalled).exit_code(), ExitCode::stalled);
}

TEST(Error, NamesThePathAndTheReasonOfASystemCall) {
  EXPECT_STREQ(IoError("cannot write", "/x/y", ENOSPC).what(),
               "cannot write /x/y: No space left on device");
}

TEST(Require, NamesThePlaceOfABrokenAssumption) {
  EXPECT_NO_THROW(require(true, "fine"));
  try {
    require(false, "n is even");
    FAIL();
  } catch (const std::logic_error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("error_test.cpp:"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("n is even"));
  }
}

}  // namespace
}  // namespace precast
