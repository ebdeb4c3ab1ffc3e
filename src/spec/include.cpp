#include "spec/include.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "core/quantity.hpp"
#include "settings/decode.hpp"
#include "spec/keys.hpp"
#include "spec/parameter_value.hpp"
#include "spec/unfilled.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

/// Maximum number of included files; a larger number is treated as a mistake.
constexpr std::size_t max_files = 1000;
/// Maximum length of a chain of files in which each includes the next.
constexpr unsigned max_depth = 20;
/// Maximum size of all included files together, bytes; the same as YamlLimits::bytes of one file.
constexpr std::size_t max_included = 16 << 20;
constexpr const char* expected_include =
    "a list of files, or of {file: FILE, prefix: NAME, parameters: {...}}";

constexpr settings::Format prefix_format{
    "a name of letters, digits, `_` and `-` that begins with a letter or digit",
    [](std::string_view text) {
      return core::is_name(text) && text.find('.') == std::string_view::npos;
    }};

/// Sets Span::file of the value and of all values in it.
void number_file(core::Value& value, unsigned number) {
  value.span.file = number;
  for (auto& item : value.items) number_file(item, number);
  for (auto& [key, member] : value.members) {
    number_file(key, number);
    number_file(member, number);
  }
}

}  // namespace

std::string FileScope::step_called(const std::string& name) const {
  for (const FileScope* scope = this; scope->parent; scope = scope->parent) {
    auto full = scope->prefix + name;
    const auto found = scope->step_files->find(full);
    if (found == scope->step_files->end()) continue;
    const auto first = std::ranges::lower_bound(found->second, scope->number);
    if (first != found->second.end() && *first < scope->end) return full;
  }
  return name;
}

Files::Files(core::Value root, fs::path file, std::string_view source,
             settings::Diagnostics& diagnostics)
    : diagnostics_(diagnostics), texts_{source} {
  auto& scope = scopes_.emplace_back();
  scope.file = std::move(file);
  scope.root = std::move(root);
  name_steps(scope);
  read_includes(scope);
}

std::vector<fs::path> Files::included() const {
  std::vector<fs::path> files;
  for (const FileScope& scope : scopes_)
    if (scope.parent) files.push_back(scope.file);
  return files;
}

void Files::name_steps(FileScope& scope) {
  if (!scope.parent) return;
  for (auto& [key, value] : scope.root.members) {
    if (key.scalar != "steps" || value.kind != core::Value::Kind::map) continue;
    for (auto& step : value.members) {
      step.first.scalar.insert(0, scope.prefix);
      auto& files = step_files_[step.first.scalar];
      if (files.empty() || files.back() != scope.number) files.push_back(scope.number);
    }
  }
}

void Files::read_includes(FileScope& scope) {
  if (const core::Value* include = scope.root.find("include")) {
    if (include->kind == core::Value::Kind::list)
      for (const core::Value& entry : include->items) this->include(scope, entry);
    else
      this->include(scope, *include);
  }
  scope.end = static_cast<unsigned>(scopes_.size());
  order_.push_back(&scope);
}

void Files::include(FileScope& parent, const core::Value& entry) {
  static const std::vector<std::string> keys{"file", "prefix", "parameters"};
  ++named_;
  FileScope made;
  made.parent = &parent;
  made.step_files = &step_files_;
  made.prefix = parent.prefix;
  made.span = entry.span;
  const core::Value* file = &entry;
  if (entry.kind == core::Value::Kind::map) {
    settings::report_unknown_keys(entry, keys, "an include", diagnostics_);
    file = entry.find("file");
    if (!file)
      return settings::report(diagnostics_, "missing-key", "this include has no 'file'",
                              entry.span);
    made.parameters = entry.find("parameters");
    if (const core::Value* prefix = entry.find("prefix"))
      if (const auto text = settings::read_text("prefix", *prefix, prefix_format, diagnostics_))
        made.prefix += *text + "-";
  } else if (entry.kind != core::Value::Kind::scalar) {
    return settings::report_type(diagnostics_, "include", expected_include, entry);
  }
  const auto name = settings::read_text("file", *file, settings::formats::path, diagnostics_);
  if (!name) return;
  if (fs::path(*name).is_absolute() || name->starts_with("~"))
    return settings::report(diagnostics_, "include-absolute",
                            "'" + *name + "' is not a path relative to the file that includes it",
                            file->span,
                            {"included files must stay beside the pipeline file when it is moved"});
  made.file = (parent.folder() / *name).lexically_normal();
  load(parent, *file, std::move(made));
}

