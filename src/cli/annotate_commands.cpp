// `pipe tag` and `pipe note`: tags of a run, and a note to it.
#include <algorithm>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "cli/run_records.hpp"
#include "core/diagnostic.hpp"
#include "core/utf8.hpp"
#include "report/run_values.hpp"

namespace pipeline::cli {
namespace {

void check_text(const std::string& what, const std::string& text, std::size_t max_bytes) {
  const bool has_control = std::ranges::any_of(
      text, [](unsigned char c) { return (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f; });
  if (text.size() > max_bytes || has_control || !core::is_utf8(text))
    throw core::InputError(what + " must be text of at most " + std::to_string(max_bytes) +
                           " bytes without control characters");
}

}  // namespace

core::ExitCode tag_command(Context& context) {
  const auto& given = context.options().tag;
  auto& store = context.existing_store();
  auto run = context.find_run(store);
  for (const auto& tag : given.added) {
    constexpr std::size_t max_bytes = 100;
    if (tag.empty()) throw core::InputError("a tag must not be empty");
    check_text("a tag", tag, max_bytes);
    if (std::ranges::find(run.tags, tag) == run.tags.end()) run.tags.push_back(tag);
  }
  for (const auto& tag : given.removed)
    if (std::erase(run.tags, tag) == 0)
      throw core::InputError("run " + run.id + " has no tag '" + tag + "'",
                             core::did_you_mean(tag, run.tags));
  if (!given.added.empty() || !given.removed.empty()) store.runs().set_tags(run.id, run.tags);
  if (context.options().json)
    context.print_json(run_json(run));
  else
    context.print("run " + run.id + ": " + (run.tags.empty() ? "no tags" : report::tags_of(run)) +
                  "\n");
  return core::ExitCode::ok;
}

core::ExitCode note_command(Context& context) {
  const auto& note = context.options().note.text;
  auto& store = context.existing_store();
  auto run = context.find_run(store);
  if (note) {
    constexpr std::size_t max_bytes = 10'000;
    check_text("a note", *note, max_bytes);
    run.note = *note;
    store.runs().set_note(run.id, run.note);
  }
  if (context.options().json)
    context.print_json(run_json(run));
  else
    context.print("run " + run.id + ": " + (run.note.empty() ? "no note" : run.note) + "\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
