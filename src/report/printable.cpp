#include "report/printable.hpp"

namespace kbh {

std::string printable(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = (byte < 0x20 && byte != '\t') || byte == 0x7F;
    // U+0080..U+009F are control characters too; in UTF-8 they are C2 80 .. C2 9F.
    const bool c1 = byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (c1) ++i;
    safe += control || c1 ? '?' : text[i];
  }
  return safe;
}

}  // namespace kbh
