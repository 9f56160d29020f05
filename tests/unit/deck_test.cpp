#include "deck/deck.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/error.hpp"
#include "base/files.hpp"
#include "deck/bounds.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::string_view kHead = R"(title = "Test"
version = 3
device = "cpu"
lanes = ["host"]
measured_peaks = true
)";
constexpr std::string_view kCudaHead = R"(title = "G"
version = 1
device = "cuda"
arch = "sm_90a"
gpus = ["NVIDIA H200"]
l2_mib = 60
lanes = ["sealed", "python"]
bandwidth_gbs = 4800
)";
constexpr std::string_view kShape = R"([[problems.05_topk]]
batch = 4
n = 3000
k = 8
)";

/// Reads a deck from text; the file is called test.toml.
class DeckReading : public ::testing::Test {
 protected:
  Deck read(const std::string& text) {
    write_atomic(folder_.path() / "test.toml", text);
    return read_deck(folder_.path() / "test.toml");
  }

  std::string refusal(const std::string& text) {
    try {
      read(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "accepted";
  }

  static std::string deck(std::string_view head, std::string_view middle, std::string_view shape) {
    return fmt::format("{}{}{}", head, middle, shape);
  }

  TempDir folder_;
};

TEST_F(DeckReading, DefaultsAndFields) {
  const Deck deck = read(fmt::format("{}{}", kHead, kShape));
  EXPECT_EQ(deck.name, "test");
  EXPECT_EQ(deck.title, "Test");
  EXPECT_EQ(deck.version, 3);
  EXPECT_TRUE(deck.measured_peaks);
  EXPECT_EQ(deck.limits.call_seconds, DeckLimits().call_seconds);
  EXPECT_EQ(deck.sampling.max_samples, DeckSampling().max_samples);
  EXPECT_EQ(deck.sha256.size(), 64u);
  const auto& shapes = deck.shapes_of(find_problem("05"));
  ASSERT_EQ(shapes.size(), 1u);
  EXPECT_EQ(shapes[0].shape.text(), "batch=4 n=3000 k=8");
  EXPECT_EQ(shapes[0].regime, Regime::memory);
}

TEST_F(DeckReading, PeaksInTheFile) {
  const Deck deck = read(fmt::format("{}{}{}{}", kCudaHead,
                                     "peak_clock_mhz = 1830\nstatus = \"no runner\"\n[peak_tflops]\nfp32 = 67\n"
                                     "fp8_e4m3 = 1979.0\n[limits]\ncall_seconds = 2\n",
                                     kShape, "regime = \"compute\"\n"));
  EXPECT_EQ(deck.arch, "sm_90a");
  EXPECT_EQ(deck.l2_mib, 60);
  EXPECT_EQ(deck.peak_clock_mhz, 1830);
  EXPECT_FALSE(deck.measured_peaks);
  EXPECT_EQ(deck.status, "no runner");
  EXPECT_EQ(deck.bandwidth_gbs, 4800);
  EXPECT_EQ(deck.peak_tflops.at("fp8_e4m3"), 1979);
  EXPECT_EQ(deck.limits.call_seconds, 2);
  EXPECT_EQ(deck.shapes.at("05_topk")[0].regime, Regime::compute);
  EXPECT_THAT(deck.lanes, ::testing::ElementsAre("sealed", "python"));
}

TEST_F(DeckReading, NamesFileLineFieldAndWhatWasExpected) {
  const std::string head(kHead);
  const std::string shape(kShape);
  const std::string good = head + shape;
  const auto expect = [&](const std::string& text, std::initializer_list<std::string> words) {
    const std::string message = refusal(text);
    for (const std::string& word : words) EXPECT_THAT(message, HasSubstr(word)) << text;
  };
  expect("title = \n", {"test.toml:1:", "not TOML"});
  expect("", {"title is missing"});
  expect("titel = \"x\"\n" + good, {"test.toml:1: titel is unknown, did you mean title?"});
  expect(head + "[limits]\ncall_secnds = 3\n" + shape,
         {"test.toml:7: [limits] call_secnds is unknown, did you mean call_seconds?"});
  expect(head + "[limits]\ncall_seconds = 0\n" + shape, {":7: [limits] call_seconds is 0, expected a number from"});
  expect(head + "[limits]\ncall_seconds = \"2\"\n" + shape, {"[limits] call_seconds is \"2\"", "expected a number"});
  expect(head + "[limits]\ncall_seconds = true\n" + shape, {"[limits] call_seconds is true", "expected a number"});
  expect(head + "[limits]\ncall_seconds = nan\n" + shape, {"[limits] call_seconds is nan", "expected a number"});
  expect(head + "[limits]\nmemory_mib = 1.5\n" + shape,
         {"[limits] memory_mib is 1.5, expected a whole number from 64"});
  expect(head + "[limits]\nmemory_mib = 1\n" + shape, {"[limits] memory_mib is 1, expected"});
  expect(head + "limits = 3\n" + shape, {":6: limits is 3, expected a table"});
  expect(head + "[sampling]\nmin_samples = 300\n" + shape,
         {"[sampling] min_samples is 300 and max_samples is 200, expected min_samples <= max_samples"});
  expect(head + "[sampling]\ncheck_seeds = 0\n" + shape, {"[sampling] check_seeds is 0"});
  expect(head, {"no problem has a shape", "[[problems."});
  expect(head + "[problems]\n", {"no problem has a shape"});
  expect(head + "[[problems.05_topkk]]\nbatch = 1\n", {"[problems] 05_topkk is unknown, did you mean 05_topk?"});
  expect(head + "[problems.05_topk]\nbatch = 1\n", {"[problems] 05_topk is a table, expected a list of tables"});
  expect(head + "[[problems.05_topk]]\nbatch = 1\nn = 5\n", {":6: [problems.05_topk] k is missing"});
  expect(good + "depth = 4\n",
         {":10: [problems.05_topk] depth is unknown; expected one of batch, n, k, regime, t_base_us"});
  expect(good + "regime = \"fast\"\n",
         {"[problems.05_topk] regime is \"fast\", expected one of \"memory\", \"compute\""});
  expect(head + "[[problems.05_topk]]\nbatch = 1\nn = 5\nk = 6\n",
         {":6: [problems.05_topk] shape batch=1 n=5 k=6 lies outside the domain of 05_topk: k is 6"});
  expect(head + "[[problems.05_topk]]\nbatch = 0\nn = 5\nk = 5\n",
         {":6: [problems.05_topk] shape batch=0 n=5 k=5 lies outside the domain", "batch is 0"});
  expect(good + shape, {":10: [problems.05_topk] shape batch=4 n=3000 k=8 stands there twice"});
}

TEST_F(DeckReading, HeadFieldsAreStrict) {
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = fmt::format("{}{}", kHead, kShape);
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_THAT(with("version = 3", "version = 0"), HasSubstr("version is 0, expected a whole number"));
  EXPECT_THAT(with("version = 3", "version = \"3\""), HasSubstr("version is"));
  EXPECT_THAT(with("\"Test\"", "\"\""), HasSubstr("title is"));
  EXPECT_THAT(with("\"cpu\"", "\"tpu\""), AllOf(HasSubstr("device is"), HasSubstr("\"cpu\", \"cuda\", \"metal\"")));
  EXPECT_THAT(with("[\"host\"]", "[]"), HasSubstr("lanes is"));
  EXPECT_THAT(with("[\"host\"]", "\"host\""), HasSubstr("lanes is"));
  EXPECT_THAT(with("[\"host\"]", "[\"sealed\"]"), AllOf(HasSubstr("lanes is"), HasSubstr("\"host\", \"python\"")));
  EXPECT_THAT(with("[\"host\"]", "[\"host\", \"host\"]"), HasSubstr("different"));
  EXPECT_THAT(with("measured_peaks = true", "measured_peaks = 1"), HasSubstr("expected true or false"));
  EXPECT_THAT(with("measured_peaks = true", "measured_peaks = false"), HasSubstr("[peak_tflops] is missing"));
  EXPECT_THAT(with("measured_peaks = true", "measured_peaks = true\nbandwidth_gbs = 9"),
              HasSubstr("expected no peak_tflops and no bandwidth_gbs"));
  EXPECT_THAT(with("measured_peaks = true", "peak_tflops.fp32 = 1"), HasSubstr("bandwidth_gbs is missing"));
  EXPECT_THAT(with("measured_peaks = true", "bandwidth_gbs = 1\npeak_tflops.fp322 = 1"),
              HasSubstr("did you mean fp32?"));
  EXPECT_THAT(with("measured_peaks = true", "bandwidth_gbs = 1\npeak_tflops.bf16 = 1"), HasSubstr("fp32 is missing"));
  EXPECT_THAT(with("measured_peaks = true", "measured_peaks = true\narch = \"sm_90a\""),
              HasSubstr("arch is \"sm_90a\", expected nothing"));
}

TEST_F(DeckReading, DevicesWithCompiledCodeSayForWhat) {
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string text = fmt::format("{}peak_tflops.fp32 = 67\n{}", kCudaHead, kShape);
    text.replace(text.find(from), from.size(), to);
    return refusal(text);
  };
  EXPECT_EQ(with("sm_90a", "sm_100a"), "accepted");
  EXPECT_EQ(with("sm_90a", "sm_80"), "accepted");
  for (const char* wrong : {"hopper", "sm_", "sm_9", "sm_x0a", "90a"})
    EXPECT_THAT(with("sm_90a", wrong), AllOf(HasSubstr("arch is"), HasSubstr("\"sm_90a\"")));
  EXPECT_THAT(with("arch = \"sm_90a\"\n", ""), HasSubstr("arch is missing"));
  EXPECT_THAT(with("l2_mib = 60\n", ""), HasSubstr("l2_mib is missing"));
  EXPECT_THAT(with("l2_mib = 60", "l2_mib = 0"), HasSubstr("l2_mib is 0, expected a whole number from 1"));
  EXPECT_THAT(with("l2_mib = 60", "l2_mib = 60\npeak_clock_mhz = 1"), HasSubstr("peak_clock_mhz is 1, expected"));
}

TEST_F(DeckReading, ReleasedOnceEveryShapeHasItsBaseline) {
  const std::string one = fmt::format("{}{}", kHead, kShape);
  const std::string other = "[[problems.05_topk]]\nbatch = 1\nn = 5\nk = 5\n";
  EXPECT_FALSE(read(one).released());
  EXPECT_TRUE(read(one + "t_base_us = 31.5\n").released());
  EXPECT_EQ(read(one + "t_base_us = 31.5\n").shapes.at("05_topk")[0].t_base_us, 31.5);
  EXPECT_FALSE(read(one + "t_base_us = 31.5\n" + other).released());
  EXPECT_TRUE(read(one + "t_base_us = 31.5\n" + other + "t_base_us = 2\n").released());
  EXPECT_THAT(refusal(one + "t_base_us = 0\n"), HasSubstr("t_base_us is 0, expected a number from"));
}

TEST(Deck, MissingFile) {
  try {
    read_deck("/nowhere/deck.toml");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("/nowhere/deck.toml"));
  }
}

