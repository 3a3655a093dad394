#include "core/git_config_rules.h"

#include <algorithm>
#include <array>
#include <vector>

namespace nd7 {
namespace {

// What a value may be. Every kind also refuses control characters (in `text` line ends and tabs
// pass).
enum class Kind {
  plain,    // anything printable, or no value at all
  text,     // anything
  boolean,  // what git takes for one
  off,      // a boolean that says no
  word,     // letters, digits and -_.:/+ ; not like an option
  remote,   // a remote's name or a plain url
  url,      // a plain url
  refspec,  // not like an option
  inside,   // a relative path without ".."
  update,   // a way to update a submodule that is no command
  worktree, // where a submodule is checked out
};

// `name` may end in '*' (any rest) and `section` be matched with any subsection when `sub` is true.
struct Row {
  std::string_view section;
  bool sub;
  std::string_view name;
  Kind kind;
};

constexpr Row harmless[] = {
    {"core", false, "repositoryformatversion", Kind::word},
    {"core", false, "filemode", Kind::boolean},
    {"core", false, "bare", Kind::boolean},
    {"core", false, "logallrefupdates", Kind::word},
    {"core", false, "ignorecase", Kind::boolean},
    {"core", false, "precomposeunicode", Kind::boolean},
    {"core", false, "symlinks", Kind::boolean},
    {"core", false, "autocrlf", Kind::word},
    {"core", false, "eol", Kind::word},
    {"core", false, "safecrlf", Kind::word},
    {"core", false, "whitespace", Kind::plain},
    {"core", false, "compression", Kind::word},
    {"core", false, "loosecompression", Kind::word},
    {"core", false, "bigfilethreshold", Kind::word},
    {"core", false, "packedgitlimit", Kind::word},
    {"core", false, "packedgitwindowsize", Kind::word},
    {"core", false, "deltabasecachelimit", Kind::word},
    {"core", false, "quotepath", Kind::boolean},
    {"core", false, "abbrev", Kind::word},
    {"core", false, "commentchar", Kind::plain},
    {"core", false, "sparsecheckout", Kind::boolean},
    {"core", false, "sparsecheckoutcone", Kind::boolean},
    {"core", false, "untrackedcache", Kind::word},
    {"core", false, "splitindex", Kind::boolean},
    {"core", false, "preloadindex", Kind::boolean},
    {"core", false, "commitgraph", Kind::boolean},
    {"core", false, "multipackindex", Kind::boolean},
    {"core", false, "warnambiguousrefs", Kind::boolean},
    {"core", false, "fsmonitor", Kind::off},
    {"core", false, "worktree", Kind::worktree},
    {"extensions", false, "objectformat", Kind::word},
    {"extensions", false, "compatobjectformat", Kind::word},
    {"extensions", false, "worktreeconfig", Kind::boolean},
    {"extensions", false, "partialclone", Kind::remote},
    {"extensions", false, "refstorage", Kind::word},
    {"extensions", false, "preciousobjects", Kind::boolean},
    {"extensions", false, "noop", Kind::boolean},
    {"extensions", false, "noop-v1", Kind::boolean},
    {"extensions", false, "relativeworktrees", Kind::boolean},
    {"user", false, "name", Kind::plain},
    {"user", false, "email", Kind::plain},
    {"author", false, "name", Kind::plain},
    {"author", false, "email", Kind::plain},
    {"committer", false, "name", Kind::plain},
    {"committer", false, "email", Kind::plain},
    {"remote", true, "url", Kind::url},
    {"remote", true, "pushurl", Kind::url},
    {"remote", true, "fetch", Kind::refspec},
    {"remote", true, "push", Kind::refspec},
    {"remote", true, "tagopt", Kind::plain},
    {"remote", true, "prune", Kind::boolean},
    {"remote", true, "prunetags", Kind::boolean},
    {"remote", true, "mirror", Kind::word},
    {"remote", true, "promisor", Kind::boolean},
    {"remote", true, "partialclonefilter", Kind::refspec},
    {"remote", true, "skipdefaultupdate", Kind::boolean},
    {"remote", true, "skipfetchall", Kind::boolean},
    {"remote", true, "followremotehead", Kind::word},
    {"remote", true, "gh-resolved", Kind::word},
    {"remote", false, "pushdefault", Kind::remote},
    {"branch", true, "remote", Kind::remote},
    {"branch", true, "pushremote", Kind::remote},
    {"branch", true, "merge", Kind::refspec},
    {"branch", true, "rebase", Kind::word},
    {"branch", true, "description", Kind::text},
    {"branch", true, "vscode-merge-base", Kind::refspec},
    {"branch", true, "github-pr-owner-number", Kind::refspec},
    {"branch", true, "gh-merge-base", Kind::refspec},
    {"branch", false, "autosetupmerge", Kind::word},
    {"branch", false, "autosetuprebase", Kind::word},
    {"branch", false, "sort", Kind::plain},
    {"submodule", true, "url", Kind::url},
    {"submodule", true, "active", Kind::boolean},
    {"submodule", true, "path", Kind::inside},
    {"submodule", true, "branch", Kind::refspec},
    {"submodule", true, "ignore", Kind::word},
    {"submodule", true, "shallow", Kind::boolean},
    {"submodule", true, "fetchrecursesubmodules", Kind::word},
    {"submodule", true, "update", Kind::update},
    {"submodule", false, "recurse", Kind::boolean},
    {"submodule", false, "active", Kind::plain},
    {"submodule", false, "fetchjobs", Kind::word},
    {"submodule", false, "propagatebranches", Kind::boolean},
    {"submodule", false, "alternatelocation", Kind::word},
    {"submodule", false, "alternateerrorstrategy", Kind::word},
    {"init", false, "defaultbranch", Kind::word},
    {"pull", false, "rebase", Kind::word},
    {"pull", false, "ff", Kind::word},
    {"pull", false, "autostash", Kind::boolean},
    {"push", false, "default", Kind::word},
    {"push", false, "autosetupremote", Kind::boolean},
    {"push", false, "followtags", Kind::boolean},
    {"push", false, "useforceifincludes", Kind::boolean},
    {"push", false, "recursesubmodules", Kind::word},
    {"push", false, "negotiate", Kind::boolean},
    {"fetch", false, "prune", Kind::boolean},
    {"fetch", false, "prunetags", Kind::boolean},
    {"fetch", false, "all", Kind::boolean},
    {"fetch", false, "parallel", Kind::word},
    {"fetch", false, "output", Kind::word},
    {"fetch", false, "showforcedupdates", Kind::boolean},
    {"fetch", false, "writecommitgraph", Kind::boolean},
    {"fetch", false, "recursesubmodules", Kind::word},
    {"fetch", false, "negotiationalgorithm", Kind::word},
    {"fetch", false, "unpacklimit", Kind::word},
    {"transfer", false, "unpacklimit", Kind::word},
    {"rebase", false, "autostash", Kind::boolean},
    {"rebase", false, "autosquash", Kind::boolean},
    {"rebase", false, "updaterefs", Kind::boolean},
    {"rebase", false, "stat", Kind::boolean},
    {"rebase", false, "abbreviatecommands", Kind::boolean},
    {"rebase", false, "missingcommitscheck", Kind::word},
    {"rebase", false, "rebasemerges", Kind::word},
    {"rebase", false, "forkpoint", Kind::boolean},
    {"rebase", false, "reschedulefailedexec", Kind::boolean},
    {"merge", false, "ff", Kind::word},
    {"merge", false, "conflictstyle", Kind::word},
    {"merge", false, "renames", Kind::word},
    {"merge", false, "renamelimit", Kind::word},
    {"merge", false, "directoryrenames", Kind::word},
    {"merge", false, "log", Kind::word},
    {"merge", false, "stat", Kind::word},
    {"merge", false, "branchdesc", Kind::boolean},
    {"merge", false, "autostash", Kind::boolean},
    {"merge", false, "verbosity", Kind::word},
    {"merge", false, "defaulttoupstream", Kind::boolean},
    {"merge", false, "renormalize", Kind::boolean},
    {"rerere", false, "enabled", Kind::boolean},
    {"rerere", false, "autoupdate", Kind::boolean},
    {"gc", false, "auto", Kind::word},
    {"gc", false, "autodetach", Kind::boolean},
    {"gc", false, "autopacklimit", Kind::word},
    {"gc", false, "bigpackthreshold", Kind::word},
    {"gc", false, "packrefs", Kind::word},
    {"gc", false, "cruftpacks", Kind::boolean},
    {"gc", false, "maxcruftsize", Kind::word},
    {"gc", false, "pruneexpire", Kind::plain},
    {"gc", false, "worktreepruneexpire", Kind::plain},
    {"gc", false, "logexpiry", Kind::plain},
    {"gc", false, "reflogexpire", Kind::plain},
    {"gc", false, "reflogexpireunreachable", Kind::plain},
    {"gc", true, "reflogexpire", Kind::plain},
    {"gc", true, "reflogexpireunreachable", Kind::plain},
    {"gc", false, "rerereresolved", Kind::plain},
    {"gc", false, "rerereunresolved", Kind::plain},
    {"gc", false, "aggressivedepth", Kind::word},
    {"gc", false, "aggressivewindow", Kind::word},
    {"gc", false, "writecommitgraph", Kind::boolean},
    {"maintenance", false, "auto", Kind::boolean},
    {"maintenance", false, "autodetach", Kind::boolean},
    {"maintenance", false, "strategy", Kind::word},
    {"maintenance", true, "enabled", Kind::boolean},
    {"maintenance", true, "schedule", Kind::word},
    {"maintenance", true, "auto", Kind::word},
    {"commitgraph", false, "generationversion", Kind::word},
    {"commitgraph", false, "maxnewfilters", Kind::word},
    {"commitgraph", false, "readchangedpaths", Kind::boolean},
    {"pack", false, "window", Kind::word},
    {"pack", false, "depth", Kind::word},
    {"pack", false, "windowmemory", Kind::word},
    {"pack", false, "compression", Kind::word},
    {"pack", false, "deltacachesize", Kind::word},
    {"pack", false, "deltacachelimit", Kind::word},
    {"pack", false, "threads", Kind::word},
    {"pack", false, "indexversion", Kind::word},
    {"pack", false, "packsizelimit", Kind::word},
    {"pack", false, "usebitmaps", Kind::boolean},
    {"pack", false, "usesparse", Kind::boolean},
    {"pack", false, "writereverseindex", Kind::boolean},
    {"repack", false, "writebitmaps", Kind::boolean},
    {"repack", false, "usedeltabaseoffset", Kind::boolean},
    {"index", false, "recordendofindexentries", Kind::boolean},
    {"index", false, "recordoffsettable", Kind::boolean},
    {"index", false, "skiphash", Kind::boolean},
    {"index", false, "sparse", Kind::boolean},
    {"index", false, "threads", Kind::word},
    {"index", false, "version", Kind::word},
    {"feature", false, "manyfiles", Kind::boolean},
    {"feature", false, "experimental", Kind::boolean},
    {"checkout", false, "defaultremote", Kind::remote},
    {"checkout", false, "guess", Kind::boolean},
    {"checkout", false, "workers", Kind::word},
    {"checkout", false, "thresholdforparallelism", Kind::word},
    {"sparse", false, "expectfilesoutsideofpatterns", Kind::boolean},
    {"commit", false, "gpgsign", Kind::off},
    {"commit", false, "verbose", Kind::word},
    {"commit", false, "cleanup", Kind::word},
    {"commit", false, "status", Kind::boolean},
    {"tag", false, "sort", Kind::plain},
    {"tag", false, "gpgsign", Kind::off},
    {"stash", false, "showincludeuntracked", Kind::boolean},
    {"stash", false, "showpatch", Kind::boolean},
    {"stash", false, "showstat", Kind::boolean},
    {"status", false, "relativepaths", Kind::boolean},
    {"status", false, "short", Kind::boolean},
    {"status", false, "branch", Kind::boolean},
    {"status", false, "aheadbehind", Kind::boolean},
    {"status", false, "displaycommentprefix", Kind::boolean},
    {"status", false, "renamelimit", Kind::word},
    {"status", false, "renames", Kind::word},
    {"status", false, "showstash", Kind::boolean},
    {"status", false, "showuntrackedfiles", Kind::word},
    {"status", false, "submodulesummary", Kind::word},
    {"log", false, "abbrevcommit", Kind::boolean},
    {"log", false, "date", Kind::plain},
    {"log", false, "decorate", Kind::word},
    {"log", false, "follow", Kind::boolean},
    {"log", false, "mailmap", Kind::boolean},
    {"log", false, "showroot", Kind::boolean},
    {"diff", false, "algorithm", Kind::word},
    {"diff", false, "autorefreshindex", Kind::boolean},
    {"diff", false, "colormoved", Kind::word},
    {"diff", false, "colormovedws", Kind::plain},
    {"diff", false, "context", Kind::word},
    {"diff", false, "dirstat", Kind::plain},
    {"diff", false, "ignoresubmodules", Kind::word},
    {"diff", false, "indentheuristic", Kind::boolean},
    {"diff", false, "interhunkcontext", Kind::word},
    {"diff", false, "mnemonicprefix", Kind::boolean},
    {"diff", false, "noprefix", Kind::boolean},
    {"diff", false, "relative", Kind::boolean},
    {"diff", false, "renamelimit", Kind::word},
    {"diff", false, "renames", Kind::word},
    {"diff", false, "statgraphwidth", Kind::word},
    {"diff", false, "statnamewidth", Kind::word},
    {"diff", false, "submodule", Kind::word},
    {"diff", false, "suppressblankempty", Kind::boolean},
    {"diff", false, "wserrorhighlight", Kind::plain},
    {"blame", false, "ignorerevsfile", Kind::inside},
    {"blame", false, "date", Kind::plain},
    {"blame", false, "coloring", Kind::word},
    {"blame", false, "showemail", Kind::boolean},
    {"blame", false, "showroot", Kind::boolean},
    {"blame", false, "markignoredlines", Kind::boolean},
    {"blame", false, "markunblamablelines", Kind::boolean},
    {"grep", false, "linenumber", Kind::boolean},
    {"grep", false, "column", Kind::boolean},
    {"grep", false, "extendedregexp", Kind::boolean},
    {"grep", false, "patterntype", Kind::word},
    {"grep", false, "threads", Kind::word},
    {"grep", false, "fullname", Kind::boolean},
    {"apply", false, "whitespace", Kind::word},
    {"apply", false, "ignorewhitespace", Kind::word},
    {"i18n", false, "commitencoding", Kind::word},
    {"i18n", false, "logoutputencoding", Kind::word},
    {"notes", false, "displayref", Kind::refspec},
    {"notes", false, "mergestrategy", Kind::word},
    {"notes", true, "mergestrategy", Kind::word},
    {"notes", false, "rewritemode", Kind::word},
    {"notes", false, "rewriteref", Kind::refspec},
    {"notes", true, "amend", Kind::boolean},
    {"notes", true, "rebase", Kind::boolean},
    {"worktree", false, "guessremote", Kind::boolean},
    {"worktree", false, "userelativepaths", Kind::boolean},
    {"versionsort", false, "suffix", Kind::plain},
    {"http", false, "postbuffer", Kind::word},
    {"http", false, "lowspeedlimit", Kind::word},
    {"http", false, "lowspeedtime", Kind::word},
    {"http", false, "version", Kind::word},
    {"lfs", false, "repositoryformatversion", Kind::word},
    {"lfs", true, "access", Kind::word},
    {"lfs", true, "locksverify", Kind::boolean},
    // Whole sections without a program, a path or a protection in them.
    {"advice", false, "*", Kind::plain},
    {"column", false, "*", Kind::plain},
    {"color", false, "*", Kind::plain},
    {"color", true, "*", Kind::plain},
};

// What a refused key would do: the first row that matches. Only words; what is in no row is refused
// as well.
struct Reason {
  std::string_view section;
  std::string_view name; // empty: any
  std::string_view text;
};
constexpr std::string_view runs = "runs programs later outside";
constexpr Reason reasons[] = {
    {"core", "hookspath", runs},
    {"core", "fsmonitor", runs},
    {"core", "sshcommand", runs},
    {"core", "editor", runs},
    {"core", "pager", runs},
    {"core", "askpass", runs},
    {"core", "gitproxy", runs},
    {"core", "alternaterefscommand", runs},
    {"core", "attributesfile", "attaches programs to files"},
    {"core", "worktree", "makes git write in another directory"},
    {"alias", "", runs},
    {"filter", "", runs},
    {"diff", "external", runs},
    {"diff", "command", runs},
    {"diff", "textconv", runs},
    {"difftool", "", runs},
    {"mergetool", "", runs},
    {"merge", "driver", runs},
    {"credential", "", runs},
    {"gpg", "", runs},
    {"include", "", "makes git read another file"},
    {"includeif", "", "makes git read another file"},
    {"url", "", "turns other addresses to this one"},
    {"submodule", "update", runs},
    {"protocol", "", "opens transports that run programs"},
    {"remote", "uploadpack", runs},
    {"remote", "receivepack", runs},
    {"remote", "vcs", runs},
    {"remote", "proxy", "leads connections elsewhere"},
    {"remote", "proxyauthmethod", "leads connections elsewhere"},
    {"branch", "mergeoptions", runs},
    {"pull", "twohead", runs},
    {"pull", "octopus", runs},
    {"uploadpack", "", runs},
    {"receive", "", "changes what others may push"},
    {"sequence", "", runs},
    {"man", "", runs},
    {"browser", "", runs},
    {"web", "", runs},
    {"instaweb", "", runs},
    {"interactive", "difffilter", runs},
    {"pager", "", runs},
    {"http", "", "changes who is trusted on the network or what is sent there"},
    {"trailer", "", runs},
    {"sendemail", "", runs},
    {"guitool", "", runs},
    {"hook", "", runs},
    {"imap", "", runs},
    {"gc", "recentobjectshook", runs},
    {"tar", "command", runs},
    {"lfs", "", runs},
    {"rebase", "instructionformat", "can write commands into a rebase"},
    {"init", "templatedir", "copies hooks into new repositories"},
    {"safe", "", "switches off a protection of git"},
    {"transfer", "", "switches off a protection of git"},
    {"extensions", "", "changes how git reads the repository"},
};

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
std::string lowered(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}
bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control);
}

