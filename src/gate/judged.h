// Changes that are decided on their content: a file renamed onto a judged name, a `.git` pointer.
#pragma once

#include "gate/gate.h"

namespace nd7 {

// A rename of `from` onto the judged name `to`: reads both, asks the judge, and puts the judged
// bytes in place in a fresh file of the gate's own (the caller may still hold a descriptor, mapping
// or hard link to the one it wrote). Answers as rename(2) would.
Answer rename_onto_judged(Context& c, Worker& w, Call& call, const os::Place& from,
                          const os::Place& to, const Verdict& verdict);

// A `.git` file is about to be written in place from its start (git worktree, submodule): the
// caller gets an unnamed file; what it wrote appears under the name once it is a pointer into a git
// directory of the project, as a fresh file. Until then the name is as it was.
Answer open_pointer(Context& c, Worker& w, Call& call, const os::Place& place, int flags,
                    mode_t mode);
// Called at the next calls of the session: publishes or drops what waits.
void settle_pointers(Context& c, const Policy& policy, Process& process);

} // namespace nd7