TEST(Deck, ProblemWithoutShapes) {
  Problem other;
  other.id = "99_other";
  Deck deck;
  deck.name = "d";
  deck.shapes["05_topk"] = {};
  try {
    (void)deck.shapes_of(other);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "deck d has no shapes for problem 99_other: it has 05_topk");
  }
}

class ShippedDecks : public ::testing::Test {
 protected:
  void SetUp() override { ::setenv("KBH_ROOT", KBH_SOURCE_DIR, 1); }
  void TearDown() override { ::unsetenv("KBH_ROOT"); }
};

TEST_F(ShippedDecks, AllAreSound) {
  EXPECT_THAT(deck_names(), ::testing::UnorderedElementsAre("b200", "cpu", "cpu-tiny", "h100-pcie", "h100-sxm", "h200",
                                                            "m4-max", "rtx-pro-6000"));
  for (const std::string& name : deck_names()) EXPECT_EQ(find_deck(name).name, name);
}

TEST_F(ShippedDecks, EveryDeckHasEveryProblem) {
  for (const std::string& name : deck_names()) {
    const Deck deck = find_deck(name);
    for (const Problem& problem : all_problems()) EXPECT_TRUE(deck.shapes.contains(problem.id)) << name << problem.id;
  }
}

TEST_F(ShippedDecks, PublicShapesAreTheSameOnEveryDevice) {
  const Deck h200 = find_deck("h200");
  for (const std::string& name : deck_names()) {
    const Deck deck = find_deck(name);
    if (deck.measured_peaks) continue;
    for (const auto& [id, shapes] : h200.shapes) {
      ASSERT_EQ(deck.shapes.at(id).size(), shapes.size()) << name << " " << id;
      for (std::size_t i = 0; i < shapes.size(); ++i) EXPECT_EQ(deck.shapes.at(id)[i].shape, shapes[i].shape) << name;
    }
  }
}

