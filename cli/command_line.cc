#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <memory>
#include <sstream>
#include <utility>

#include "cli/output.h"
#include "graphs/error.h"
#include "graphs/registry.h"

namespace doppler::cli {
namespace {

constexpr std::size_t kNameColumn = 34;  // where summaries begin in --help
constexpr int kMostWords = 1 << 20;
constexpr std::size_t kSummaryWidth = 64;
constexpr std::size_t kTextWidth = 96;

// Breaks a text into lines; the parsing library indents them.
std::string wrapped(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::string result;
  std::string word;
  std::size_t column = 0;
  while (words >> word) {
    if (column > 0 && column + 1 + word.size() > width) {
      result += '\n';
      column = 0;
    } else if (column > 0) {
      result += ' ';
      ++column;
    }
    result += word;
    column += word.size();
  }
  return result;
}

const std::string& only(const std::string& name, const std::vector<std::string>& values) {
  if (values.size() != 1) throw UsageError(name + " is given more than once; give it once");
  return values.front();
}

template <class T>
std::string number_text(T value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

template <class T>
T parse_number(const std::string& name, const std::string& text, T minimum, T maximum) {
  constexpr bool whole = std::is_integral_v<T>;
  const std::string what = whole ? "a whole number" : "a number";
  T value{};
  const char* end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, value);
  const bool out_of_range = fault == std::errc::result_out_of_range;
  if (!out_of_range &&
      (fault != std::errc{} || stop != end || std::isnan(static_cast<double>(value)))) {
    throw UsageError(name + ": '" + text + "' is not " + what);
  }
  if (out_of_range || value < minimum || value > maximum) {
    const bool open = maximum == std::numeric_limits<T>::max();
    throw UsageError(name + ": " + text + " is out of range; give " + what + " " +
                     (open ? "of at least " + number_text(minimum)
                           : "from " + number_text(minimum) + " to " + number_text(maximum)));
  }
  return value;
}

template <class Target, class T>
Accept number_into(Target& target, T minimum, T maximum) {
  return
      [&target, minimum, maximum](const std::string& name, const std::vector<std::string>& values) {
        target = parse_number<T>(name, only(name, values), minimum, maximum);
      };
}

template <class Target>
Accept text_into(Target& target) {
  return [&target](const std::string& name, const std::vector<std::string>& values) {
    const std::string& value = only(name, values);
    if (value.empty()) throw UsageError(name + " is empty; give it a value");
    target = value;
  };
}

const CLI::App& deepest(const CLI::App& root) {
  const CLI::App* app = &root;
  while (!app->get_subcommands().empty()) app = app->get_subcommands().back();
  return *app;
}

std::string full_name(const CLI::App& app) {
  const std::string& own = app.get_name();
  return app.get_parent() == nullptr ? own : full_name(*app.get_parent()) + " " + own;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(command->get_name());
  }
  return names;
}

// What was left over on the line: a slip in a command's or an option's name, or one word too many.
[[noreturn]] void refuse_extra(const CLI::App& app, const std::string& extra) {
  const std::string see = "; see " + full_name(app) + " --help";
  if (extra.size() > 1 && extra.front() == '-') {
    const std::string name = extra.substr(0, extra.find('='));
    const std::vector<std::string> near = nearest_names(name, option_names(app));
    std::string message = "unknown option '" + name + "'";
    for (std::size_t i = 0; i < near.size(); ++i) {
      message += (i == 0 ? "; did you mean " : ", ") + near[i] + (i + 1 == near.size() ? "?" : "");
    }
    throw UsageError(message + see);
  }
  const std::vector<std::string> commands = command_names(app);
  if (!commands.empty()) throw_unknown_name("command", extra, commands);
  throw UsageError("unexpected argument '" + extra + "'" + see);
}

[[noreturn]] void refuse(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App& app = deepest(root);
  for (const CLI::App* level = &app; level != nullptr; level = level->get_parent()) {
    const std::vector<std::string> extras = level->remaining();
    if (!extras.empty()) refuse_extra(*level, extras.front());
  }
  std::string message = error.what();
  const auto place = message.find(": 1 required");
  if (place != std::string::npos) message = message.substr(0, place) + " needs a value";
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr && !command_names(app).empty()) {
    message = "say what to do:";
    for (const std::string& name : command_names(app)) message += " " + name;
  }
  throw UsageError(message + "; see " + full_name(app) + " --help");
}

}  // namespace