/// Returns true if the file may be included. Reports a missing file, a file that includes itself,
/// and too many files.
bool Files::may_include(const FileScope& parent, const core::Value& place, const fs::path& file) {
  const auto refuse = [&](const char* code, const std::string& why,
                          std::vector<std::string> notes = {}) {
    settings::report(diagnostics_, code, why, place.span, std::move(notes));
    return false;
  };
  std::error_code error;
  if (!fs::is_regular_file(file, error))
    return refuse("missing-file", "the file '" + place.scalar + "' does not exist",
                  {"looked for " + file.string()});
  const auto identity = fs::weakly_canonical(file);
  unsigned depth = 1;
  for (const FileScope* scope = &parent; scope; scope = scope->parent, ++depth)
    if (fs::weakly_canonical(scope->file) == identity)
      return refuse("include-cycle", "the file '" + place.scalar + "' includes itself",
                    {scope == &parent ? "it is this file"
                                      : "this file is included by it, directly or by other files"});
  if (depth > max_depth)
    return refuse("include-cycle", "more than " + std::to_string(max_depth) +
                                       " files form a chain in which each includes the next");
  if (scopes_.size() > max_files)
    return refuse("include-cycle",
                  "more than " + std::to_string(max_files) + " files are included");
  return true;
}

void Files::load(FileScope& parent, const core::Value& place, FileScope made) {
  if (wrong_yaml_.contains(made.file) || !may_include(parent, place, made.file)) return;
  if (bytes_ > max_included) return;
  auto text = core::read_file(made.file);
  bytes_ += text.size();
  if (bytes_ > max_included)
    return settings::report(diagnostics_, "too-large",
                            "the included files have more than " +
                                core::format_bytes(max_included) +
                                " together, where one that is included twice counts twice",
                            place.span);
  made.number = static_cast<unsigned>(texts_.size());
  texts_.push_back(loaded_.emplace_back(std::move(text)));
  const auto before = diagnostics_.size();
  auto root = yaml::parse_yaml(texts_.back(), diagnostics_);
  if (root) {
    ++read_;
    check_unfilled(*root, diagnostics_);
  } else {
    wrong_yaml_.insert(made.file);
  }
  for (auto i = before; i < diagnostics_.size(); ++i) diagnostics_[i].span.file = made.number;
  if (root) number_file(*root, made.number);
  const bool is_map = root && root->kind == core::Value::Kind::map;
  if (root && !is_map)
    settings::report(
        diagnostics_, "wrong-type",
        "an included file must be a map with `steps`, not " + settings::describe(*root),
        root->span);
  made.root = is_map ? std::move(*root) : core::Value{.kind = core::Value::Kind::map};
  auto& scope = scopes_.emplace_back(std::move(made));
  if (is_map) {
    report_keys(scope.root, pipeline_keys, "an included file", diagnostics_);
    if (!scope.root.find("steps") && !scope.root.find("include") &&
        !has_misspelt(scope.root, "steps"))
      settings::report(diagnostics_, "missing-key", "an included file must have 'steps'",
                       scope.root.span);
  }
  name_steps(scope);
  read_includes(scope);
}

void give_parameters(FileScope& scope, const Defaults& given, settings::Diagnostics& diagnostics) {
  if (!scope.parameters) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : scope.defaults.parameters) names.push_back(name);
  const auto span_of = [&](const std::string& name) {
    for (const auto& [key, value] : scope.parameters->members)
      if (key.scalar == name) return key.span;
    for (const auto& item : scope.parameters->items)
      if (item.scalar == name) return item.span;
    return scope.parameters->span;
  };
  const bool takes_all = scope.parameters->kind == core::Value::Kind::scalar;
  const auto give = [&](const std::string& name, const Json& value) {
    const auto declared = scope.defaults.parameters.find(name);
    if (declared == scope.defaults.parameters.end()) {
      if (takes_all) return;
      settings::report(diagnostics, "unknown-parameter",
                       "the included file has no parameter '" + name + "'", span_of(name),
                       {"its parameters have their defaults under `parameters`"},
                       core::did_you_mean(name, names));
    } else if (std::string_view(kind_of(*declared->second)) != kind_of(*value)) {
      settings::report(diagnostics, "wrong-type",
                       "the parameter '" + name + "' of the included file is " +
                           kind_of(*declared->second) + ", not " + kind_of(*value),
                       span_of(name));
    } else {
      declared->second = value;
    }
  };
  for (const auto& [name, value] : given.parameters) give(name, value);
  for (const auto& name : given.taken_parameters)
    give(name, scope.parent->defaults.parameters.at(name));
}

}  // namespace pipeline::spec
