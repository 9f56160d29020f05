#include "inspect/tripwires.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace kbh {
namespace {

struct Tripwire {
  std::string_view kind;
  std::string_view word;
};

constexpr std::array kTripwires = {
    Tripwire{"reads a clock", "clock_gettime"},
    Tripwire{"reads a clock", "gettimeofday"},
    Tripwire{"reads a clock", "rdtsc"},
    Tripwire{"loads code at run time", "dlopen"},
    Tripwire{"loads code at run time", "dlsym"},
    Tripwire{"starts a process", "execve"},
    Tripwire{"starts a process", "fork"},
    Tripwire{"starts a process", "posix_spawn"},
    Tripwire{"starts a process", "popen"},
    Tripwire{"opens files", "fopen"},
    Tripwire{"opens files", "openat"},
    Tripwire{"uses the network", "socket"},
    Tripwire{"inspects processes", "ptrace"},
    Tripwire{"inspects processes", "process_vm_readv"},
    Tripwire{"changes page protection", "mprotect"},
    Tripwire{"ends the process", "_exit"},
    Tripwire{"handles signals", "sigaction"},
    Tripwire{"makes system calls itself", "syscall"},
};

bool is_word_at(std::string_view text, std::size_t at, std::size_t length) {
  const auto part_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  if (at > 0 && part_of_name(text[at - 1])) return false;
  return at + length >= text.size() || !part_of_name(text[at + length]);
}

void label_source(const SourceFile& file, const Tripwire& wire, std::vector<Label>& labels) {
  const std::string_view text = file.content;
  for (std::size_t at = text.find(wire.word); at != std::string_view::npos; at = text.find(wire.word, at + 1)) {
    if (!is_word_at(text, at, wire.word.size())) continue;
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    labels.push_back({std::string(wire.kind), fmt::format("{}:{} ({})", file.path.string(), line, wire.word)});
    return;  // the first place is enough for a reader
  }
}

}  // namespace

std::vector<Label> labels_of(const Submission& submission, const ElfCensus& census) {
  std::vector<Label> labels;
  for (const Tripwire& wire : kTripwires) {
    for (const SourceFile& file : submission.files) label_source(file, wire, labels);
    if (std::find(census.imported.begin(), census.imported.end(), wire.word) != census.imported.end())
      labels.push_back({std::string(wire.kind), fmt::format("import {}", wire.word)});
  }
  return labels;
}

}  // namespace kbh
