// doppler-gym with agents of the tests.
#include "cli/run.h"
#include "tests/support/test_learner.h"

int main(int argc, char** argv) {
  doppler::testing::register_test_learner();
  return doppler::cli::run_command(argc, argv);
}
