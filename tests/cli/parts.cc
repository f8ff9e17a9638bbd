// Statistics, tables, units and messages of the command.
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/statistics.h"
#include "cli/table.h"
#include "cli/units.h"
#include "graphs/error.h"
#include "tests/support/catch.h"

namespace doppler::cli {
namespace {

TEST_CASE("Student's t has the quantiles of printed tables and closed forms") {
  CHECK(student_t_quantile(0.975, 1) == Approx(12.7062047362).epsilon(1e-9));
  CHECK(student_t_quantile(0.975, 2) == Approx(4.30265272991).epsilon(1e-9));
  CHECK(student_t_quantile(0.975, 4) == Approx(2.77644510520).epsilon(1e-9));
  CHECK(student_t_quantile(0.975, 9) == Approx(2.26215716280).epsilon(1e-9));
  CHECK(student_t_quantile(0.975, 29) == Approx(2.04522964213).epsilon(1e-9));
  CHECK(student_t_quantile(0.95, 10) == Approx(1.81246112281).epsilon(1e-9));
  CHECK(student_t_quantile(0.975, 1e6) == Approx(1.95996635682).epsilon(1e-8));
}

TEST_CASE("The interval of a mean follows from its definition") {
  const std::vector<double> values = {1, 2, 3, 4};
  CHECK(mean(values) == 2.5);
  // t(0.975, 3) = 3.182446, s^2 = 5 / 3.
  CHECK(*half_interval_95(values) == Approx(3.182446305 * 0.6454972244).epsilon(1e-8));
  CHECK(*half_interval_95(std::vector<double>{5, 5, 5}) == 0);
  CHECK_FALSE(half_interval_95(std::vector<double>{5}));
  CHECK_FALSE(half_interval_95(std::vector<double>{5, std::numeric_limits<double>::infinity()}));
}

TEST_CASE("A table is as wide as its widest cells") {
  Table table({{"name"}, {"value", Align::right}});
  table.add({"a", "1 ± 2"});
  table.add({"longer", "10"});
  CHECK(table.to_string() == "name    value\na       1 ± 2\nlonger     10\n");
  CHECK_THROWS_AS(table.add({"x"}), std::logic_error);
}

TEST_CASE("Numbers are shown in units that fit") {
  CHECK(seconds_text(2.5) == "2.500 s");
  CHECK(seconds_text(0.0123) == "12.300 ms");
  CHECK(seconds_text(4.5e-5) == "45.000 µs");
  CHECK(seconds_text(0) == "0.000 s");
  const Unit raw = time_unit(173.867e10, true);
  CHECK(with_unit(173.867e10, raw) == "173.867 x 1e10");
  CHECK(time_unit(56.7e10, true).name == "x 1e10");
  CHECK(with_unit(80, time_unit(80, true)) == "80.000 raw");
  CHECK(with_unit(std::numeric_limits<double>::infinity(), raw) == "out of memory");
  CHECK(bytes_text(16e9, false) == "16.00 GB");
  CHECK(bytes_text(12, false) == "12 B");
  CHECK(bytes_text(4e12, true) == "4e+12");
  CHECK(flops_text(3.5e12, false) == "3.50 TFLOP");
}

TEST_CASE("Lists split at commas outside of parentheses") {
  CHECK(split_list("--tasks", "a,b(c=1,d=2)@e,f") ==
        std::vector<std::string>{"a", "b(c=1,d=2)@e", "f"});
  CHECK_THROWS_AS(split_list("--tasks", "a,"), UsageError);
  CHECK_THROWS_AS(split_list("--tasks", "a)"), UsageError);
  CHECK_THROWS_AS(split_list("--tasks", "a(b"), UsageError);
}

TEST_CASE("A message is short and cannot drive a terminal") {
  CHECK(readable_message("a\x1b[31mb\n\n") == "a\\x1b[31mb");
  const std::string longer = readable_message(std::string(5000, 'x'));
  CHECK(longer.size() < 1900);
  CHECK(longer.find("(3200 more characters)") != std::string::npos);
  const std::string wide = readable_message("x" + [] {
    std::string text;
    for (int i = 0; i < 2000; ++i) text += "µ";
    return text;
  }());
  CHECK(wide.substr(1799, 3) == "...");  // a character is never cut in two
}

TEST_CASE("A path that cannot be written is told before the work") {
  CHECK_NOTHROW(check_can_save(""));
  CHECK_NOTHROW(check_can_save("here.json"));
  CHECK_THROWS_AS(check_can_save("/"), RunError);
  CHECK_THROWS_AS(check_can_save("/no/such/folder/file"), RunError);
}

}  // namespace
}  // namespace doppler::cli
