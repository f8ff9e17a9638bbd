#include "cli/run.h"

#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "cli/command_line.h"
#include "cli/commands/commands.h"
#include "cli/interrupt.h"
#include "cli/launch.h"
#include "cli/output.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

// Exit codes that a shell gives for a process ended by the signal.
constexpr int kBrokenPipe = 128 + SIGPIPE;
constexpr int kFailed = 1;

void add_commands(Command& program) {
  add_tasks(program);
  add_graph(program);
  add_simulate(program);
  add_assign(program);
  add_evaluate(program);
  add_trace(program);
  add_execute(program);
  add_profile(program);
  add_calibrate(program);
  add_compare(program);
  add_train(program);
  add_record(program);
  add_dataset(program);
  add_results(program);
  add_leaderboard(program);
  add_bench(program);
}

int fail(const std::string& message, int exit_code) {
  const std::string text = "doppler-gym: " + readable_message(message) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
  return exit_code;
}

bool is_lack_of_threads(const std::exception& error) {
  const auto* system = dynamic_cast<const std::system_error*>(&error);
  return system != nullptr && system->code() == std::errc::resource_unavailable_try_again;
}

}  // namespace

int run_command(int argc, const char* const* argv) {
  try {
    // A reader that left, or a limit on file sizes, fails a write and does not end the process.
    std::signal(SIGPIPE, SIG_IGN);
    std::signal(SIGXFSZ, SIG_IGN);
    end_on_interrupt();
    note_arguments(argc, argv);
    run_command_line(argc, argv, add_commands);
    return 0;
  } catch (const BrokenPipe&) {
    return kBrokenPipe;
  } catch (const Interrupted& interrupted) {
    return fail(interrupted.message, 128 + interrupted.signal);
  } catch (const Error& error) {
    return fail(error.what(), error.exit_code());
  } catch (const std::bad_alloc&) {
    return fail("this machine has too little memory for that; try a smaller problem", kFailed);
  } catch (const std::exception& error) {
    if (is_lack_of_threads(error)) {
      return fail("this machine allows no further thread; use fewer, or end other programs",
                  kFailed);
    }
    return fail(std::string("internal error: ") + error.what() +
                    "; this is a fault of doppler-gym, please report it with the command line",
                kFailed);
  }
}

}  // namespace doppler::cli
