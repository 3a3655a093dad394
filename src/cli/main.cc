#include "cli/command.h"

int main(int argc, char** argv) {
  return nd7::run_program(argc, argv);
}
