#include "cli/failure_text.hpp"

#include <map>

#include "driver/run_model.hpp"

namespace pipeline::cli {
namespace {

std::string render(const model::FailureGroup& group, const RunCommands& commands,
                   const Paint& paint) {
  constexpr std::size_t last_lines = 15;
  const auto& [kind, message, hints, details] = group.failure;
  std::string text = paint(Colour::red, for_terminal(names_of(group)) + " failed: ") +
                     for_terminal(message) + "\n";
  const bool is_log = !model::is_of_environment(kind);
  for (std::size_t i = is_log && details.size() > last_lines ? details.size() - last_lines : 0;
       i < details.size(); ++i)
    text += "  " + paint(Colour::dim, "| ") + for_terminal(details[i], paint.on) + "\n";
  for (const auto& hint : hints)
    text += "  " + paint(Colour::cyan, "hint: ") + for_terminal(hint) + "\n";
  if (is_log && !details.empty())
    text += "  its whole output: " + commands.line("logs", group.steps.front()) + "\n";
  return text;
}

}  // namespace

std::string render_failures(std::vector<model::StepFailure> failures, const RunCommands& commands,
                            const Paint& paint) {
  constexpr std::size_t max_of_matrix = 5;
  std::map<std::string, std::size_t> shown, left_out;
  std::string text;
  std::size_t count = 0;
  for (const auto& group : model::group_failures(std::move(failures))) {
    const bool is_matrix = !group.matrix.empty();
    if (count == driver::many_steps || (is_matrix && shown[group.matrix] == max_of_matrix)) {
      left_out[group.matrix] += group.steps.size();
      continue;
    }
    ++count;
    if (is_matrix) ++shown[group.matrix];
    text += "\n" + render(group, commands, paint);
  }
  for (const auto& [matrix, steps] : left_out)
    text += "\n" + counted(steps, "more step") + (matrix.empty() ? "" : " of '" + matrix + "'") +
            " failed for other reasons\n";
  return text;
}

}  // namespace pipeline::cli
