#include "leaderboard/result_summary.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <random>

#include "graphs/error.h"
#include "leaderboard/curve_plot.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ResultRow row_of(const std::string& agent, std::uint64_t seed, double makespan,
                 std::int64_t budget = 100) {
  ResultRow row;
  row.key = {.task = "t", .agent = agent, .seed = seed, .max_evaluations = budget};
  row.evaluations = budget;
  row.seconds = 0.25 * static_cast<double>(seed + 1);
  row.makespan = makespan;
  row.lower_bound = 4;
  row.curve = {{1, 0.01, makespan}};
  return row;
}

TEST_CASE("the median is the middle value, or the mean of two") {
  CHECK(median({3}) == 3);
  CHECK(median({5, 1, 3}) == 3);
  CHECK(median({4, 1, 2, 10}) == 3);
  CHECK(median({1, kInfinity, kInfinity}) == kInfinity);
}

TEST_CASE("rows are summed up by task, agent and budget") {
  std::vector<ResultRow> rows = {row_of("a", 0, 10), row_of("a", 2, 6),       row_of("a", 1, 8),
                                 row_of("b", 0, 5),  row_of("a", 0, 7, 1000), row_of("c", 0, 9)};
  rows.back().makespan = kInfinity;
  const auto summaries = summarise(rows);
  REQUIRE(summaries.size() == 4);
  // By budget, then median.
  CHECK(summaries[0].agent == "b");
  CHECK(summaries[1].agent == "a");
  CHECK(summaries[2].agent == "c");
  CHECK(summaries[3].max_evaluations == 1000);
  const ResultSummary& a = summaries[1];
  CHECK(a.median_makespan == 8);
  CHECK(a.least_makespan == 6);
  CHECK(a.largest_makespan == 10);
  CHECK(a.median_seconds == 0.5);
  CHECK(*a.over_best == Approx(8.0 / 5 - 1));
  CHECK(*a.over_bound == Approx(1));
  CHECK(a.rows[1]->key.seed == 1);
  CHECK(*summaries[0].over_best == 0);
  CHECK(!summaries[2].over_best);
  rows.push_back(rows.front());
  CHECK_THROWS_AS(summarise(rows), InvalidError);
}

// The best makespan of a row after x, looking at every point.
double value_at(const ResultRow& row, double x, CurveAxis axis) {
  double best = kInfinity;
  for (const Improvement& point : row.curve) {
    const double place =
        axis == CurveAxis::seconds ? point.seconds : static_cast<double>(point.evaluations);
    if (place <= x) best = std::min(best, point.makespan);
  }
  return best;
}

TEST_CASE("a median curve has the median of the rows at every x") {
  std::mt19937 luck(1);
  const auto draw = [&](int n) { return std::uniform_int_distribution<int>(1, n)(luck); };
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<ResultRow> rows(static_cast<std::size_t>(draw(5)));
    std::vector<const ResultRow*> pointers;
    for (ResultRow& row : rows) {
      double makespan = 100;
      std::int64_t evaluations = 0;
      for (int i = draw(6); i > 0; --i) {
        evaluations += draw(4);
        makespan -= draw(9);
        row.curve.push_back({evaluations, 0.5 * static_cast<double>(evaluations), makespan});
      }
      row.evaluations = evaluations + draw(3) - 1;
      row.seconds = 0.5 * static_cast<double>(row.evaluations);
      row.makespan = makespan;
      pointers.push_back(&row);
    }
    for (CurveAxis axis : {CurveAxis::evaluations, CurveAxis::seconds}) {
      const auto curve = median_curve(pointers, axis);
      REQUIRE(!curve.empty());
      for (double x = 0.25; x < 30; x += 0.25) {
        std::vector<double> values;
        std::transform(rows.begin(), rows.end(), std::back_inserter(values),
                       [&](const ResultRow& row) { return value_at(row, x, axis); });
        const bool all = *std::max_element(values.begin(), values.end()) < kInfinity;
        CHECK(all == (x >= curve.front().first));
        if (!all) continue;
        const auto next =
            std::upper_bound(curve.begin(), curve.end(), x,
                             [](double value, const auto& point) { return value < point.first; });
        CHECK(std::prev(next)->second == median(values));
      }
    }
  }
}

TEST_CASE("a picture has a line for each agent and budget in each panel and says what it shows") {
  std::vector<ResultRow> rows = {row_of("a<b", 0, 10), row_of("a<b", 1, 8),
                                 row_of("a<b", 0, 8, 1000), row_of("heuristic", 0, 12, 1)};
  rows[0].curve = {{1, 0.01, 20}, {50, 0.1, 10}};
  const auto summaries = summarise(rows);
  const std::string svg = curves_svg(summaries);
  const auto count = [&](const std::string& text) {
    std::size_t n = 0;
    for (auto at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) ++n;
    return n;
  };
  CHECK(svg.starts_with("<svg "));
  CHECK(svg.ends_with("</svg>\n"));
  CHECK(count("stroke-width=\"1.6\"") == 2 * 3);  // two lines, in two panels and the legend
  CHECK(count("<circle") == 3);
  CHECK(count("a&lt;b, 100<") == 1);
  CHECK(count("a&lt;b, 1000<") == 1);
  CHECK(count("a<b") == 0);
  CHECK(count("nan") == 0);
  CHECK(count("inf") == 0);
}

TEST_CASE("a picture is drawn whatever the rows hold") {
  std::vector<ResultRow> rows = {row_of("out", 0, kInfinity)};
  rows[0].makespan = kInfinity;
  CHECK(curves_svg(summarise(rows)).find("nan") == std::string::npos);
  rows = {row_of("zero", 0, 0)};
  rows[0].curve = {{1, 0, 0}};
  CHECK(curves_svg(summarise(rows)).find("nan") == std::string::npos);
}

}  // namespace
}  // namespace doppler