bool is_word_char(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
         std::string_view("-_.:/+").find(c) != std::string_view::npos;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.find("://") == std::string_view::npos &&
         text.find("::") == std::string_view::npos &&
         std::all_of(text.begin(), text.end(), is_word_char) &&
         (text.front() != '-' || // a number may be negative
          (text.size() > 1 && text.find_first_not_of("0123456789", 1) == std::string_view::npos));
}

bool is_no(std::string_view text) {
  const std::string value = lowered(text);
  return value.empty() || value == "false" || value == "no" || value == "off" || value == "0";
}
bool is_boolean(std::string_view text) {
  const std::string value = lowered(text);
  return is_no(text) || value == "true" || value == "yes" || value == "on" || value == "1";
}

// A relative path that stays where it begins and cannot be taken for an option.
bool is_inside(std::string_view path) {
  if (path.empty() || path.front() == '/' || path.front() == '-' || path.front() == '~' ||
      path.find('\\') != std::string_view::npos)
    return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (path.substr(at, end - at) == "..") return false;
    at = end + 1;
  }
  return true;
}

// `git submodule` writes core.worktree = ../../../lib into P/.git/modules/lib/config: relative, and
// below the directory that holds the first .git, but not in a .git again.
bool is_submodule_worktree(std::string_view config, std::string_view worktree) {
  const std::size_t git = config.find("/.git/modules/");
  if (git == std::string_view::npos || worktree.empty() || worktree.front() == '/') return false;
  std::vector<std::string_view> parts;
  const auto walk = [&parts](std::string_view path) {
    for (std::size_t at = 0; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      const std::string_view part = path.substr(at, end - at);
      if (part == "..") {
        if (parts.empty()) return false;
        parts.pop_back();
      } else if (!part.empty() && part != ".") {
        parts.push_back(part);
      }
      at = end + 1;
    }
    return true;
  };
  if (!walk(config.substr(0, git))) return false;
  const std::vector<std::string_view> root = parts;
  if (!walk(config.substr(git, config.rfind('/') - git)) || !walk(worktree)) return false;
  if (parts.size() <= root.size() || !std::equal(root.begin(), root.end(), parts.begin()))
    return false;
  return std::none_of(parts.begin() + static_cast<std::ptrdiff_t>(root.size()), parts.end(),
                      [](std::string_view part) { return lowered(part) == ".git"; });
}

