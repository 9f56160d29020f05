#include "grade/types.hpp"

namespace kbh {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::pass:
      return "pass";
    case Verdict::incorrect:
      return "incorrect";
    case Verdict::build_failed:
      return "build_failed";
    case Verdict::rejected:
      return "rejected";
    case Verdict::crashed:
      return "crashed";
    case Verdict::timed_out:
      return "timed_out";
    case Verdict::suspect:
      return "suspect";
    case Verdict::infra:
      return "infra";
    case Verdict::not_graded:
      return "not_graded";
  }
  return "?";
}

std::string_view name_of(Stage stage) {
  switch (stage) {
    case Stage::admit:
      return "admit";
    case Stage::build:
      return "build";
    case Stage::plan:
      return "plan";
    case Stage::inspect:
      return "inspect";
    case Stage::check:
      return "check";
    case Stage::time:
      return "time";
    case Stage::audit:
      return "audit";
    case Stage::score:
      return "score";
    case Stage::record:
      return "record";
  }
  return "?";
}

}  // namespace kbh
