#include <algorithm>
#include <cmath>
#include <string>

#include "cli/comparison.h"
#include "cli/units.h"

namespace doppler::cli {
namespace {

constexpr double kSide = 320;  // of a plot's square, pixels
constexpr double kMargin = 60;
constexpr int kTicks = 4;

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
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

std::string number(double value) { return fixed(value, 1); }

std::string label(double x, double y, const std::string& text, const std::string& anchor,
                  const std::string& more = "") {
  return "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\" text-anchor=\"" + anchor + "\"" +
         more + ">" + escaped(text) + "</text>\n";
}

// Both axes from 0 to `top` seconds.
struct Frame {
  double left;
  double top_y;
  double top;
  Unit unit;

  [[nodiscard]] double x(double seconds) const { return left + kSide * seconds / top; }
  [[nodiscard]] double y(double seconds) const { return top_y + kSide - kSide * seconds / top; }
};

std::string axes(const Frame& frame, const std::string& title) {
  std::string svg = "<rect x=\"" + number(frame.left) + "\" y=\"" + number(frame.top_y) +
                    "\" width=\"" + number(kSide) + "\" height=\"" + number(kSide) +
                    "\" fill=\"none\" stroke=\"#888\"/>\n";
  svg += "<line x1=\"" + number(frame.x(0)) + "\" y1=\"" + number(frame.y(0)) + "\" x2=\"" +
         number(frame.x(frame.top)) + "\" y2=\"" + number(frame.y(frame.top)) +
         "\" stroke=\"#bbb\"/>\n";
  for (int i = 0; i <= kTicks; ++i) {
    const double seconds = frame.top * i / kTicks;
    const std::string text = fixed(seconds / frame.unit.scale, 0);
    svg += label(frame.x(seconds), frame.y(0) + 16, text, "middle");
    svg += label(frame.left - 6, frame.y(seconds) + 4, text, "end");
  }
  svg += label(frame.left + kSide / 2, frame.top_y - 10, title, "middle");
  svg += label(frame.left + kSide / 2, frame.y(0) + 34, "measured, " + frame.unit.name, "middle");
  const double x = frame.left - 42;
  const double y = frame.top_y + kSide / 2;
  return svg + label(x, y, "simulated, " + frame.unit.name, "middle",
                     " transform=\"rotate(-90 " + number(x) + " " + number(y) + ")\"");
}

std::string title_of(const std::string& when, const Agreement& agreement) {
  return when + ": Spearman " + fixed(agreement.spearman, 3) + ", error " +
         fixed(100 * agreement.mean_relative_error, 1) + " %";
}

}  // namespace

std::string scatter_svg(const ComparisonPlan& plan, const Comparison& comparison) {
  double largest = 0;
  for (const ComparedAssignment& one : comparison.assignments) {
    for (const double seconds : {one.measured, one.before, one.after}) {
      if (std::isfinite(seconds)) largest = std::max(largest, seconds);
    }
  }
  const Unit unit = time_unit(largest, false);
  // A round number of ticks above the largest.
  const double step = std::pow(10, std::floor(std::log10(largest / kTicks)));
  const double top = std::ceil(largest / (kTicks * step)) * kTicks * step;
  const double width = 2 * kSide + 3.5 * kMargin;
  const double height = kSide + 3 * kMargin;
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + number(width) +
                    "\" height=\"" + number(height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  svg += label(width / 2, 24, plan.task.name + " on " + plan.engine, "middle");
  const Frame before{kMargin * 1.2, kMargin, top, unit};
  const Frame after{kSide + 2.6 * kMargin, kMargin, top, unit};
  svg += axes(before, title_of("before calibration", comparison.before));
  svg += axes(after, title_of("after", comparison.after));
  for (const ComparedAssignment& one : comparison.assignments) {
    for (const auto& [frame, seconds] : {std::pair(before, one.before), {after, one.after}}) {
      if (!std::isfinite(seconds)) continue;
      svg += "<circle cx=\"" + number(frame.x(one.measured)) + "\" cy=\"" +
             number(frame.y(seconds)) + "\" r=\"3\" fill=\"#1f77b4\" fill-opacity=\"0.7\"><title>" +
             escaped(one.origin) + "</title></circle>\n";
    }
  }
  return svg + "</svg>\n";
}

}  // namespace doppler::cli