bool allows(Kind kind, const std::optional<std::string>& given, std::string_view path) {
  if (!given) // "true" without a word; what wants a word is refused
    return kind == Kind::plain || kind == Kind::boolean;
  const std::string_view value = *given;
  if (kind == Kind::text) {
    return std::none_of(value.begin(), value.end(),
                        [](char c) { return is_control(c) && c != '\n' && c != '\t'; });
  }
  if (has_control(value)) return false;
  switch (kind) {
  case Kind::plain:
    return true;
  case Kind::boolean:
    return is_boolean(value);
  case Kind::off:
    return is_no(value);
  case Kind::word:
    return is_word(value);
  case Kind::remote:
    return is_plain_git_url(value);
  case Kind::url:
    return is_plain_git_url(value);
  case Kind::refspec:
    return !value.empty() && value.front() != '-' && !value.starts_with("--");
  case Kind::inside:
    return is_inside(value);
  case Kind::update:
    return value == "checkout" || value == "rebase" || value == "merge" || value == "none";
  case Kind::worktree:
    return is_submodule_worktree(path, value);
  case Kind::text:
    break;
  }
  return false;
}

// Names of remotes, branches and submodules become arguments, refs and directories.
bool is_plain_subsection(std::string_view section, std::string_view name) {
  if (has_control(name)) return false;
  if (section == "remote" || section == "submodule") return is_inside(name);
  return section == "color" || (!name.empty() && name.front() != '-');
}

} // namespace

