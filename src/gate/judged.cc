#include "gate/judged.h"

namespace nd7 {

Answer rename_onto_judged(Context& c, Worker&, Call& call, const os::Place&, const os::Place& to,
                          const Verdict& verdict) {
  return deny(c, call, to, "rename", verdict);
}

Answer open_pointer(Context& c, Worker&, Call& call, const os::Place& place, int, mode_t) {
  return deny(c, call, place, "write", judge(c, call, Access::write, place));
}

void settle_pointers(Context&, const Policy&, Process&) {}

}  // namespace nd7
