#include "base/json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace kbh {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text) {
  try {
    parse_document(text, "kbh.test/1", "some/file.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Json, ReadsADocumentOfTheSchema) {
  const Json json = parse_document(R"({"schema": "kbh.test/1", "b": 1, "a": 2})", "kbh.test/1", "f");
  EXPECT_EQ(json["a"], 2);
  EXPECT_EQ(json.dump(), R"({"schema":"kbh.test/1","b":1,"a":2})");  // in the order of the text
}

TEST(Json, ErrorsNameTheSourceThePlaceAndWhatWasExpected) {
  EXPECT_THAT(error_of(R"({"schema": "kbh.test/1", )"), HasSubstr("some/file.json: not JSON (byte 26)"));
  EXPECT_THAT(error_of(""), HasSubstr("some/file.json: not JSON"));
  EXPECT_EQ(error_of("{}"), "some/file.json: field schema is missing, expected \"kbh.test/1\"");
  EXPECT_EQ(error_of("[1]"), "some/file.json: field schema is missing, expected \"kbh.test/1\"");
  EXPECT_EQ(error_of(R"({"schema": 1})"), "some/file.json: field schema is missing, expected \"kbh.test/1\"");
  EXPECT_EQ(error_of(R"({"schema": "kbh.test/2"})"),
            "some/file.json: field schema is \"kbh.test/2\", expected \"kbh.test/1\"");
}

TEST(Json, TextEndsWithANewlineAndSurvivesBrokenUtf8) {
  const std::string text = to_text(Json{{"log", "caf\xe9"}});
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(Json::parse(text)["log"], "caf\xef\xbf\xbd");
}

}  // namespace
}  // namespace kbh
