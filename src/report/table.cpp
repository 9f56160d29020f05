#include "report/table.hpp"

#include <cxxabi.h>
#include <fmt/core.h>

#include <algorithm>

#include "report/printable.hpp"

namespace kbh {
namespace {

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return align == Align::left ? text + space : space + text;
}

std::string trimmed(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "\n";
}

constexpr const char* kBold = "\033[1m";
constexpr const char* kGreen = "\033[1;32m";
constexpr const char* kRed = "\033[1;31m";
constexpr const char* kYellow = "\033[1;33m";

class Painter {
 public:
  explicit Painter(bool colour) : colour_(colour) {}
  [[nodiscard]] std::string operator()(const char* code, const std::string& text) const {
    return colour_ ? code + text + "\033[0m" : text;
  }

 private:
  bool colour_;
};

const char* colour_of(Verdict verdict) {
  if (verdict == Verdict::pass || verdict == Verdict::not_graded) return kGreen;
  return verdict == Verdict::suspect || verdict == Verdict::infra ? kYellow : kRed;
}

/// "slice<64>" from a mangled name; the name itself where it is no mangled one.
std::string readable_kernel(const std::string& mangled) {
  int status = 0;
  char* const demangled = abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status);
  std::string text = status == 0 && demangled ? demangled : mangled;
  std::free(demangled);  // NOLINT(cppcoreguidelines-no-malloc): it is malloc's
  const std::size_t anonymous = text.find("(anonymous namespace)::");
  if (anonymous != std::string::npos) text.erase(anonymous, 23);
  if (text.starts_with("void ")) text.erase(0, 5);
  return text.substr(0, text.find('('));
}

/// How the check of one shape went: "pass", "3 of 41 wrong", "not checked".
std::string check_of(const Grade& grade, const Shape& shape) {
  if (!grade.check) return grade.options.mode == Mode::bench ? "timed only" : "not checked";
  int wrong = 0;
  int total = 0;
  for (const CheckedCall& call : grade.check->calls) {
    if (!(call.shape == shape)) continue;
    ++total;
    wrong += call.comparison.pass ? 0 : 1;
  }
  if (total == 0) return "not checked";
  return wrong == 0 ? "pass" : fmt::format("{} of {} wrong", wrong, total);
}

std::string percent(double fraction) { return fmt::format("{:.3f}", fraction); }

