#include "leaderboard/ranking.h"

#include <limits>

#include "graphs/error.h"
#include "leaderboard/report.h"
#include "tests/leaderboard/small_suite.h"
#include "tests/support/catch.h"

namespace doppler {
namespace {

// Two tasks on which critical-path takes 10 and 100 seconds; bounds 5 and 50.
Suite abstract_suite() {
  return {.name = "abstract",
          .summary = "for tests",
          .seeds = {0, 1},
          .tiers = {{1, 60}, {100, 60}},
          .tasks = {{.name = "a", .n_nodes = 1, .lower_bound = 5, .critical_path = 10},
                    {.name = "b", .n_nodes = 1, .lower_bound = 50, .critical_path = 100}}};
}

// A row with a makespan a task and seed.
VerifiedRow row_of(const std::string& agent, std::int64_t tier,
                   const std::vector<std::vector<double>>& makespans) {
  VerifiedRow row{.row = {.suite = "abstract", .tier = tier, .agent = agent, .kind = "search"},
                  .file = agent + "--" + std::to_string(tier)};
  for (std::size_t t = 0; t < makespans.size(); ++t) {
    row.row.tasks.push_back({.name = std::string(1, static_cast<char>('a' + t))});
    for (std::size_t r = 0; r < makespans[t].size(); ++r) {
      row.row.tasks.back().runs.push_back({.seed = r,
                                           .makespans = {makespans[t][r]},
                                           .evaluations = tier,
                                           .seconds = 2,
                                           .curve = {{1, 1, makespans[t][r]}}});
    }
  }
  return row;
}

const RankEntry& entry_of(const TierRanking& tier, const std::string& agent) {
  for (const RankEntry& entry : tier.entries) {
    if (entry.row->row.agent == agent) return entry;
  }
  FAIL("no entry of " << agent);
  return tier.entries.front();
}

TEST_CASE("scores, gaps and ranks are those of the definitions") {
  const std::vector<VerifiedRow> rows = {row_of("good", 1, {{8, 8}, {80, 80}}),
                                         row_of("mixed", 1, {{7, 9}, {70, 90}}),
                                         row_of("bad", 1, {{20, 22}, {200, 210}})};
  const SuiteRanking ranking = rank(abstract_suite(), rows);
  const TierRanking& tier = ranking.tiers[0];
  const RankEntry& good = entry_of(tier, "good");
  CHECK(good.score == Interval{0.8, 0.8, 0.8});
  CHECK(*good.gap == Approx(0.6));
  CHECK(good.evaluations == 1);
  CHECK(good.seconds == 2);
  CHECK(good.tasks[1].makespan == Interval{80, 80, 80});
  CHECK(*good.tasks[1].gap == Approx(0.6));
  const RankEntry& bad = entry_of(tier, "bad");
  // Scores 2, 2.2, 2, 2.1: the middle two.
  CHECK(bad.score->value == Approx(2.05));
  // 0.7, 0.9, 0.7, 0.9 has the mean 0.8, and an interval around it: a tie with `good`.
  const RankEntry& mixed = entry_of(tier, "mixed");
  CHECK(mixed.score->value == Approx(0.8));
  CHECK(mixed.score->low < 0.8);
  CHECK(good.rank == 1);
  CHECK(mixed.rank == 1);
  CHECK(bad.rank == 3);
  CHECK(tier.entries[2].row->row.agent == "bad");
  // A decision of `mixed` beats one of `good` half of the time, and every one of `bad`.
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(tier.improvement[i][1 - i] == 0.5);
    CHECK(tier.improvement[i][2] == 1);
  }
}

TEST_CASE("a better interval alone makes a better rank") {
  const std::vector<VerifiedRow> rows = {
      row_of("first", 1, {{8, 8}, {80, 80}}), row_of("second", 1, {{8.1, 8.1}, {81, 81}}),
      row_of("third", 1, {{9, 9}, {90, 90}}), row_of("later", 100, {{7, 7}, {70, 70}})};
  const TierRanking tier = rank(abstract_suite(), rows).tiers[0];
  CHECK(entry_of(tier, "first").rank == 1);
  CHECK(entry_of(tier, "second").rank == 2);
  CHECK(entry_of(tier, "third").rank == 3);
}

TEST_CASE("an agent is represented by its row of the largest tier up to the one that is ranked") {
  const std::vector<VerifiedRow> rows = {row_of("heuristic", 1, {{8, 8}, {80, 80}}),
                                         row_of("search", 1, {{9, 9}, {90, 90}}),
                                         row_of("search", 100, {{6, 6}, {60, 60}})};
  const SuiteRanking ranking = rank(abstract_suite(), rows);
  CHECK(ranking.tiers[0].entries.size() == 2);
  CHECK(ranking.tiers[0].entries[0].row->row.agent == "heuristic");
  CHECK(ranking.tiers[1].entries.size() == 2);
  CHECK(ranking.tiers[1].entries[0].row->row.tier == 100);
  CHECK(ranking.tiers[1].entries[1].row->row.tier == 1);
}

TEST_CASE(
    "headroom is the best untaught agent's over the best known; saturated tasks do not count") {
  std::vector<VerifiedRow> rows = {row_of("heuristic", 1, {{8, 8}, {60.5, 60.5}}),
                                   row_of("worse", 1, {{9, 9}, {61, 61}}),
                                   row_of("taught", 1, {{6, 10}, {60, 60}})};
  rows[2].row.training = {.tasks = {{"t", 1, 2}}, .evaluations = 5};
  const SuiteRanking ranking = rank(abstract_suite(), rows);
  const TierRanking& tier = ranking.tiers[0];
  // Task a: 8 over the one decision with 6. Task b: 60.5 over 60 is below 1 %.
  CHECK(*tier.headroom[0].headroom == Approx(8.0 / 6 - 1));
  CHECK(tier.headroom[0].untaught->row.agent == "heuristic");
  CHECK(tier.headroom[0].counts);
  CHECK(*tier.headroom[1].headroom == Approx(60.5 / 60 - 1));
  CHECK(tier.headroom[1].saturated);
  CHECK(!tier.headroom[1].counts);
  CHECK(entry_of(tier, "heuristic").score == Interval{0.8, 0.8, 0.8});
  CHECK(entry_of(tier, "heuristic").score_of_all.value == Approx((0.8 + 0.605) / 2));
  CHECK(ranking.best[0].makespan == 6);
  CHECK(ranking.best[0].seed == 0);
  CHECK(ranking.best[0].row->row.agent == "taught");
}

TEST_CASE("a tier without headroom has no ranks") {
  const std::vector<VerifiedRow> rows = {row_of("one", 1, {{6, 6}, {60, 60}}),
                                         row_of("other", 1, {{7, 7}, {60, 60}})};
  const TierRanking tier = rank(abstract_suite(), rows).tiers[0];
  for (const RankEntry& entry : tier.entries) {
    CHECK(!entry.rank);
    CHECK(!entry.score);
    CHECK_THAT(entry.unranked, Catch::Contains("saturated"));
  }
  CHECK(tier.entries[0].row->row.agent == "one");
}

TEST_CASE("held-out tasks and tasks that some kind may leave out") {
  Suite suite = abstract_suite();
  suite.training.held_out = true;
  suite.tasks[1].exempt = {"learned"};
  std::vector<VerifiedRow> rows = {row_of("fair", 1, {{8, 8}, {80, 80}}),
                                   row_of("taught", 1, {{6, 6}})};
  rows[1].row.kind = "learned";
  rows[1].row.training = {.tasks = {{"a", 1, 2}}, .evaluations = 5, .on_suite_tasks = true};
  const TierRanking tier = rank(suite, rows).tiers[0];
  CHECK(!tier.headroom[1].counts);
  CHECK(entry_of(tier, "fair").rank == 1);
  CHECK(!entry_of(tier, "taught").rank);
  CHECK_THAT(entry_of(tier, "taught").unranked, Catch::Contains("held out"));
}

TEST_CASE("out of memory has a score, and no makespan") {
  const double lack = std::numeric_limits<double>::infinity();
  const std::vector<VerifiedRow> rows = {row_of("lacks", 1, {{lack, lack}, {80, 80}}),
                                         row_of("fits", 1, {{7, 8}, {79, 78}})};
  const SuiteRanking ranking = rank(abstract_suite(), rows);
  const RankEntry& entry = entry_of(ranking.tiers[0], "lacks");
  CHECK(entry.tasks[0].ratio.value == kOutOfMemoryScore);
  CHECK(!entry.tasks[0].gap);
  const nlohmann::ordered_json json = ranking_json(ranking);
  CHECK(json["tiers"][0]["ranking"][1]["tasks"][0]["makespan"]["value"].is_null());
}

TEST_CASE("two rows of one agent and tier are refused") {
  const std::vector<VerifiedRow> rows = {row_of("one", 1, {{6, 6}, {60, 60}}),
                                         row_of("one", 1, {{7, 7}, {60, 60}})};
  CHECK_THROWS_AS(rank(abstract_suite(), rows), InvalidError);
}

TEST_CASE("a report holds schedules and curves, and texts of rows are no markup in it") {
  const Suite& suite = testing::small_suite();
  LeaderboardRows rows;
  rows.verified.push_back({testing::make_row(suite, "heft", 1), "small/heft.json"});
  rows.verified.push_back({testing::make_row(suite, "annealing", 20), "small/a.json"});
  const std::string evil = "</script><script>alert(1)</script>|<!--&";
  rows.verified[0].row.agent = evil;
  rows.verified[0].row.link = "https://example.org/a b)|<";
  rows.failed.push_back({"small", evil, "other", 1, "exact", evil});
  rows.refused.push_back({"x.json", {evil}});
  const std::vector<SuiteRanking> rankings = rank_all(std::span(&suite, 1), rows);
  const auto json = report_json(rankings, rows, {}, "0.1.0");
  for (std::size_t t = 0; t < 2; ++t) {
    CAPTURE(t);
    const auto& schedule = json["rows"][1]["tasks"][t]["schedule"];
    const auto& timeline = json["timelines"][schedule["timeline"].get<std::string>()];
    Task task = make_suite_task(suite.tasks[t]);
    REQUIRE(timeline["start"].size() == task.graph.n_nodes());
    const auto seed = schedule["seed"].get<std::size_t>();
    const SubmissionRun& run = rows.verified[1].row.tasks[t].runs[seed];
    task.options.record_timeline = true;
    task.options.seed = suite.first_luck;
    const Execution execution = task.simulator().run(run.assignment);
    CHECK(timeline["makespan"] == execution.makespan);
    CHECK(timeline["makespan"] == run.makespans[0]);
    for (std::size_t v = 0; v < task.graph.n_nodes(); ++v) {
      CHECK(timeline["device"][v] == run.assignment.devices[v].value);
      CHECK(std::abs(timeline["end"][v].get<double>() / 100000 -
                     execution.nodes[v].end / execution.makespan) < 1e-5);
    }
    const auto& graph = json["graphs"][json["suites"][0]["tasks"][t]["hash"].get<std::string>()];
    CHECK(graph["devices"].size() == 4);
    CHECK(graph["nodes"].size() == task.graph.n_nodes());
    const std::size_t kind = graph["kind"].back();
    CHECK(graph["kinds"][kind] == task.graph.kind(NodeId(task.graph.n_nodes() - 1)));
  }
  CHECK(json["schedules"]["left_out"] == 0);

  const std::string page = report_page(json);
  CHECK(page.find(evil) == std::string::npos);
  CHECK(page.find("alert(1)</script>") == std::string::npos);
  const std::size_t begin = page.find("id=\"report\">") + std::string("id=\"report\">").size();
  const std::string held = page.substr(begin, page.find("</script>", begin) - begin);
  CHECK(nlohmann::ordered_json::parse(held) == json);
  CHECK(page.find("{{") == std::string::npos);

  const std::string markdown = report_markdown(rankings, rows);
  CHECK(markdown.find("<script>") == std::string::npos);
  CHECK_THAT(markdown, Catch::Contains("(https://example.org/a%20b%29%7C%3C)"));
  CHECK_THAT(markdown, Catch::Contains("## Failed"));
  CHECK_THAT(markdown, Catch::Contains("### Headroom"));
}

TEST_CASE("a report is bounded: schedules of the best rows, thinned curves") {
  const Suite& suite = testing::small_suite();
  LeaderboardRows rows;
  rows.verified.push_back({testing::make_row(suite, "round-robin", 1), "small/r.json"});
  rows.verified.push_back({testing::make_row(suite, "rule-search", 20), "small/s.json"});
  rows.verified[1].row.tasks[0].runs[0].curve.clear();
  for (std::int64_t i = 1; i <= 1000; ++i) {
    rows.verified[1].row.tasks[0].runs[0].curve.push_back(
        {i, 1e-3 * static_cast<double>(i), 1234.56789 / static_cast<double>(i)});
  }
  const std::vector<SuiteRanking> rankings = rank_all(std::span(&suite, 1), rows);
  const std::int64_t n_nodes = suite.tasks[0].n_nodes + suite.tasks[1].n_nodes;
  const auto json = report_json(rankings, rows, {}, "0.1.0",
                                {.timelines = {.max_nodes = n_nodes}, .max_curve_points = 10});
  // The better row has its schedules, whatever the order of the files.
  for (std::size_t t = 0; t < 2; ++t) {
    CHECK(json["rows"][0]["tasks"][t]["schedule"].is_null());
    CHECK(json["rows"][1]["tasks"][t]["schedule"].is_object());
  }
  CHECK(json["schedules"]["left_out"] == 2);
  const auto& curve = json["rows"][1]["tasks"][0]["runs"][0]["curve"];
  REQUIRE(curve.size() == 10);
  CHECK(curve[0] == nlohmann::ordered_json::parse("[1, 0.001, 1234.57]"));
  CHECK(curve[9] == nlohmann::ordered_json::parse("[1000, 1.0, 1.23457]"));
  const auto none =
      report_json(rankings, rows, {}, "0.1.0", {.timelines = {.max_nodes_of_one = 10}});
  CHECK(none["timelines"].empty());
  CHECK(none["graphs"].empty());
}

}  // namespace
}  // namespace doppler
