#include "inspect/elf.hpp"

#include <elf.h>

#include <cstring>
#include <optional>

namespace kbh {
namespace {

template <typename T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string_view section_bytes(std::string_view bytes, const Elf64_Shdr& section) {
  if (section.sh_offset > bytes.size() || section.sh_size > bytes.size() - section.sh_offset) return {};
  return bytes.substr(section.sh_offset, section.sh_size);
}

std::string string_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const std::string_view rest = table.substr(offset);
  return std::string(rest.substr(0, rest.find('\0')));
}

void read_symbols(std::string_view symbols, std::string_view names, ElfCensus& census) {
  for (std::uint64_t at = sizeof(Elf64_Sym); at < symbols.size(); at += sizeof(Elf64_Sym)) {
    const auto symbol = read_at<Elf64_Sym>(symbols, at);
    if (!symbol) return census.problems.emplace_back("a symbol table ends inside an entry"), void();
    const std::string name = string_at(names, symbol->st_name);
    if (name.empty()) continue;
    (symbol->st_shndx == SHN_UNDEF ? census.imported : census.exported).push_back(name);
  }
}

void read_dynamic(std::string_view entries, std::string_view names, ElfCensus& census) {
  for (std::uint64_t at = 0; at < entries.size(); at += sizeof(Elf64_Dyn)) {
    const auto entry = read_at<Elf64_Dyn>(entries, at);
    if (!entry || entry->d_tag == DT_NULL) return;
    if (entry->d_tag == DT_NEEDED) census.libraries.push_back(string_at(names, entry->d_un.d_val));
  }
}

}  // namespace

ElfCensus read_elf(std::string_view bytes) {
  ElfCensus census;
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) {
    census.problems.emplace_back("not a 64-bit ELF object");
    return census;
  }
  const auto section = [&](std::uint64_t index) -> std::optional<Elf64_Shdr> {
    if (index >= header->e_shnum || header->e_shoff > bytes.size()) return std::nullopt;
    return read_at<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto s = section(i);
    if (!s) {
      census.problems.emplace_back("the section table goes past the end of the file");
      break;
    }
    if (s->sh_type != SHT_DYNSYM && s->sh_type != SHT_DYNAMIC) continue;
    const auto names = section(s->sh_link);
    if (!names) {
      census.problems.emplace_back("a table without its strings");
      continue;
    }
    if (s->sh_type == SHT_DYNSYM) read_symbols(section_bytes(bytes, *s), section_bytes(bytes, *names), census);
    if (s->sh_type == SHT_DYNAMIC) read_dynamic(section_bytes(bytes, *s), section_bytes(bytes, *names), census);
  }
  return census;
}

}  // namespace kbh
