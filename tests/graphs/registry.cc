// Names with arguments, their schemas, and suggestions for misspelt names.
#include "graphs/registry.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace doppler {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Names = std::vector<std::string>;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::vector<ParameterSpec> kSchema = {
    {.name = "n",
     .summary = "size",
     .default_value = std::int64_t{8},
     .minimum = 1,
     .maximum = 100},
    {.name = "rate", .summary = "rate", .default_value = 0.5, .minimum = 0},
    {.name = "fast", .summary = "speed", .default_value = false},
    {.name = "order",
     .summary = "order",
     .default_value = std::string("fifo"),
     .choices = {"fifo", "random"}},
    {.name = "label", .summary = "label", .default_value = std::string()}};

Parameters parameters(const std::string& text) { return {kSchema, NamedCall::parse(text)}; }

TEST_CASE("A call is a name, positional values and named values") {
  CHECK(NamedCall::parse("ffnn") == NamedCall{"ffnn", {}, {}});
  CHECK(NamedCall::parse(" ffnn ( ) ") == NamedCall{"ffnn", {}, {}});
  CHECK(NamedCall::parse("uniform(8)") == NamedCall{"uniform", {"8"}, {}});
  CHECK(NamedCall::parse("llama-stack( layers = 4 , x=1)") ==
        NamedCall{"llama-stack", {}, Pairs{{"layers", "4"}, {"x", "1"}}});
  CHECK(NamedCall::parse("a(1, -2.5e-3 ,k=)") ==
        NamedCall{"a", {"1", "-2.5e-3"}, Pairs{{"k", ""}}});
}

