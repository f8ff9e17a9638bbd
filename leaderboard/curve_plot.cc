#include "leaderboard/curve_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>

namespace doppler {
namespace {

constexpr double kWidth = 1240;
constexpr double kHeight = 480;
constexpr double kTop = 60;
constexpr double kBottom = 420;
constexpr double kPanelWidth = 400;
constexpr double kLegend = 960;     // where it begins
constexpr double kLeast = 1e-4;     // of the shown excess
constexpr double kLineHeight = 20;  // of the legend

// Okabe, Ito, "Color Universal Design", 2008, without black and yellow.
constexpr std::array kColours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                 "#e69f00", "#56b4e9", "#666666"};
constexpr std::array kDashes = {"", "7 3", "2 3", "7 3 2 3"};

std::string number(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.2f", value);
  return buffer.data();
}

std::string short_number(double value) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%g", value);
  return buffer.data();
}

std::string escaped(std::string_view text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '&':
        result += "&amp;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

double position(const Improvement& point, CurveAxis axis) {
  return axis == CurveAxis::evaluations ? static_cast<double>(point.evaluations) : point.seconds;
}

// A logarithmic scale over whole decades, onto [from, to] of the picture.
class LogScale {
 public:
  LogScale(double least, double largest, double from, double to)
      : low_(std::floor(std::log10(least))), high_(std::ceil(std::log10(largest))), from_(from) {
    if (high_ <= low_) high_ = low_ + 1;
    per_decade_ = (to - from) / (high_ - low_);
  }
  [[nodiscard]] double operator()(double value) const {
    const double decade = value > 0 ? std::log10(value) : low_;
    return from_ + per_decade_ * (std::clamp(decade, low_, high_) - low_);
  }
  [[nodiscard]] std::vector<double> decades() const {
    std::vector<double> values;
    for (double decade = low_; decade <= high_; ++decade) values.push_back(std::pow(10, decade));
    return values;
  }

 private:
  double low_;
  double high_;
  double from_;
  double per_decade_;
};

struct Line {
  std::string colour;
  std::string dash;
  std::string label;
  const ResultSummary* summary = nullptr;
};

// Colours by agent, dashes by the rank of the budget among the agent's.
std::vector<Line> lines_of(std::span<const ResultSummary> summaries) {
  std::map<std::string, std::set<std::int64_t, std::greater<>>> budgets;
  for (const ResultSummary& summary : summaries) {
    budgets[summary.agent].insert(summary.max_evaluations);
  }
  std::vector<Line> lines;
  for (const ResultSummary& summary : summaries) {
    const auto agent = budgets.find(summary.agent);
    const auto colour = static_cast<std::size_t>(std::distance(budgets.begin(), agent));
    const auto dash = static_cast<std::size_t>(
        std::distance(agent->second.begin(), agent->second.find(summary.max_evaluations)));
    Line line{.colour = kColours[colour % kColours.size()],
              .dash = kDashes[std::min(dash, kDashes.size() - 1)],
              .label = summary.agent,
              .summary = &summary};
    if (summary.max_evaluations > 1) {
      line.label += ", " + std::to_string(summary.max_evaluations);
      if (std::isfinite(summary.max_seconds)) {
        line.label += ", " + short_number(summary.max_seconds) + " s";
      }
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

double best_of(std::span<const ResultSummary> summaries) {
  double best = summaries.front().least_makespan;
  for (const ResultSummary& summary : summaries) best = std::min(best, summary.least_makespan);
  return best;
}

class Picture {
 public:
  explicit Picture(std::span<const ResultSummary> summaries)
      : lines_(lines_of(summaries)), best_(best_of(summaries)) {
    for (const ResultSummary& summary : summaries) {
      for (const ResultRow* row : summary.rows) {
        n_seeds_ = std::max(n_seeds_, summary.rows.size());
        for (const Improvement& point : row->curve) {
          if (std::isfinite(point.makespan)) largest_ = std::max(largest_, excess(point.makespan));
        }
      }
    }
    begin(summaries.front().task);
    panel(70, CurveAxis::evaluations, "evaluations");
    panel(540, CurveAxis::seconds, "seconds");
    legend();
    text_ += "</svg>\n";
  }

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  [[nodiscard]] double excess(double makespan) const {
    return best_ > 0 ? makespan / best_ - 1 : 0;
  }

  void begin(const std::string& task) {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " +
            number(kHeight) + "\" font-family=\"sans-serif\" font-size=\"12\">\n" +
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
    write(70, 24, task, "font-size=\"16\"");
    write(70, 44,
          "excess of the best makespan over the least of all rows; median of up to " +
              std::to_string(n_seeds_) + " seeds");
  }

  void panel(double left, CurveAxis axis, const std::string& title) {
    const LogScale y(kLeast, largest_, kBottom, kTop);
    const LogScale x = x_scale(left, axis);
    for (double value : y.decades()) {
      grid(left, y(value), left + kPanelWidth, y(value));
      write(left - 6, y(value) + 4, short_number(100 * value) + " %", "text-anchor=\"end\"");
    }
    for (double value : x.decades()) {
      grid(x(value), kTop, x(value), kBottom);
      write(x(value), kBottom + 18, short_number(value), "text-anchor=\"middle\"");
    }
    write(left + kPanelWidth / 2, kBottom + 40, title, "text-anchor=\"middle\"");
    for (const Line& line : lines_) curve(line, axis, x, y, left + kPanelWidth);
  }

  [[nodiscard]] LogScale x_scale(double left, CurveAxis axis) const {
    double least = std::numeric_limits<double>::infinity();
    double largest = 0;
    for (const Line& line : lines_) {
      for (const auto& [x, makespan] : median_curve(line.summary->rows, axis)) {
        if (x > 0) least = std::min(least, x);
        largest = std::max(largest, x);
      }
    }
    if (!(largest > 0)) least = largest = 1;
    return {least, largest, left, left + kPanelWidth};
  }

  void curve(const Line& line, CurveAxis axis, const LogScale& x, const LogScale& y, double right) {
    auto points = median_curve(line.summary->rows, axis);
    std::erase_if(points, [](const auto& point) { return !std::isfinite(point.second); });
    if (points.empty()) return;
    const std::string stroke = " stroke=\"" + line.colour + "\"";
    if (line.summary->max_evaluations == 1) {
      const double level = y(excess(points[0].second));
      text_ += "<path fill=\"none\" stroke-width=\"0.7\" stroke-dasharray=\"1 4\"" + stroke +
               " d=\"M" + number(x(points[0].first)) + " " + number(level) + "H" + number(right) +
               "\"/>\n<circle r=\"4\" fill=\"" + line.colour + "\" cx=\"" +
               number(x(points[0].first)) + "\" cy=\"" + number(level) + "\"/>\n";
      return;
    }
    text_ += "<path fill=\"none\" stroke-width=\"1.6\"" + stroke + dashes(line) + " d=\"";
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::string px = number(x(points[i].first));
      const std::string py = number(y(excess(points[i].second)));
      text_ += i == 0 ? "M" + px + " " + py : "H" + px + "V" + py;
    }
    text_ += "\"/>\n";
  }

  void legend() {
    write(kLegend, kTop, "agent, budget in evaluations", "font-weight=\"bold\"");
    double y = kTop;
    for (const Line& line : lines_) {
      y += kLineHeight;
      if (line.summary->max_evaluations == 1) {
        text_ += "<circle r=\"4\" fill=\"" + line.colour + "\" cx=\"" + number(kLegend + 14) +
                 "\" cy=\"" + number(y - 4) + "\"/>\n";
      } else {
        text_ += "<path fill=\"none\" stroke-width=\"1.6\" stroke=\"" + line.colour + "\"" +
                 dashes(line) + " d=\"M" + number(kLegend) + " " + number(y - 4) + "h28\"/>\n";
      }
      write(kLegend + 36, y, line.label);
    }
  }

  static std::string dashes(const Line& line) {
    return line.dash.empty() ? "" : " stroke-dasharray=\"" + line.dash + "\"";
  }

  void grid(double x1, double y1, double x2, double y2) {
    text_ += "<path stroke=\"#dddddd\" d=\"M" + number(x1) + " " + number(y1) + "L" + number(x2) +
             " " + number(y2) + "\"/>\n";
  }

  void write(double x, double y, const std::string& words, const std::string& attributes = "") {
    text_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" +
             (attributes.empty() ? "" : " " + attributes) + ">" + escaped(words) + "</text>\n";
  }

  std::vector<Line> lines_;
  double best_;
  double largest_ = 0.1;  // excess that is shown
  std::size_t n_seeds_ = 0;
  std::string text_;
};

}  // namespace

std::vector<std::pair<double, double>> median_curve(std::span<const ResultRow* const> rows,
                                                    CurveAxis axis) {
  std::set<double> positions;
  double first = 0;
  std::vector<double> used;
  for (const ResultRow* row : rows) {
    for (const Improvement& point : row->curve) positions.insert(position(point, axis));
    first = std::max(first, position(row->curve.front(), axis));
    used.push_back(axis == CurveAxis::evaluations ? static_cast<double>(row->evaluations)
                                                  : row->seconds);
  }
  std::vector<std::pair<double, double>> curve;
  std::vector<std::size_t> next(rows.size(), 0);  // the first point of a row beyond x
  for (auto place = positions.lower_bound(first); place != positions.end(); ++place) {
    std::vector<double> makespans;
    for (std::size_t r = 0; r < rows.size(); ++r) {
      const auto& points = rows[r]->curve;
      while (next[r] < points.size() && position(points[next[r]], axis) <= *place) ++next[r];
      makespans.push_back(points[next[r] - 1].makespan);
    }
    const double middle = median(std::move(makespans));
    if (curve.empty() || middle < curve.back().second) curve.emplace_back(*place, middle);
  }
  const double end = median(used);
  if (end > curve.back().first) curve.emplace_back(end, curve.back().second);
  return curve;
}

std::string curves_svg(std::span<const ResultSummary> summaries) {
  return Picture(summaries).text();
}

}  // namespace doppler
