#include "cli/run.h"

int main(int argc, char** argv) { return doppler::cli::run_command(argc, argv); }
