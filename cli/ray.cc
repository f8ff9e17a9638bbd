#include "cli/ray.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "cli/launch.h"
#include "graphs/error.h"

namespace doppler::cli {
namespace {

// What python3 runs in place of this program, with the same arguments.
constexpr const char* kScript = R"(import sys
try:
    import doppler_gym
except ImportError as error:
    print("doppler-gym: --ray needs the Python package doppler_gym, which", sys.executable,
          "cannot import (" + str(error) + "); pip install '.[ray]' in the project's folder",
          "installs it", file=sys.stderr)
    sys.exit(2)
sys.exit(doppler_gym.main(sys.argv[1:])))";

// Never destroyed: what it holds may be gone before statics are.
RayConnector& connector() {
  static auto* kept = new RayConnector;
  return *kept;
}

}  // namespace

void set_ray_connector(RayConnector given) { connector() = std::move(given); }

void connect_to_ray(const std::string& address, LeaderboardRun& run) {
  if (connector()) {
    connector()(address, run);
    return;
  }
  std::vector<std::string> words = {"python3", "-c", kScript};
  const std::vector<std::string>& given = given_arguments();
  words.insert(words.end(), given.begin(), given.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  sigset_t none;  // what this program waits for in a thread, the next one is to hear
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
  execvp(arguments[0], arguments.data());
  throw UsageError(std::string("--ray needs python3 with the package doppler_gym: python3: ") +
                   std::strerror(errno));
}

}  // namespace doppler::cli
