#include "cli/cli.hpp"

int main(int argc, char** argv) { return kbh::cli::run(argc, argv); }