std::optional<std::string_view> git_key_objection(const GitConfigEntry& entry,
                                                  std::string_view path) {
  const GitConfigKey key = split_git_config_key(entry.key);
  for (const Row& row : harmless) {
    if (row.section != key.section || row.sub != key.subsection.has_value()) continue;
    if (row.name != "*" && row.name != key.name) continue;
    if (row.sub && !is_plain_subsection(key.section, *key.subsection))
      return "has a name that is not plain";
    if (allows(row.kind, entry.value, path)) return std::nullopt;
    switch (row.kind) {
    case Kind::url:
    case Kind::remote:
      return "is no plain address: it may run programs later outside";
    case Kind::inside:
      return "leads out of the repository";
    case Kind::boolean:
    case Kind::word:
    case Kind::plain:
    case Kind::text:
    case Kind::refspec:
      return "has a value that is not plain";
    case Kind::off:
    case Kind::update:
    case Kind::worktree:
      break;
    }
    break;
  }
  for (const Reason& reason : reasons)
    if (reason.section == key.section && (reason.name.empty() || reason.name == key.name))
      return reason.text;
  return "is not known to be harmless";
}

bool is_git_protection(const GitConfigEntry& entry) {
  static constexpr std::array<std::string_view, 6> sections = {"safe",      "protocol",   "include",
                                                               "includeif", "credential", "url"};
  const GitConfigKey key = split_git_config_key(entry.key);
  if (std::find(sections.begin(), sections.end(), key.section) != sections.end()) return true;
  if (key.section == "core" && key.name == "hookspath") return true;
  if (key.section == "receive" && (key.name.starts_with("deny") || key.name == "certnonceseed"))
    return true;
  if (key.section == "http" && key.name.starts_with("ssl")) return true;
  // Switches: on is the protection; one that is off may go.
  const bool is_switch = (key.section == "core" && key.name.starts_with("protect")) ||
                         key.name == "fsckobjects" || key.name == "verifysignatures" ||
                         key.name == "gpgsign" || key.name == "forcesignannotated" ||
                         (key.section == "user" && key.name == "useconfigonly");
  return is_switch && !(entry.value && is_no(*entry.value));
}