Table shape_table(const Grade& grade, const Problem& problem, const Deck& deck) {
  Table table{
      {"shape", "check", "median us", "interval", "GB/s", "upstream", "roofline", "attainable"},
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::right, Align::right},
      {}};
  for (const DeckShape& deck_shape : deck.shapes_of(problem)) {
    std::vector<std::string> row{
        deck_shape.shape.text(), check_of(grade, deck_shape.shape), "-", "-", "-", "-", "-", "-"};
    if (grade.score)
      for (const ShapeScore& s : grade.score->shapes)
        if (s.shape == deck_shape.shape)
          row = {row[0],
                 row[1],
                 fmt::format("{:.1f}", s.time_us),
                 fmt::format("{:.1f} .. {:.1f}", s.machine_interval_us.low, s.machine_interval_us.high),
                 fmt::format("{:.2f}", s.gbs),
                 percent(s.upstream_fraction),
                 percent(s.roofline_fraction),
                 percent(s.attainable_fraction)};
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The launches that a sealed submission planned, one line each.
std::string plan_text(const PlanReport& report) {
  const auto extent = [](const std::array<std::int64_t, 3>& e) {
    return fmt::format("({}, {}, {})", e[0], e[1], e[2]);
  };
  Table table{{"shape", "launch", "grid", "block", "cluster", "shared"},
              {Align::left, Align::left, Align::left, Align::left, Align::left, Align::right},
              {}};
  for (const PlannedShape& s : report.shapes) {
    if (!s.listed) continue;
    std::string shape = s.shape.text();
    for (const sealed::PlanStep& step : s.plan.steps) {
      if (step.zero) continue;
      const sealed::PlanLaunch& l = step.launch;
      const std::string phase = step.phase == sealed::Phase::prepare ? "prepare " : "";
      table.rows.push_back({shape, phase + printable(readable_kernel(l.kernel)), extent(l.grid), extent(l.block),
                            l.cluster[0] > 0 ? extent(l.cluster) : "-", fmt::format("{}", l.shared)});
      shape.clear();
    }
  }
  return table.rows.empty() ? "" : table.text() + "\n";
}

std::string notes_of(const Grade& grade) {
  std::string notes;
  if (grade.score && !grade.score->relative_to.empty())
    notes += fmt::format("fractions are relative to {} (ceilings measured {})\n", grade.score->relative_to,
                         grade.ceilings.value("measured_at", "?"));
  if (grade.score && grade.score->ceilings_stale)
    notes += "ceilings stale: a shape is faster than the measured ceiling even after measuring again\n";
  if (grade.score)
    for (const ShapeScore& s : grade.score->shapes)
      if (s.bounded)
        notes += fmt::format("{}: the grader's own clock ({:.1f} us) counts, the worker claimed less\n", s.shape.text(),
                             s.time_us);
  if (grade.timing)
    for (const ShapeTiming& t : grade.timing->shapes)
      if (t.speed_spread > 0.1)
        notes += fmt::format("the processor's speed moved by {:.0f} % during {}: a busy machine or a changing clock\n",
                             t.speed_spread * 100, t.shape.text());
  if (grade.score)
    for (const ShapeScore& s : grade.score->shapes)
      if (s.memory_share < 0.9)
        notes += fmt::format(
            "memory ran at {:.0f} % of its ceiling around {}: its interval reaches down to a quiet machine\n",
            s.memory_share * 100, s.shape.text());
  if (grade.options.level == sandbox::Level::none)
    notes +=
        "NOT SANDBOXED (--no-sandbox): the submission could read and change anything; this number proves nothing\n";
  if (grade.options.level == sandbox::Level::reduced)
    notes += "sandbox: reduced (Landlock and seccomp, no namespaces)\n";
  if (grade.worker_log_truncated) notes += "the submission printed more than is kept; the rest was dropped\n";
  if (!grade.options.seed.empty()) notes += "the seed was given on the command line: a replay, not a fresh grade\n";
  if (grade.options.partial()) notes += "this is not a grade\n";
  return notes;
}

}  // namespace

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (const std::string& title : header) widths.push_back(width_of(title));
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) text += (i ? "  " : "") + padded(cells[i], widths[i], align[i]);
    return trimmed(text);
  };
  std::string text = line(header);
  std::vector<std::string> rule;
  for (const std::size_t width : widths) rule.emplace_back(width, '-');
  text += line(rule);
  for (const auto& row : rows) text += line(row);
  return text;
}

std::string grade_text(const Grade& grade, const Problem& problem, const Deck& deck, const std::string& record,
                       bool colour) {
  const Painter paint(colour);
  std::string text = paint(
      kBold, fmt::format("{} on deck {}: {}\n\n", problem.id, deck.name, printable(grade.submission.origin.string())));
  if (grade.plan && !grade.check) text += plan_text(*grade.plan);
  if (grade.check || grade.score) text += shape_table(grade, problem, deck).text() + "\n";
  if (grade.score)
    text += fmt::format("geomean: upstream_fraction {:.3f}  roofline_fraction {:.3f}  attainable_fraction {:.3f}\n",
                        grade.score->peak_fraction, grade.score->roofline_fraction, grade.score->attainable_fraction);
  text += notes_of(grade);
  text += "verdict: " + paint(colour_of(grade.verdict), std::string(name_of(grade.verdict))) + "\n";
  if (grade.finding) {
    text += fmt::format("  {} ({} stage)\n", printable(grade.finding->what), name_of(grade.finding->stage));
    for (const std::string& detail : grade.finding->details) text += "    " + printable(detail) + "\n";
    if (!grade.finding->next.empty()) text += "  next: " + grade.finding->next + "\n";
  }
  if (!record.empty()) text += "record: " + record + "\n";
  return text;
}

}  // namespace kbh