Accept into(std::string& target) { return text_into(target); }
Accept into(std::optional<std::string>& target) { return text_into(target); }
Accept into(std::vector<std::string>& target) {
  return [&target](const std::string& name, const std::vector<std::string>& values) {
    target.clear();
    for (const std::string& value : values) {
      for (std::string& part : split_list(name, value)) target.push_back(std::move(part));
    }
  };
}
Accept into(std::int64_t& target, std::int64_t minimum, std::int64_t maximum) {
  return number_into(target, minimum, maximum);
}
Accept into(std::optional<std::int64_t>& target, std::int64_t minimum, std::int64_t maximum) {
  return number_into(target, minimum, maximum);
}
Accept into(double& target, double minimum, double maximum) {
  return number_into(target, minimum, maximum);
}
Accept into(std::optional<double>& target, double minimum, double maximum) {
  return number_into(target, minimum, maximum);
}

std::vector<std::string> split_list(const std::string& name, const std::string& text) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (char c : text) {
    if (c == '(') ++depth;
    if (c == ')' && --depth < 0) break;
    if (c == ',' && depth == 0) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  if (depth != 0) throw UsageError(name + ": the parentheses of '" + text + "' do not match");
  for (const std::string& part : parts) {
    if (part.empty()) {
      throw UsageError(name + ": '" + text + "' has an empty item; write it as a,b,c");
    }
  }
  return parts;
}

Command Command::add(const std::string& name, const HelpText& help) {
  CLI::App* sub = app_->add_subcommand(name, wrapped(help.summary, kSummaryWidth));
  sub->set_help_flag("-h,--help", "Print this help");
  std::string footer;
  if (*help.details != '\0') footer = wrapped(help.details, kTextWidth) + "\n\n";
  footer += "Examples:";
  std::istringstream lines(help.examples);
  for (std::string line; std::getline(lines, line);) footer += "\n  " + line;
  sub->footer(footer);
  app_->require_subcommand(1);
  return Command(*sub);
}

void Command::option(const OptionText& text, Accept accept, bool required) {
  const std::string name = text.name.substr(0, text.name.find(','));
  CLI::callback_t callback = [app = app_, name,
                              accept = std::move(accept)](const CLI::results_t& values) {
    // The library would take the next option for the value that was forgotten.
    for (const std::string& value : values) {
      if (!value.starts_with('-') || app->get_option_no_throw(value) == nullptr) continue;
      throw UsageError(name + " needs a value; '" + value + "' is an option");
    }
    accept(name, values);
    return true;
  };
  CLI::Option* option = app_->add_option(text.name, callback, wrapped(text.summary, kSummaryWidth));
  // "FILE..." takes any number of words.
  if (text.value.ends_with("...")) option->expected(1, kMostWords)->allow_extra_args();
  option->option_text(text.value)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group_)
      ->required(required);
}

void Command::flag(const std::string& name, const std::string& summary, bool& target) {
  app_->add_flag_callback(
          name, [&target] { target = true; }, wrapped(summary, kSummaryWidth))
      ->group(group_);
}

void Command::flags(const std::string& on, const std::string& off, const std::string& summary,
                    std::optional<bool>& target) {
  const auto set = [on, off, &target](bool value) {
    if (target.has_value()) throw UsageError(on + " and " + off + " exclude each other; give one");
    target = value;
  };
  app_->add_flag_callback(
          on, [set] { set(true); }, wrapped(summary, kSummaryWidth))
      ->group(group_);
  app_->add_flag_callback(
          off, [set] { set(false); }, "The contrary")
      ->group(group_);
}

void Command::run(std::function<void()> action) { app_->callback(std::move(action)); }

void run_command_line(int argc, const char* const* argv,
                      const std::function<void(Command&)>& add_commands) {
  CLI::App app("Device assignment of dataflow graphs in work-conserving multi-GPU systems.",
               "doppler-gym");
  app.set_help_flag("-h,--help", "Print this help");
  app.set_version_flag("--version", "doppler-gym " DOPPLER_VERSION, "Print the version");
  app.get_formatter()->column_width(kNameColumn);
  app.footer(
      "doppler-gym COMMAND --help tells more, with examples. Exit codes: 0, 1 for a run that "
      "failed,\n2 for bad use, 130 after Ctrl-C.");
  Command program(app);
  add_commands(program);

  // An option with nothing after its '=' would take the next word for its value.
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with("--") && word.find('=') == word.size() - 1) {
      throw UsageError(std::string(word.substr(0, word.size() - 1)) + " is empty; give it a value");
    }
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    const CLI::App& asked = deepest(app);
    print(asked.help(asked.get_parent() == nullptr ? "" : full_name(*asked.get_parent())));
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    refuse(app, error);
  }
}

}  // namespace doppler::cli