TEST_F(ShippedDecks, ListedRegimeIsWhatBinds) {
  for (const std::string& name : deck_names()) {
    const Deck deck = find_deck(name);
    if (deck.measured_peaks) continue;
    for (const Problem& problem : all_problems())
      for (const DeckShape& listed : deck.shapes_of(problem))
        EXPECT_EQ(listed.regime, bound_of(problem, listed.shape, datasheet_peaks(deck)).binds())
            << name << " " << problem.id << " " << listed.shape.text();
  }
}

TEST_F(ShippedDecks, Cpu) {
  const Deck deck = find_deck("cpu");
  EXPECT_TRUE(deck.measured_peaks);
  EXPECT_EQ(deck.shapes_of(find_problem("05_topk")).size(), 5u);
  const Deck tiny = find_deck("cpu-tiny");
  EXPECT_EQ(tiny.sampling.min_samples, 3);
  EXPECT_EQ(tiny.sampling.max_samples, 3);
}

TEST_F(ShippedDecks, UnknownNameSuggestsTheNearest) {
  const auto message = [](std::string_view name) -> std::string {
    try {
      find_deck(name);
    } catch (const Error& error) {
      return error.what();
    }
    return "found";
  };
  EXPECT_EQ(message("cpu-tinny"), "unknown deck \"cpu-tinny\": did you mean cpu-tiny?");
  EXPECT_THAT(message("somewhere-else"), AllOf(HasSubstr("unknown deck"), HasSubstr("cpu, cpu-tiny")));
  EXPECT_THAT(message("../decks/cpu"), HasSubstr("unknown deck"));
}

}  // namespace
}  // namespace kbh
