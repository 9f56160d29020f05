#include "inspect/cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace kbh {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr unsigned char kEntry = 0x10;  // st_other of a kernel

// Attributes of .nv.info: a format byte, an attribute byte, and two bytes that are the value or, for format 4, the size
// of what follows. As nvcc 13.0 writes them; the numbers are those that public disassemblers know.
constexpr std::uint8_t kSized = 4;
constexpr std::uint8_t kParameterInfo = 0x17;
constexpr std::uint8_t kFrameSize = 0x11;      // bytes of a thread's local memory
constexpr std::uint8_t kRegisterCount = 0x2f;  // per thread

template <typename T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

struct Section {
  Elf64_Shdr header{};
  std::string name;
  std::string_view bytes;  // empty for NOBITS
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  Cubin run() {
    const auto header = read_at<Elf64_Ehdr>(bytes_, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64 ||
        header->e_machine != kMachineCuda)
      return problem("not a cubin"), std::move(cubin_);
    cubin_.flags = header->e_flags;
    read_sections(*header);
    for (const Section& s : sections_)
      if (s.header.sh_type == SHT_SYMTAB) read_symbols(s);
    for (CubinKernel& kernel : cubin_.kernels) describe(kernel);
    if (const Section* info = section(".nv.info")) read_resources(info->bytes);
    for (const Section& s : sections_)
      if (s.name == ".nv.global" || s.name == ".nv.global.init") cubin_.writable_bytes += s.header.sh_size;
    return std::move(cubin_);
  }

 private:
  void problem(std::string what) { cubin_.problems.push_back(std::move(what)); }

  [[nodiscard]] std::string_view slice(std::uint64_t offset, std::uint64_t size) {
    if (offset > bytes_.size() || size > bytes_.size() - offset)
      return problem("a section past the end"), std::string_view{};
    return bytes_.substr(offset, size);
  }

  static std::string string_at(std::string_view table, std::uint64_t offset) {
    if (offset >= table.size()) return {};
    const std::string_view rest = table.substr(offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }

  void read_sections(const Elf64_Ehdr& header) {
    for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
      const auto s = read_at<Elf64_Shdr>(bytes_, header.e_shoff + i * sizeof(Elf64_Shdr));
      if (header.e_shoff > bytes_.size() || !s) return problem("the section table goes past the end");
      sections_.push_back({*s, {}, s->sh_type == SHT_NOBITS ? std::string_view{} : slice(s->sh_offset, s->sh_size)});
    }
    if (header.e_shstrndx >= sections_.size()) return problem("no section names");
    for (Section& s : sections_) s.name = string_at(sections_[header.e_shstrndx].bytes, s.header.sh_name);
  }

  void read_symbols(const Section& table) {
    if (table.header.sh_link >= sections_.size()) return problem("a symbol table without names");
    const std::string_view names = sections_[table.header.sh_link].bytes;
    symbol_names_.assign(1, "");
    for (std::uint64_t at = sizeof(Elf64_Sym); at < table.bytes.size(); at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(table.bytes, at);
      if (!symbol) return problem("a symbol table ends inside an entry");
      symbol_names_.push_back(string_at(names, symbol->st_name));
      read_symbol(*symbol, symbol_names_.back());
    }
  }

  void read_symbol(const Elf64_Sym& symbol, const std::string& name) {
    if (name.empty()) return;
    const auto type = ELF64_ST_TYPE(symbol.st_info);
    if (symbol.st_shndx == SHN_UNDEF) {
      cubin_.undefined.push_back(name);
    } else if (type == STT_FUNC && (symbol.st_other & kEntry) != 0) {
      cubin_.kernels.push_back({.name = name});
    } else if (type == STT_OBJECT && symbol.st_shndx < sections_.size() &&
               sections_[symbol.st_shndx].name.starts_with(".nv.global")) {
      cubin_.writable_globals[name] = symbol.st_size;
    }
  }

  [[nodiscard]] const Section* section(const std::string& name) const {
    const auto found =
        std::find_if(sections_.begin(), sections_.end(), [&](const Section& s) { return s.name == name; });
    return found == sections_.end() ? nullptr : &*found;
  }

  void describe(CubinKernel& kernel) {
    if (const Section* text = section(".text." + kernel.name)) {
      kernel.text = text->bytes;
    } else {
      problem("kernel " + kernel.name + " has no instructions");
    }
    if (const Section* shared = section(".nv.shared." + kernel.name)) kernel.static_shared = shared->header.sh_size;
    if (const Section* info = section(".nv.info." + kernel.name)) read_parameters(info->bytes, kernel);
    std::sort(kernel.parameters.begin(), kernel.parameters.end(),
              [](const auto& a, const auto& b) { return a.offset < b.offset; });
  }

  /// Calls visit(attribute, bytes) for every entry of a .nv.info section that holds bytes.
  template <typename Visit>
  void for_each_entry(std::string_view info, Visit visit) {
    for (std::uint64_t at = 0; at + 4 <= info.size();) {
      const auto format = static_cast<std::uint8_t>(info[at]);
      const auto attribute = static_cast<std::uint8_t>(info[at + 1]);
      const std::uint16_t size = *read_at<std::uint16_t>(info, at + 2);
      at += 4;
      if (format != kSized) continue;
      if (at + size > info.size()) return problem("an attribute ends behind its section");
      visit(attribute, info.substr(at, size));
      at += size;
    }
  }

  void read_parameters(std::string_view info, CubinKernel& kernel) {
    for_each_entry(info, [&](std::uint8_t attribute, std::string_view entry) {
      if (attribute != kParameterInfo) return;
      // Index, ordinal and offset, then a word whose upper 14 bits are the size.
      const auto offset = read_at<std::uint16_t>(entry, 6);
      const auto bits = read_at<std::uint32_t>(entry, 8);
      if (!offset || !bits) return problem("a parameter entry of " + kernel.name + " is cut short");
      kernel.parameters.push_back({*offset, *bits >> 18});
    });
  }

  /// What .nv.info says of all functions: pairs of a symbol's number and a value.
  void read_resources(std::string_view info) {
    for_each_entry(info, [&](std::uint8_t attribute, std::string_view entry) {
      if (attribute != kRegisterCount && attribute != kFrameSize) return;
      const auto symbol = read_at<std::uint32_t>(entry, 0);
      const auto value = read_at<std::uint32_t>(entry, 4);
      if (!symbol || !value) return problem("a resource entry is cut short");
      for (CubinKernel& kernel : cubin_.kernels)
        if (*symbol < symbol_names_.size() && symbol_names_[*symbol] == kernel.name)
          (attribute == kRegisterCount ? kernel.registers : kernel.local) = *value;
    });
  }

  std::string_view bytes_;
  std::vector<Section> sections_;
  std::vector<std::string> symbol_names_;  // by number
  Cubin cubin_;
};

}  // namespace

const CubinKernel* Cubin::find(std::string_view name) const {
  const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const CubinKernel& k) { return k.name == name; });
  return found == kernels.end() ? nullptr : &*found;
}

Cubin read_cubin(std::string_view bytes) { return Reader(bytes).run(); }

}  // namespace kbh