TEST_CASE("Values of a call hold balanced parentheses and brackets") {
  CHECK(NamedCall::parse("cuda(gpus=[0,0,1,1],x=2)") ==
        NamedCall{"cuda", {}, Pairs{{"gpus", "[0,0,1,1]"}, {"x", "2"}}});
  CHECK(NamedCall::parse("a(f(1,2=3),g=h(i(j),k))") ==
        NamedCall{"a", {"f(1,2=3)"}, Pairs{{"g", "h(i(j),k)"}}});
  for (const char* text :
       {"a(", "a((1)", "a(1))", "a)", "a(1)b", "a(1", "a(b(c)", "a(1)(2)", "a([1,2)"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(NamedCall::parse(text), UsageError);
  }
}

TEST_CASE("A syntax mistake in a call is told with its column") {
  for (const char* text :
       {"", "  ", "(1)", "a(,)", "a(1,)", "a(1,,2)", "a(=1)", "a(k=1,2)", "a b"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(NamedCall::parse(text), UsageError);
  }
  CHECK(holds(message_of([] { NamedCall::parse("abc(1,,2)"); }), "'abc(1,,2)', column 7:"));
  CHECK(holds(message_of([] { NamedCall::parse("abc(k=1,2)"); }), "column 9:"));
  CHECK(holds(message_of([] { NamedCall::parse("abc!"); }), "column 4:"));
  CHECK(message_of([] { NamedCall::parse(std::string(100000, '(')); }).size() < 300);
}

TEST_CASE("Parameters take defaults, positional values in order, and named values") {
  const Parameters defaults = parameters("w");
  CHECK(defaults.get<std::int64_t>("n") == 8);
  CHECK(defaults.get<double>("rate") == 0.5);
  CHECK_FALSE(defaults.get<bool>("fast"));
  CHECK(defaults.get<std::string>("order") == "fifo");
  CHECK_FALSE(defaults.given("n"));

  const Parameters given = parameters("w(16, 1e-3, order=random, fast=true)");
  CHECK(given.get<std::int64_t>("n") == 16);
  CHECK(given.get<double>("rate") == 1e-3);
  CHECK(given.get<bool>("fast"));
  CHECK(given.get<std::string>("order") == "random");
  CHECK(given.given("rate"));
  CHECK_FALSE(given.given("label"));
  CHECK(given == parameters("w(order=random,fast=true,rate=0.001,n=16)"));
}

TEST_CASE("The canonical spelling has the given parameters in schema order and reads back") {
  CHECK(parameters("w").canonical() == "w");
  CHECK(parameters("w()").canonical() == "w");
  CHECK(parameters(" w( order = random , n = 8 )").canonical() == "w(n=8,order=random)");
  CHECK(parameters("w(7,1000000)").canonical() == "w(n=7,rate=1000000)");
  CHECK(parameters("w(label=f(x,y),rate=0.1,fast=false)").canonical() ==
        "w(rate=0.1,fast=false,label=f(x,y))");
  for (const char* text : {"w(n=3,rate=0.30000000000000004)", "w(rate=1e300)", "w(rate=5e-324)",
                           "w(label=)", "w(label=a=b)"}) {
    CAPTURE(text);
    CHECK(parameters(parameters(text).canonical()) == parameters(text));
  }
}

TEST_CASE("Values of the wrong type, out of range or not among the choices are refused") {
  for (const char* text :
       {"w(n=0)", "w(n=101)", "w(n=1.5)", "w(n=1e2)", "w(n=)", "w(n=x)", "w(n=+1)", "w(n=0x10)",
        "w(n=99999999999999999999)", "w(rate=-1)", "w(rate=nan)", "w(rate=inf)", "w(rate=1e999)",
        "w(rate=0.5s)", "w(fast=1)", "w(fast=True)", "w(order=FIFO)", "w(order=)"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parameters(text), UsageError);
  }
  CHECK(message_of([] { parameters("w(n=0)"); }) ==
        "w: parameter 'n' is '0'; it must be a whole number from 1 to 100");
  CHECK(message_of([] { parameters("w(rate=-1)"); }) ==
        "w: parameter 'rate' is '-1'; it must be a number of at least 0");
  CHECK(message_of([] { parameters("w(order=lifo)"); }) ==
        "w: parameter 'order' is 'lifo'; it must be one of fifo, random");
  CHECK(parameters("w(n=1)").get<std::int64_t>("n") == 1);
  CHECK(parameters("w(n=100)").get<std::int64_t>("n") == 100);
}

TEST_CASE("A parameter given twice, too many values and unknown parameters are refused") {
  CHECK(message_of([] { parameters("w(n=1,n=2)"); }) ==
        "w: parameter 'n' is given twice; leave one out");
  CHECK_THROWS_AS(parameters("w(1,n=1)"), UsageError);
  CHECK_THROWS_AS(parameters("w(1,2,true,fifo,x,6)"), UsageError);
  CHECK(holds(message_of([] { parameters("w(ordr=fifo)"); }), "did you mean order?"));
  CHECK_THROWS_AS(Parameters({}, NamedCall::parse("w(1)")), UsageError);
  CHECK_THROWS_AS(Parameters({}, NamedCall::parse("w(n=1)")), UsageError);
}

TEST_CASE("Asking for a parameter or type that a schema does not have is a logic error") {
  CHECK_THROWS_AS(parameters("w").get<bool>("speed"), std::logic_error);
  CHECK_THROWS_AS(parameters("w").get<double>("n"), std::logic_error);
  CHECK_THROWS_AS(parameters("w").given("speed"), std::logic_error);
}

// Edit distance by its recursive definition, for short words.
std::size_t slow_distance(const std::string& a, const std::string& b) {
  if (a.empty() || b.empty()) return a.size() + b.size();
  const std::string a1 = a.substr(1);
  const std::string b1 = b.substr(1);
  std::size_t best = slow_distance(a1, b1) + (a[0] == b[0] ? 0 : 1);
  best = std::min({best, slow_distance(a1, b) + 1, slow_distance(a, b1) + 1});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, slow_distance(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST_CASE("Nearest names come by edit distance and leave out what is no slip") {
  const Names names = {"chainmm",     "ffnn",        "ffnn-train", "llama-block",
                       "llama-layer", "llama-stack", "moe"};
  CHECK(nearest_names("chainm", names) == Names{"chainmm"});
  CHECK(nearest_names("hcainmm", names) == Names{"chainmm"});
  CHECK(nearest_names("LLAMA-BLOCK", names).front() == "llama-block");
  CHECK(nearest_names("llama-blok", names).front() == "llama-block");
  CHECK(nearest_names("llama", names) == Names{"llama-block", "llama-layer", "llama-stack"});
  CHECK(nearest_names("resnet", names).empty());
  CHECK(nearest_names("", names).empty());
  CHECK(nearest_names(std::string(1000000, 'a'), names).empty());

  // Against the definition: every word of up to four letters a, b, sorted by distance.
  Names words = {"a", "b"};
  for (std::size_t i = 0; i < 14; ++i) {
    words.push_back(words[i] + "a");
    words.push_back(words[i] + "b");
  }
  for (const std::string& word : words) {
    Names candidates = words;
    const auto key = [&](const std::string& w) { return std::pair(slow_distance(word, w), w); };
    std::sort(candidates.begin(), candidates.end(),
              [&](const auto& x, const auto& y) { return key(x) < key(y); });
    candidates.resize(1);
    CHECK(nearest_names(word, words).front() == candidates.front());
    for (const std::string& near : nearest_names(word, words)) {
      if (word.size() < 3) CHECK(slow_distance(word, near) <= 1);
    }
  }
}

struct Thing : Description {};

TEST_CASE(
    "A registry refuses names that are taken or empty and lists the nearest for unknown ones") {
  Registry<Thing> registry("workload");
  for (const char* name : {"moe", "ffnn", "chainmm"}) {
    Thing thing;
    thing.name = name;
    registry.add(thing);
  }
  CHECK(registry.names() == Names{"chainmm", "ffnn", "moe"});
  CHECK(registry.size() == 3);
  CHECK(registry.at("moe").name == "moe");
  CHECK(registry.contains("ffnn"));
  CHECK_FALSE(registry.contains("fnn"));
  Thing again;
  CHECK_THROWS_AS(registry.add(again), UsageError);
  again.name = "moe";
  CHECK_THROWS_AS(registry.add(again), UsageError);
  CHECK(message_of([&] { (void)registry.at("fnn"); }) ==
        "unknown workload 'fnn'; did you mean ffnn? known: chainmm, ffnn, moe");
  CHECK(message_of([&] { (void)registry.at("resnet"); }) ==
        "unknown workload 'resnet'; known: chainmm, ffnn, moe");
  CHECK(message_of([&] { (void)registry.at(std::string(100000, 'x')); }).size() < 200);
}

}  // namespace
}  // namespace doppler
