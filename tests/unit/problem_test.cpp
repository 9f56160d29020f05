#include "problem/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.hpp"
#include "problem/metadata.hpp"

namespace kbh {
namespace {

using testing::HasSubstr;

const Shape kShape{{{"batch", 64}, {"n", 8192}, {"k", 8}}};

TEST(Shape, FindsDimensionsByNameAndPrintsThemInOrder) {
  EXPECT_EQ(kShape["n"], 8192);
  EXPECT_EQ(kShape.text(), "batch=64 n=8192 k=8");
  EXPECT_EQ(Shape{}.text(), "");
}

TEST(ShapeDeathTest, AMissingDimensionAborts) {
  EXPECT_DEATH(static_cast<void>(kShape["m"]), "has the dimension that is asked for");
}

TEST(TensorSpec, CountsElementsAndBytes) {
  const TensorSpec spec{"indices", Role::output, DType::i64, {3, 5}};
  EXPECT_EQ(spec.elements(), 15);
  EXPECT_EQ(spec.bytes(), 120u);
  EXPECT_EQ((TensorSpec{"scalar", Role::input, DType::f32, {}}).elements(), 1);
}

DrawKey key() { return {"0123456789abcdef", "05_topk", 1, kShape, "nominal", 0}; }

TEST(DrawKey, StreamHasTheRecordedValue) {
  // SHA-256 of the length-prefixed fields; a change would make old records impossible to replay.
  EXPECT_EQ(key().stream("x"), 0x7cc0b9cdd1bc62afu);
}

TEST(DrawKey, EveryFieldChangesTheStream) {
  std::vector<DrawKey> keys(7, key());
  keys[1].seed[15] = 'F';
  keys[2].problem = "06_moe_swiglu";
  keys[3].version = 2;
  keys[4].shape.dims[1].second = 8193;
  keys[5].case_name = "uniform";
  keys[6].trial = 1;
  std::set<std::uint64_t> streams;
  for (const DrawKey& k : keys) streams.insert(k.stream("x"));
  streams.insert(key().stream("y"));
  EXPECT_EQ(streams.size(), 8u);
}

TEST(DrawKey, FieldsDoNotRunIntoEachOther) {
  DrawKey a = key();
  DrawKey b = key();
  a.case_name = "one";
  a.trial = 11;
  b.case_name = "one1";
  b.trial = 1;
  EXPECT_NE(a.stream("x"), b.stream("x"));
}

// ---- problem.toml
// -----------------------------------------------------------------------------------------------------

const std::string kToml = R"(id = "99_test"
title = "Test"
aliases = ["test"]
version = 3
summary = "s"
domain = "d"
precision = "p"
tolerance = "t"
regime = "compute"
flops_formula = "n"
bytes_formula = "4*n"
dims = ["n"]
forbidden = []
prepared_cap = 1.5

[sota]
name = "library"
url = "https://example.org"
figure = "10 us"
source = "somebody"

[parity]
relative = 0.25
)";

std::string changed(std::string_view from, std::string_view to) {
  std::string text = kToml;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& toml) {
  try {
    read_metadata(toml, "some/problem.toml");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "no error";
}

TEST(Metadata, ReadsEveryField) {
  const Problem problem = read_metadata(kToml, "some/problem.toml");
  EXPECT_EQ(problem.id, "99_test");
  EXPECT_EQ(problem.title, "Test");
  EXPECT_EQ(problem.aliases, std::vector<std::string>{"test"});
  EXPECT_EQ(problem.version, 3);
  EXPECT_EQ(problem.regime, Regime::compute);
  EXPECT_EQ(problem.bytes_formula, "4*n");
  EXPECT_EQ(problem.dims, std::vector<std::string>{"n"});
  EXPECT_TRUE(problem.forbidden.empty());
  EXPECT_EQ(problem.precision, "p");
  EXPECT_EQ(problem.prepared_cap, 1.5);
  EXPECT_EQ(problem.sota.name, "library");
  EXPECT_EQ(problem.sota.source, "somebody");
  EXPECT_EQ(problem.parity.relative, 0.25);
  EXPECT_EQ(problem.parity.rms, 0);  // where it is absent
}

TEST(Metadata, ErrorsNameSourceFieldValueAndWhatWasExpected) {
  EXPECT_EQ(error_of(changed("version = 3", "version = 0")),
            "some/problem.toml: line 4: field version is 0, expected a whole number of at least 1");
  EXPECT_EQ(error_of(changed("version = 3", "version = 1.5")),
            "some/problem.toml: line 4: field version is 1.5, expected a whole number of at least 1");
  EXPECT_THAT(error_of(changed("regime = \"compute\"", "regime = \"both\"")),
              HasSubstr("field regime is 'both', expected \"memory\" or \"compute\""));
  EXPECT_THAT(error_of(changed("title = \"Test\"", "title = 5")), HasSubstr("field title is 5, expected text"));
  EXPECT_THAT(error_of(changed("dims = [\"n\"]", "dims = \"n\"")), HasSubstr("field dims"));
  EXPECT_THAT(error_of(changed("dims = [\"n\"]", "dims = [1]")), HasSubstr("expected a list of texts"));
  EXPECT_EQ(error_of(changed("domain = \"d\"\n", "")), "some/problem.toml: field domain is missing: add it");
  EXPECT_EQ(error_of(changed("summary", "sumary")), "some/problem.toml: unknown field sumary, did you mean summary?");
  EXPECT_EQ(error_of(changed("figure = \"10 us\"\n", "")), "some/problem.toml [sota]: field figure is missing: add it");
  EXPECT_THAT(error_of(changed("relative = 0.25", "relative = -1")),
              HasSubstr("field relative is -1, expected a number of at least 0"));
  EXPECT_THAT(error_of(changed("relative", "realtive")), HasSubstr("did you mean relative?"));
  EXPECT_THAT(error_of("id = "), HasSubstr("some/problem.toml: line 1:"));
}

}  // namespace
}  // namespace kbh
