#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/json.h"
#include "cli/command.h"
#include "cli/ui.h"
#include "core/log_format.h"
#include "core/verify.h"
#include "os/files.h"
#include "session/keys.h"
#include "session/session.h"
#include "view/paint.h"

namespace nd7 {
namespace {

constexpr std::size_t chunk_size_bytes = std::size_t{1} << 20;

constexpr Option options[] = {
    {"all", 0, nullptr, "verify every recorded session"},
    {"key", 0, "HEX",
     "public key whose checkpoints count, besides this machine's; may be repeated"},
    {"json", 0, nullptr, "print one JSON object a log"},
};

} // namespace

extern const Usage usage_verify;
const Usage usage_verify{
    .name = "verify",
    .summary = "prove that a log is as it was written",
    .arguments = "[ID|FILE]",
    .options = options,
    .details = "Recomputes the chain from the bytes and names the first entry that does not match "
               "and why.\nThree answers: whether the bytes are consistent; up to which entry a "
               "signed checkpoint attests\nthem, by whom and when; how many entries stand after "
               "that without attestation. A log whose end\nwas cut off after the last checkpoint "
               "is consistent: only a copy of its head elsewhere shows it.\nExit status: 0 "
               "consistent, 1 broken, 2 cannot check.",
    .example = "nd7 verify --all\nnd7 verify 0199c2 --json",
};

namespace {

struct Target {
  std::string name; // for people: the id or the path as given
  std::string file;
  std::string session_id; // the id it must have, "" when unknown
  bool live = false;
};

struct Report final : Reporter {
  void fault(const Fault& f) override { found = f; }
  std::optional<Fault> found;
};

struct Checked {
  VerifyResult result;
  std::optional<Fault> fault;
};

bool is_file(const std::string& path) {
  struct stat st {};
  return ::stat(path.c_str(), &st) == 0 && S_ISREG(st.st_mode);
}

std::optional<std::string> head_beside(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : file.substr(0, slash + 1);
  if (file.substr(directory.size()) != log_format::events_name) return std::nullopt;
  auto head = os::read_file(directory + std::string(log_format::head_name), 4096);
  return head ? std::optional(*head) : std::nullopt;
}

Target target_of(const SessionInfo& session) {
  return {session.id, session.directory + "/" + std::string(log_format::events_name), session.id,
          session.running};
}

Result<std::vector<Target>> targets(const Arguments& args) {
  if (!args.has("all") && args.rest().size() == 1 && is_file(args.rest().front())) {
    return std::vector<Target>{{args.rest().front(), args.rest().front(), "", false}};
  }
  auto places = find_places();
  if (!places) return std::unexpected(places.error());
  std::vector<Target> found;
  if (args.has("all")) {
    auto sessions = list_sessions(*places);
    if (!sessions) return std::unexpected(sessions.error());
    for (const SessionInfo& session : *sessions) found.push_back(target_of(session));
    return found;
  }
  const std::string id = args.rest().empty() ? "" : args.rest().front();
  if (id.find('/') != std::string::npos) return os_error("open " + visible(id), ENOENT);
  auto session = find_session(*places, id);
  if (!session) return std::unexpected(session.error());
  found.push_back(target_of(*session));
  return found;
}

// Of this machine, as far as there are any, and of --key.
Result<SignatureChecker> checker(const Arguments& args) {
  std::vector<std::string> keys = args.values("key");
  if (auto places = find_places()) {
    auto own = machine_public_keys(places->state + "/keys");
    if (!own) return std::unexpected(own.error());
    keys.insert(keys.end(), own->begin(), own->end());
  }
  return signature_checker(keys);
}

Result<Checked> check(const Target& target, const SignatureChecker& check_signature) {
  // The head first: entries written meanwhile then only make it lie behind (live).
  std::optional<std::string> head = head_beside(target.file);
  auto fd = os::open_file(target.file, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  auto size = os::file_size(fd->get());
  if (!size) return std::unexpected(size.error());
  Report report;
  Verifier verifier({.session_id = target.session_id,
                     .head = std::move(head),
                     .live = target.live,
                     .check_signature = check_signature},
                    report);
  Progress progress("verifying " + visible(target.name));
  std::string buffer(chunk_size_bytes, '\0');
  std::uint64_t done = 0;
  for (;;) {
    const ssize_t n = ::read(fd->get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error("read " + target.file);
    if (n == 0) break;
    verifier.feed({buffer.data(), static_cast<std::size_t>(n)});
    done += static_cast<std::uint64_t>(n);
    progress.update(done, *size);
    if (report.found) break;
  }
  Checked checked{verifier.finish(), {}};
  checked.fault = report.found;
  return checked;
}

const char* fault_words(FaultKind kind) {
  switch (kind) {
  case FaultKind::malformed:
    return "a line that is no entry";
  case FaultKind::unknown_version:
    return "a format this nd7 does not know";
  case FaultKind::changed:
    return "changed bytes";
  case FaultKind::transplanted:
    return "transplanted from another session";
  case FaultKind::missing:
    return "missing entries";
  case FaultKind::reordered:
    return "reordered entries";
  case FaultKind::duplicate:
    return "a duplicate entry";
  case FaultKind::unlinked:
    return "does not follow the entry before it";
  case FaultKind::after_end:
    return "appended after the end";
  case FaultKind::cut:
    return "the end was cut off";
  case FaultKind::head_disagrees:
    return "the head disagrees";
  case FaultKind::bad_checkpoint:
    return "a checkpoint of another chain";
  case FaultKind::bad_signature:
    return "a wrong checkpoint signature";
  }
  return "broken";
}

const char* head_word(HeadState state) {
  switch (state) {
  case HeadState::missing:
    return "missing";
  case HeadState::agrees:
    return "agrees";
  case HeadState::one_behind:
    return "one_behind";
  case HeadState::behind:
    return "behind";
  case HeadState::wrong:
    return "wrong";
  }
  return "wrong";
}

std::string as_json(const Target& target, const Checked& checked) {
  const VerifyResult& r = checked.result;
  JsonWriter out;
  out.text("session_id", r.session_id).path("file", target.file);
  if (r.checkable) {
    out.boolean("consistent", r.consistent);
  } else {
    out.null("consistent");
  }
  out.count("entries", r.entries).count("bytes", r.size_bytes).boolean("ended", r.ended);
  out.boolean("running", target.live).text("head", head_word(r.head));
  out.count("torn_bytes", r.torn_bytes).count("gaps", r.gaps);
  if (checked.fault) {
    const Fault& f = *checked.fault;
    JsonWriter fault;
    fault.text("kind", fault_name(f.kind)).count("entry", f.entry).count("line", f.line);
    fault.count("offset", f.offset_bytes).text("detail", f.detail);
    out.raw("fault", fault.finish());
  } else {
    out.null("fault");
  }
  if (r.attested.key_id.empty()) {
    out.null("attested");
  } else {
    JsonWriter attested;
    attested.count("entries", r.attested.entries).text("key", r.attested.key_id);
    attested.number("ts", r.attested.ts);
    out.raw("attested", attested.finish());
  }
  out.count("unattested_tail", r.unattested_tail());
  out.count("unknown_checkpoints", r.unknown_checkpoints);
  return out.finish() + "\n";
}

// After a fault nothing is attested beyond it, and what stands before is said all the same.
std::string as_text(const Target& target, const Checked& checked, bool color) {
  const VerifyResult& r = checked.result;
  std::string out;
  const auto line = [&](std::string_view word, std::string_view text) {
    out += fmt::format("  {:<12}{}\n", word, text);
  };
  if (checked.fault) {
    const Fault& f = *checked.fault;
    const std::string verdict = r.checkable ? "broken" : "cannot be checked";
    out += fmt::format("{}: {} at entry {}: {}\n", visible(target.name),
                       tinted(Tint::red, verdict, color), f.entry, fault_words(f.kind));
    line("found", fmt::format("{} (line {}, byte {})", visible(f.detail), f.line, f.offset_bytes));
    line("bytes", r.entries == 0
                      ? std::string("nothing before that")
                      : fmt::format("consistent before that: entries 0 to {}", r.entries - 1));
  } else {
    out += fmt::format("{}: {}\n", visible(target.name), tinted(Tint::green, "consistent", color));
    line("bytes", fmt::format("consistent: {} entries, {} bytes{}", r.entries, r.size_bytes,
                              r.ended       ? ", closed by an end entry"
                              : target.live ? ", still running"
                                            : ""));
  }
  if (r.torn_bytes > 0 && !checked.fault) {
    line("torn tail", target.live
                          ? fmt::format("of {} bytes: an entry is being written", r.torn_bytes)
                          : fmt::format("of {} bytes: a crash cut a write short", r.torn_bytes));
  }
  if (r.gaps > 0) line("gaps", fmt::format("{}: losses that the log itself tells", r.gaps));
  if (r.head == HeadState::missing && r.entries > 0 && !checked.fault) {
    line("head", "missing: a cut at the end would not be seen");
  }
  if (r.attested.key_id.empty()) {
    line("attested", r.unknown_checkpoints == 0
                         ? std::string("no: there is no signed checkpoint")
                         : fmt::format("no: {} checkpoints by keys that are not known here",
                                       r.unknown_checkpoints));
  } else {
    line("attested", fmt::format("up to entry {} by key {} at {}",
                                 r.attested.entries == 0 ? 0 : r.attested.entries - 1,
                                 r.attested.key_id, utc_time(r.attested.ts)));
  }
  line("unattested", fmt::format("tail of {} entries", r.unattested_tail()));
  return out;
}

} // namespace

int cmd_verify(int argc, char** argv) {
  auto args = parse_options(usage_verify, argc, argv);
  if (!args) return args.error();
  if (args->rest().size() > (args->has("all") ? 0 : 1))
    return usage_error(usage_verify, "too many arguments");
  auto check_signature = checker(*args);
  if (!check_signature) return say_error(check_signature.error());
  auto list = targets(*args);
  if (!list) return say_error(list.error());
  if (list->empty()) say("no sessions recorded yet");
  bool broken = false;
  bool unchecked = false;
  for (const Target& target : *list) {
    auto checked = check(target, *check_signature);
    if (!checked) {
      say_error(checked.error());
      unchecked = true;
      continue;
    }
    print(args->has("json") ? as_json(target, *checked)
                            : as_text(target, *checked, use_color(STDOUT_FILENO)));
    if (!checked->result.checkable) {
      unchecked = true;
    } else if (!checked->result.consistent) {
      broken = true;
    }
  }
  return broken ? 1 : unchecked ? 2 : 0;
}

} // namespace nd7
