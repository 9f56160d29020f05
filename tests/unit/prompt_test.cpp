#include "deck/prompt.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "lane/submission.hpp"
#include "problem/registry.hpp"

namespace kbh {
namespace {

using testing::HasSubstr;
using testing::Not;

/// 05_topk with another text.
Problem with_prompt(std::string_view text) {
  Problem problem = find_problem("05_topk");
  problem.prompt = text;
  return problem;
}

std::string rendered(std::string_view text, std::string_view deck = "cpu") {
  return render_prompt(with_prompt(text), find_deck(deck));
}

/// A deck with one shape, whatever the decks of the house hold.
Deck small_deck() {
  Deck deck = find_deck("cpu-tiny");
  deck.shapes = {{"05_topk", {{.shape = {{{"batch", 4}, {"n", 3000}, {"k", 8}}}}}}};
  return deck;
}

TEST(Prompt, HardwareIsPartOfASentenceAndHasNoPeaks) {
  EXPECT_EQ(rendered("For {{hardware}}."), "For the processors of the machine that grades.\n");
  EXPECT_EQ(rendered("For {{hardware}}.", "h200"), "For NVIDIA H200 SXM (sm_90a).\n");
}

TEST(Prompt, ShapesAreThoseOfTheDeck) {
  EXPECT_EQ(render_prompt(with_prompt("{{shapes}}"), small_deck()), "- batch=4 n=3000 k=8\n");
  EXPECT_THAT(rendered("{{shapes}}", "h200"), HasSubstr("- batch=128 n=4096 k=1\n"));
}

TEST(Prompt, TensorsAreATable) {
  EXPECT_EQ(render_prompt(with_prompt("{{tensors}}"), small_deck()),
            "| tensor | role | dtype | sizes at batch=4 n=3000 k=8 |\n"
            "|---|---|---|---|\n"
            "| `x` | input | fp32 | 4, 3000 |\n"
            "| `values` | output | fp32 | 4, 8 |\n"
            "| `indices` | output | int64 | 4, 8 |\n");
}

TEST(Prompt, WordsComeFromTheProblem) {
  const Problem& problem = find_problem("05_topk");
  EXPECT_EQ(rendered("{{domain}}"), problem.domain + "\n");
  EXPECT_EQ(rendered("a {{tolerance}} b"), "a " + problem.tolerance + " b\n");
  EXPECT_THAT(rendered("Not allowed: {{forbidden}}."), HasSubstr("Not allowed: `torch.topk`, `torch.kthvalue`,"));
}

TEST(Prompt, LanesAreThoseOfTheDeck) {
  const std::string cpu = rendered("{{lanes}}");
  EXPECT_THAT(cpu, HasSubstr("**Lane `host`.** You hand in `submission.cpp`"));
  EXPECT_THAT(cpu, Not(HasSubstr("Lane `sealed`")));
  EXPECT_THAT(cpu, Not(HasSubstr("##")));
  const std::string h200 = rendered("{{lanes}}", "h200");
  for (const std::string& lane : find_deck("h200").lanes) EXPECT_THAT(h200, HasSubstr("**Lane `" + lane + "`.**"));
  EXPECT_THAT(h200, HasSubstr("KBH_SEALED_PLAN"));
  EXPECT_THAT(h200, HasSubstr("get_init_inputs"));
}

TEST(Prompt, EveryLaneHasAContract) {
  Deck deck = find_deck("cpu");
  for (const Lane lane : {Lane::sealed, Lane::host, Lane::python}) {
    deck.lanes = {std::string(name_of(lane))};
    EXPECT_GT(render_prompt(with_prompt("{{lanes}}"), deck).size(), 500u) << name_of(lane);
  }
}

TEST(Prompt, CheckNamesProblemAndDeck) {
  const std::string text = rendered("{{check}}", "cpu-tiny");
  for (const char* verb : {"check", "bench", "grade"})
    EXPECT_THAT(text, HasSubstr(fmt::format("kbh {} my --problem 05_topk --deck cpu-tiny", verb)));
}

TEST(Prompt, TextsThatLookLikePlaceholdersAreLeftAlone) {
  Problem problem = with_prompt("{{domain}} {x}");
  problem.domain = "{{check}}";
  EXPECT_EQ(render_prompt(problem, find_deck("cpu")), "{{check}} {x}\n");
}

TEST(Prompt, EveryProblemsPromptHoldsEveryPlaceholder) {
  for (const Problem& problem : all_problems())
    for (const std::string_view name : kPromptPlaceholders)
      EXPECT_THAT(std::string(problem.prompt), HasSubstr(fmt::format("{{{{{}}}}}", name))) << problem.id;
}

TEST(Prompt, EveryProblemsPromptIsFilledOnEveryDeck) {
  for (const std::string& name : deck_names()) {
    const Deck deck = find_deck(name);
    for (const Problem& problem : all_problems()) {
      if (!deck.shapes.contains(problem.id)) continue;
      const std::string text = render_prompt(problem, deck);
      EXPECT_THAT(text, Not(HasSubstr("{{"))) << problem.id << " on " << name;
      EXPECT_EQ(text.find("\n\n\n"), std::string::npos) << problem.id << " on " << name;
      EXPECT_THAT(text, HasSubstr("https://")) << problem.id;
    }
  }
}

TEST(Prompt, ADeckWithoutTheProblemIsRefused) {
  Deck deck = find_deck("cpu");
  deck.shapes.erase("05_topk");
  EXPECT_THROW(render_prompt(with_prompt("{{shapes}}"), deck), Error);
}

TEST(PromptDeathTest, UnknownAndUnclosedPlaceholdersAreProgrammersErrors) {
  EXPECT_DEATH(rendered("{{nonsense}}"), "known placeholders");
  EXPECT_DEATH(rendered("{{ domain }}"), "known placeholders");
  EXPECT_DEATH(rendered("{{domain"), "closed");
}

}  // namespace
}  // namespace kbh