bool is_plain_git_url(std::string_view url) {
  static constexpr std::array<std::string_view, 7> schemes = {"https", "http",    "ssh",    "git",
                                                              "file",  "git+ssh", "ssh+git"};
  constexpr auto none = std::string_view::npos;
  if (url.empty() || url.front() == '-' || has_control(url)) return false;
  // A line end or NUL in disguise, which a credential helper or an old git would take for one.
  const std::string folded = lowered(url);
  for (const std::string_view code : {"%00", "%0a", "%0d"})
    if (folded.find(code) != std::string::npos) return false;
  // Git's test for a transport helper: what could be a scheme, then two colons. Also with none of
  // it.
  const std::size_t word = std::min(
      url.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-."),
      url.size());
  if (url.substr(word).starts_with("::")) return false;
  const auto plain_host = [](std::string_view authority) {
    // "user@host" or "host:port"; ssh would take either for an option when it begins with '-'.
    const std::string_view host = authority.substr(authority.rfind('@') + 1);
    return !host.empty() && authority.front() != '-' && host.front() != '-' &&
           host.front() != '%' && authority.front() != '%' &&
           authority.find_first_of(" \\\"'`$;&|<>(){}") == std::string_view::npos;
  };
  if (url.substr(word).starts_with("://")) {
    const std::string_view scheme = url.substr(0, word);
    if (std::find(schemes.begin(), schemes.end(), scheme) == schemes.end()) return false;
    const std::string_view rest = url.substr(word + 3);
    if (scheme == "file") return rest.starts_with('/');
    return !rest.empty() && plain_host(rest.substr(0, rest.find('/')));
  }
  const std::size_t colon = url.find(':'), slash = url.find('/');
  if (url.front() == '[') { // "[host:port]:path"
    const std::size_t end = url.find("]:");
    return end != none && end > 1 && end + 2 < url.size() && plain_host(url.substr(1, end - 1)) &&
           url[end + 2] != '-';
  }
  if (colon != none && (slash == none || colon < slash)) // scp's "host:path"
    return colon > 0 && colon + 1 < url.size() && plain_host(url.substr(0, colon)) &&
           url[colon + 1] != '-';
  return true; // a path, or the name of a remote
}

} // namespace nd7
