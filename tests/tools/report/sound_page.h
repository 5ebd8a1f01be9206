#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "tests/tools/report/chart/xml.h"

namespace precast::test {

/// Expects a page that is well-formed XML after its first line, loads no resources and links to
/// nothing outside its folder. URLs in text are allowed.
inline void expect_valid_page(const std::string& page) {
  const std::string doctype = "<!DOCTYPE html>\n";
  ASSERT_EQ(page.substr(0, doctype.size()), doctype);
  EXPECT_NO_THROW((void)parse_xml(page.substr(doctype.size())));
  for (const char* loads : {"<script", "src=", "@import", "url(", "<iframe", "<img", "<object"})
    EXPECT_THAT(page, ::testing::Not(::testing::HasSubstr(loads)));
  const std::regex reference("(href|src|srcset|action|data|poster)=\"[^\"]*//[^\"]*\"");
  for (std::sregex_iterator found(page.begin(), page.end(), reference), end; found != end; ++found)
    ADD_FAILURE() << found->str();
}

}  // namespace precast::test
