#include "framework/core/appended_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tests/support/full_disk.h"
#include "tests/support/message_matchers.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/text_file.h"

namespace precast {
namespace {

TEST(AppendedFileTest, AppendsToAnExistingFile) {
  const test::TemporaryFolder folder;
  AppendedFile(folder / "f").append("one");
  AppendedFile file(folder / "f");
  EXPECT_EQ(file.position(), 3);
  file.append("two");
  EXPECT_EQ(test::read_text(folder / "f"), "onetwo");
}

TEST(AppendedFileTest, KeepsPiecesThatAFullDiskRejects) {
  const test::TemporaryFolder folder;
  test::FullDisk disk(2);
  AppendedFile file(folder / "f", disk);
  disk.full = true;
  file.append("one");
  EXPECT_EQ(file.position(), 3);
  disk.full = false;
  file.append("two");
  EXPECT_EQ(test::read_text(folder / "f"), "onetwo");
}

TEST(AppendedFileTest, WritesTheLastPiecesAtTheEndOrSaysHowManyAreMissing) {
  const test::TemporaryFolder folder;
  test::FullDisk disk(2);
  AppendedFile file(folder / "f", disk);
  file.flush();
  disk.full = true;
  for (const char* piece : {"one", "two", "three"}) file.append(piece);
  testing::internal::CaptureStderr();
  file.flush();
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              test::Names(folder / "f", std::strerror(ENOSPC), "3 records"));
  EXPECT_EQ(test::read_text(folder / "f"), "");
  disk.full = false;
  file.flush();
  EXPECT_EQ(test::read_text(folder / "f"), "onetwothree");
  EXPECT_EQ(file.position(), 11);
}

TEST(AppendedFileTest, ACutKeepsUnwrittenPiecesBeforeIt) {
  const test::TemporaryFolder folder;
  test::FullDisk disk(2);
  AppendedFile file(folder / "f", disk);
  file.append("zero");
  disk.full = true;
  for (const char* piece : {"one", "two"}) file.append(piece);
  const std::int64_t position = file.position();
  for (const char* piece : {"three", "four"}) file.append(piece);
  file.truncate(position);
  EXPECT_EQ(file.position(), position);
  EXPECT_TRUE(file.has_unwritten());
  // A cut in the middle of a piece keeps its first bytes.
  file.truncate(position - 1);
  disk.full = false;
  file.flush();
  EXPECT_FALSE(file.has_unwritten());
  EXPECT_EQ(test::read_text(folder / "f"), "zeroonetw");
  EXPECT_EQ(file.position(), 9);
}

TEST(AppendedFileTest, ACutDropsUnwrittenPiecesAfterIt) {
  const test::TemporaryFolder folder;
  test::FullDisk disk(2);
  AppendedFile file(folder / "f", disk);
  file.append("onetwo");
  disk.full = true;
  file.append("three");
  file.truncate(3);
  disk.full = false;
  file.append("!");
  EXPECT_EQ(test::read_text(folder / "f"), "one!");
  file.truncate(100);
  EXPECT_EQ(file.position(), 4);
}

}  // namespace
}  // namespace precast
