#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grade/stages.hpp"
#include "problem/registry.hpp"
#include "report/printable.hpp"
#include "report/table.hpp"

namespace kbh {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Printable, EscapeSequencesLoseTheirTeeth) {
  EXPECT_EQ(printable("\033[2J\033]0;title\007 caf\xC3\xA9\tok\n"), "?[2J?]0;title? caf\xC3\xA9\tok?");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "?31m");  // the one-character form of ESC [
}

TEST(Table, ColumnsAreAsWideAsTheirContent) {
  const Table table{{"name", "us"}, {Align::left, Align::right}, {{"a", "1.0"}, {"\xC3\xA9\xC3\xA9long", "22.5"}}};
  EXPECT_EQ(table.text(), "name      us\n------  ----\na        1.0\n\xC3\xA9\xC3\xA9long  22.5\n");
}

Grade failed_grade() {
  Grade grade;
  grade.verdict = Verdict::crashed;
  grade.options.level = sandbox::Level::none;
  grade.submission.origin = "mine";
  grade.finding = Finding{Verdict::crashed, Stage::check, "killed by signal 11", {"it printed: \033[31mPASS"}, "look"};
  return grade;
}

TEST(GradeText, SaysWhatHappenedAndWhatNext) {
  const std::string text =
      grade_text(failed_grade(), find_problem("05"), find_deck("cpu-tiny"), "runs/x/grade.json", false);
  EXPECT_THAT(text, HasSubstr("verdict: crashed"));
  EXPECT_THAT(text, HasSubstr("killed by signal 11 (check stage)"));
  EXPECT_THAT(text, HasSubstr("next: look"));
  EXPECT_THAT(text, HasSubstr("NOT SANDBOXED"));
  EXPECT_THAT(text, HasSubstr("record: runs/x/grade.json"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
}

/// A machine of round numbers: 100 GB/s from memory, 50 GB/s cold, 10 us to wake a pool.
cpu::Ceilings round_ceilings() {
  cpu::Ceilings c;
  c.llc_bytes = 1 << 20;
  for (const std::int64_t bytes : {std::int64_t{1} << 18, std::int64_t{1} << 24, std::int64_t{1} << 28})
    c.bandwidth.push_back({bytes, 100, 100, 100, 50});
  c.peak_gflops = {{"fp32", 1000}};
  c.call_floor_us = 10;
  return c;
}

TimingReport timing_of(double median_us, double batch_us, double grader_us) {
  ShapeTiming t;
  t.shape = find_deck("cpu").shapes_of(find_problem("05")).front().shape;
  t.median_us = median_us;
  t.batch_us = batch_us;
  t.grader_us = grader_us;
  // Memory and clock were at their best throughout: 16 MiB read at the ceiling.
  t.memory_bytes = 1 << 24;
  t.memory_us = static_cast<double>(t.memory_bytes) / 50 * 1e-3;
  Sample sample;
  sample.probe_ns = 1000;
  sample.memory_us = t.memory_us;
  t.samples = {sample};
  TimingReport report;
  report.shapes = {t};
  return report;
}

Score score_of(const TimingReport& timing) {
  return score_stage(find_deck("cpu"), find_problem("05"), timing, limits_of(round_ceilings()));
}

TEST(Score, FractionsAreTimesAtThePeakOverTheMeasuredTime) {
  const Score score = score_of(timing_of(1000, 900, 1010));
  const ShapeScore& s = score.shapes.front();
  const double bytes = find_problem("05").work(s.shape).min_bytes;
  EXPECT_DOUBLE_EQ(s.time_us, 1000);
  EXPECT_FALSE(s.bounded);
  EXPECT_NEAR(s.gbs, bytes / 1e-3 * 1e-9, 1e-9);
  EXPECT_NEAR(s.roofline_fraction, bytes / 100e9 / 1e-3, 1e-6);
  EXPECT_NEAR(s.attainable_fraction, (10e-6 + bytes / 50e9) / 1e-3, 1e-6);
  EXPECT_EQ(score.relative_to, "this machine");
}

TEST(Score, AClaimBelowTheGradersClockDoesNotCount) {
  EXPECT_DOUBLE_EQ(score_of(timing_of(100, 900, 1010)).shapes.front().time_us, 899);  // the slope
  EXPECT_DOUBLE_EQ(score_of(timing_of(100, 0, 1010)).shapes.front().time_us, 1009);   // no slope: the samples' floor
  EXPECT_DOUBLE_EQ(score_of(timing_of(1000, 5000, 1010)).shapes.front().time_us,
                   1009);  // a busy machine's slope does not punish
  EXPECT_TRUE(score_of(timing_of(100, 900, 1010)).shapes.front().bounded);
}

TEST(Score, FasterThanTheCeilingSaysStale) { EXPECT_TRUE(score_of(timing_of(1, 1, 1)).ceilings_stale); }

TEST(Audit, DisagreeingClocksAreSuspect) {
  TimingReport timing = timing_of(10, 9, 500);
  EXPECT_FALSE(audit_stage(timing).has_value());
  timing.shapes.front().clocks_agree = false;
  const auto finding = audit_stage(timing);
  ASSERT_TRUE(finding.has_value());
  EXPECT_EQ(finding->verdict, Verdict::suspect);
  EXPECT_THAT(finding->details.front(), HasSubstr("500.0 us"));
}

}  // namespace
}  // namespace kbh
