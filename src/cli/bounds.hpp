// kbh problems --deck NAME: what physics leaves to any kernel, per problem and shape.
#pragma once

#include "cli/cli.hpp"
#include "deck/deck.hpp"

namespace kbh::cli {

/// Prints the bounds of all problems with shapes on the deck, as a table or as a kbh.bounds/1 document. On a deck with
/// measured peaks they follow from this machine's cached ceilings; without those, only work is printed.
int print_bounds(const Deck& deck, bool json);

}  // namespace kbh::cli
