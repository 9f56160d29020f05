#include "deck/prompt.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "base/error.hpp"

namespace kbh {
namespace embedded {
extern const std::string_view deck_lanes_md;  // NOLINT(readability-identifier-naming): after its file
}
namespace {

using Values = std::map<std::string_view, std::string>;

std::string hardware_of(const Deck& deck) {
  if (deck.device == "cpu") return "the processors of the machine that grades";
  return deck.arch.empty() ? deck.title : fmt::format("{} ({})", deck.title, deck.arch);
}

std::string shapes_of(const Problem& problem, const Deck& deck) {
  std::string text;
  for (const DeckShape& s : deck.shapes_of(problem)) text += fmt::format("- {}\n", s.shape.text());
  return text;
}

std::string tensors_of(const Problem& problem, const Shape& shape) {
  std::string text = fmt::format("| tensor | role | dtype | sizes at {} |\n|---|---|---|---|\n", shape.text());
  for (const TensorSpec& t : problem.tensors(shape))
    text +=
        fmt::format("| `{}` | {} | {} | {} |\n", t.name, name_of(t.role), name_of(t.dtype), fmt::join(t.dims, ", "));
  return text;
}

std::string forbidden_of(const Problem& problem) {
  std::string text;
  for (const std::string& name : problem.forbidden) text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

/// The body below the heading of one lane, without the empty lines around it.
std::string_view lane_text(std::string_view lane) {
  const std::string_view text = embedded::deck_lanes_md;
  const std::string heading = fmt::format("\n## {}\n\n", lane);
  const std::size_t at = text.find(heading);
  expect(at != std::string_view::npos, "lanes.md has a heading for every lane");
  const std::string_view body = text.substr(at + heading.size());
  const std::string_view own = body.substr(0, body.find("\n## "));
  return own.substr(0, own.find_last_not_of('\n') + 1);
}

std::string lanes_of(const Deck& deck) {
  std::string text;
  for (const std::string& lane : deck.lanes)
    text += fmt::format("{}**Lane `{}`.** {}\n", text.empty() ? "" : "\n", lane, lane_text(lane));
  return text;
}

std::string check_of(const Problem& problem, const Deck& deck) {
  return fmt::format(
      "Your submission is a folder, here `my`:\n\n"
      "    kbh check my --problem {0} --deck {1}             # right? every shape with every case, nothing timed\n"
      "    kbh bench my --problem {0} --deck {1} --shape 0   # how fast is one shape?\n"
      "    kbh grade my --problem {0} --deck {1}             # everything, with the score\n\n"
      "A call is timed cold: caches are flushed, and inputs and outputs lie at other addresses with new contents. Each "
      "timed "
      "output is compared like any other. The median counts. Other shapes inside the domain are checked too, never "
      "timed.\n",
      problem.id, deck.name);
}

std::string trimmed(std::string text) {
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

std::string fill(std::string_view text, const Values& values) {
  std::string filled;
  for (;;) {
    const std::size_t open = text.find("{{");
    filled += text.substr(0, open);
    if (open == std::string_view::npos) return filled;
    const std::size_t close = text.find("}}", open);
    expect(close != std::string_view::npos, "a placeholder of prompt.md is closed");
    const auto value = values.find(text.substr(open + 2, close - open - 2));
    expect(value != values.end(), "prompt.md has known placeholders only");
    filled += trimmed(value->second);
    text.remove_prefix(close + 2);
  }
}

}  // namespace

std::string render_prompt(const Problem& problem, const Deck& deck) {
  const Shape& first = deck.shapes_of(problem).front().shape;
  const Values values = {
      {"hardware", hardware_of(deck)}, {"shapes", shapes_of(problem, deck)}, {"tensors", tensors_of(problem, first)},
      {"domain", problem.domain},      {"tolerance", problem.tolerance},     {"forbidden", forbidden_of(problem)},
      {"lanes", lanes_of(deck)},       {"check", check_of(problem, deck)},
  };
  expect(values.size() == kPromptPlaceholders.size(), "every placeholder has a value");
  return trimmed(fill(problem.prompt, values)) + "\n";
}

}  // namespace kbh
