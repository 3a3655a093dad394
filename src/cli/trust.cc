// `nd7 trust`: accept the content of a project's .nd7.toml.
#include <cstdlib>

#include <fmt/format.h>

#include "base/bytes.h"
#include "cli/command.h"
#include "cli/ui.h"
#include "gate/plan_policy.h"
#include "os/files.h"

namespace nd7 {

const Usage usage_trust{
    .name = "trust",
    .summary = "accept the content of a project's .nd7.toml",
    .arguments = "[FILE]",
    .options = {},
    .details = "A project's file may only narrow the rules until a person has accepted it. Shows "
               "the file and asks; what is accepted are these very bytes at this place: any change "
               "asks again. Without FILE it is .nd7.toml in the current directory.",
    .example = "nd7 trust",
};

int cmd_trust(int argc, char** argv) {
  auto args = parse_options(usage_trust, argc, argv);
  if (!args) return args.error();
  if (args->rest().size() > 1) return usage_error(usage_trust, "one FILE at a time");
  const std::string named = args->rest().empty() ? ".nd7.toml" : args->rest()[0];
  auto places = find_places();
  if (!places) return say_error(places.error());
  // A session looks for it by the resolved directory of the project.
  char* real = ::realpath(named.c_str(), nullptr);
  if (real == nullptr) return say_error(os_error(named).error());
  const std::string path = real;
  std::free(real);
  if (path.substr(path.rfind('/') + 1) != ".nd7.toml")
    return say_error(fail(fmt::format("{} is no project's .nd7.toml", visible(path))).error());
  auto text = os::read_file(path, std::size_t{1} << 20);
  if (!text) return say_error(text.error());
  if (auto file = parse_policy(*text, path, PolicySource::trusted_project_file); !file)
    return say_error(file.error());
  if (is_trusted(places->state, path, *text)) {
    print(fmt::format("{} is accepted already\n", visible(path)));
    return finish_output(0);
  }
  std::size_t at = 0;
  while (at < text->size()) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    print("  " + visible(text->substr(at, end - at)) + "\n");
    at = end + 1;
  }
  if (!confirm(fmt::format("accept these rules for sessions in {}?",
                           visible(path.substr(0, path.rfind('/'))))))
    return say_error(fail("not accepted", "answer at a terminal").error());
  if (auto ok = set_trusted(places->state, path, *text); !ok) return say_error(ok.error());
  print(fmt::format("{} is accepted\n", visible(path)));
  return finish_output(0);
}

} // namespace nd7
