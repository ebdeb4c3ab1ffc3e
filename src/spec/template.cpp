#include "spec/template.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "core/diagnostic.hpp"
#include "core/identifier.hpp"
#include "core/joined.hpp"
#include "spec/parameter_value.hpp"

namespace pipeline::spec {
namespace {

/// The names of `${PREFIX.NAME}` with the same prefix.
struct Group {
  const char* prefix;
  Template::Placeholder placeholder;
  std::vector<std::string> TemplateNames::*names;
  const char* noun;  ///< Such as `input`, for messages.
};

constexpr std::array group_names{
    Group{"inputs", Template::Placeholder::input, &TemplateNames::inputs, "input"},
    Group{"outputs", Template::Placeholder::output, &TemplateNames::outputs, "output"},
    Group{"params", Template::Placeholder::parameter, &TemplateNames::parameters, "parameter"},
    Group{"env", Template::Placeholder::environment, &TemplateNames::environment,
          "declared variable"},
};
constexpr const char* allowed_text =
    "allowed: ${inputs.X}, ${outputs.X}, ${params.X}, ${env.X}, ${run.id}, ${step.name}, "
    "${checkpoint}";

/// Returns every reference that the step may use, for suggestions.
std::vector<std::string> all_names(const TemplateNames& names) {
  std::vector<std::string> all{"run.id", "step.name", "checkpoint"};
  if (names.has_nodes) all.insert(all.end(), {"node.rank", "node.count"});
  for (const Group& group : group_names)
    for (const auto& name : names.*group.names)
      all.push_back(std::string(group.prefix) + "." + name);
  return all;
}

/// Returns the reference that `expression`, the text within `${...}`, makes. Returns nothing for an
/// unknown one, and describes the error in `problem`.
std::optional<Template::Reference> resolve(std::string_view expression, const TemplateNames& names,
                                           TemplateProblem& problem) {
  if (expression == "run.id") return Template::Reference{Template::Placeholder::run_id, ""};
  if (expression == "step.name") return Template::Reference{Template::Placeholder::step_name, ""};
  if (expression == "checkpoint") return Template::Reference{Template::Placeholder::checkpoint, ""};
  const bool is_node_rank = expression == "node.rank";
  if (names.has_nodes && (is_node_rank || expression == "node.count"))
    return Template::Reference{
        is_node_rank ? Template::Placeholder::node_rank : Template::Placeholder::node_count, ""};
  const auto dot = expression.find('.');
  const auto prefix = expression.substr(0, dot);
  const auto name = dot == std::string_view::npos ? std::string_view{} : expression.substr(dot + 1);
  for (const Group& group : group_names) {
    if (prefix != group.prefix || dot == std::string_view::npos) continue;
    const auto& known = names.*group.names;
    if (std::binary_search(known.begin(), known.end(), name))
      return Template::Reference{group.placeholder, std::string(name)};
    if (group.placeholder == Template::Placeholder::parameter && names.values) {
      const auto end = std::min(name.find('.'), name.size());
      const auto found = names.values->find(std::string(name.substr(0, end)));
      if (end < name.size() && found != names.values->end()) {
        auto member = member_of(found->first, *found->second, name.substr(end + 1));
        if (member.value) return Template::Reference{group.placeholder, std::string(name)};
        problem.message = std::move(member.problem);
        problem.suggestion = std::move(member.suggestion);
        return std::nullopt;
      }
    }
    problem.message = "the step has no " + std::string(group.noun) + " '" + std::string(name) + "'";
    problem.suggestion = core::did_you_mean(name, known);
    if (!known.empty()) problem.notes.push_back("it has: " + core::joined(known, ", "));
    if (group.placeholder == Template::Placeholder::environment)
      problem.notes.push_back("`environment: [" + std::string(name) +
                              "]` declares it, with the caller's value");
    for (const Group& other : group_names)
      if (problem.suggestion.empty() &&
          std::binary_search((names.*other.names).begin(), (names.*other.names).end(), name))
        problem.suggestion =
            "did you mean '" + std::string(other.prefix) + "." + std::string(name) + "'?";
    return std::nullopt;
  }
  problem.message = "unknown name '" + std::string(expression) + "' in ${...}";
  problem.suggestion = core::did_you_mean(expression, all_names(names));
  problem.notes.push_back(allowed_text);
  if (names.has_nodes || prefix == "node")
    problem.notes.push_back("in a step with `nodes` also ${node.rank} and ${node.count}");
  if (core::is_variable_name(expression))
    problem.notes.push_back("for a variable of the shell write $" + std::string(expression) +
                            " or $${" + std::string(expression) + "}");
  else
    problem.notes.push_back("for a literal `${` write `$${`");
  return std::nullopt;
}

}  // namespace

Template parse_template(std::string_view text, const TemplateNames& names,
                        std::vector<TemplateProblem>& problems) {
  Template result;
  std::string literal;
  const auto flush = [&] {
    if (!literal.empty()) result.parts.emplace_back(std::exchange(literal, {}));
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto dollar = std::min(text.find('$', i), text.size());
    literal += text.substr(i, dollar - i);
    i = dollar;
    const auto rest = text.substr(i);
    if (rest.starts_with("$${")) {
      literal += "${";
      i += 3;
    } else if (rest.starts_with("${")) {
      const auto end = rest.find_first_of("}\n");
      if (end == std::string_view::npos || rest[end] == '\n') {
        problems.push_back({i,
                            2,
                            "bad-template",
                            "this `${` is not closed with `}`",
                            {"for a literal `${` write `$${`"},
                            {}});
        return result;
      }
      TemplateProblem problem{i, end + 1, "unknown-reference", {}, {}, {}};
      flush();
      if (auto reference = resolve(rest.substr(2, end - 2), names, problem))
        result.parts.emplace_back(*reference);
      else
        problems.push_back(std::move(problem));
      i += end + 1;
    } else if (!rest.empty()) {
      literal += '$';
      ++i;
    }
  }
  flush();
  result.parts.shrink_to_fit();  // Each step of a large pipeline has some.
  return result;
}

}  // namespace pipeline::spec
