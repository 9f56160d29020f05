// The text that an agent gets: a problem's prompt.md, filled in for one deck.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "deck/deck.hpp"

namespace kbh {

/// What prompt.md may hold, as {{name}}:
///   hardware   what to write for, as a part of a sentence; no peaks: those are looked up, or measured
///   shapes     the timed shapes, a list
///   tensors    a table: name, role, dtype, sizes at the first shape
///   domain     Problem::domain, a paragraph
///   tolerance  Problem::tolerance, a paragraph
///   forbidden  Problem::forbidden, a list within a sentence
///   lanes      the contract of each lane that the deck takes (lanes.md)
///   check      how to check and how to time
inline constexpr std::array<std::string_view, 8> kPromptPlaceholders = {"hardware",  "shapes",    "tensors", "domain",
                                                                        "tolerance", "forbidden", "lanes",   "check"};

/// Markdown that ends with a newline. Error(usage) when the deck has no shapes for the problem. A placeholder of
/// another name, or one that is not closed, is a programmer's error.
std::string render_prompt(const Problem& problem, const Deck& deck);

}  // namespace kbh
