#include "spec/code_resolver.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "code/code_discovery.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/joined.hpp"
#include "core/own_files.hpp"
#include "python_packages/python_packages.hpp"
#include "spec/failure_advice.hpp"
#include "spec/missing_file.hpp"

namespace pipeline::spec {

namespace {

/// Returns the advice to add a file of the pipeline's folder, `missing`, to the step's `code`.
std::string code_advice(const StepSpec& step, const CodeSet& code, const std::string& missing) {
  constexpr std::size_t max_listed = 12;
  const std::string quotes =
      missing.find_first_of(" #,:[]{}'\"*&!|>%@`") == std::string::npos ? "" : "\"";
  std::vector<std::string> entries;
  if (*step.code) {
    entries = step.code->items();
  } else if (code.files.size() <= max_listed) {
    for (const CodeFile& file : code.files) entries.push_back(file.relative_path);
  } else {
    return "'" + missing + "' is in the pipeline's folder but is not a part of the code of step '" +
           step.name + "': list all that it uses under its `code:`, or add `code: .`";
  }
  entries.push_back(quotes + missing + quotes);
  return "'" + missing + "' is in the pipeline's folder but is not a part of the code of step '" +
         step.name + "': add `code: [" + core::joined(entries, ", ") + "]` to the step";
}

/// A folder that the code paths of some steps refer to.
struct CodeFolder {
  explicit CodeFolder(const std::filesystem::path& folder)
      : root(folder), tree(folder), discovery(tree) {}

  const CodeSet& code_of(const StepSpec& step) {
    if (*step.code) return listed(step.code->items());
    const auto variable = step.environment.find("PYTHONPATH");
    return found(step.command, variable == step.environment.end()
                                   ? std::string()
                                   : variable->second.value_or(std::string()));
  }

  /// Returns the files that a step's `code` lists.
  const CodeSet& listed(const std::vector<std::string>& patterns) {
    std::string key = "listed";
    for (const auto& pattern : patterns) (key += '\0') += pattern;
    return remember(
        key, [&](std::map<std::string, std::string>& files, std::set<std::string>& looked_at) {
          for (const auto& pattern : patterns)
            for (auto& file : tree.expand(pattern, looked_at))
              files.emplace(std::move(file), "code: " + pattern);
        });
  }

  /// Returns the files that the command and the variable PYTHONPATH name, and those that they
  /// import.
  const CodeSet& found(const Command& command, const std::string& python_path) {
    // The instances of a step have one command.
    if (last_found && command == last_command && python_path == last_python_path)
      return *last_found;
    const code::CodeSeeds seeds = discovery.seeds_of(command, python_path);
    last_found = &remember(seeds.key(), [&](std::map<std::string, std::string>& files,
                                            std::set<std::string>& looked_at) {
      files = discovery.follow(seeds, looked_at);
    });
    last_command = command;
    last_python_path = python_path;
    return *last_found;
  }

  /// Returns the set of files for `key`, which `find` fills on the first call.
  template <class Find>
  const CodeSet& remember(const std::string& key, Find find) {
    if (const auto known = sets.find(key); known != sets.end()) return *known->second;
    std::map<std::string, std::string> files;
    std::set<std::string> looked_at;
    find(files, looked_at);
    std::erase_if(files,
                  [&](const auto& file) { return core::is_own_file(tree.path_of(file.first)); });
    auto set = std::make_unique<CodeSet>();
    for (auto& [path, reason] : files)
      set->files.push_back({path, tree.path_of(path), std::move(reason)});
    for (const auto& path : looked_at) set->looked_at.push_back(tree.path_of(path));
    return *(sets[key] = std::move(set));
  }

  /// Returns true if there is a file or folder at the path, outside of state folders, which hold
  /// only pipe's own files.
  bool is_users_path(const std::string& relative) {
    for (auto path = std::filesystem::path(relative); !path.empty(); path = path.parent_path())
      if (core::is_state_folder(root / path)) return false;
    return tree.kind(relative) != code::CodeTree::Kind::none;
  }

  /// Returns the path, relative to `root`, of the file that a printed path refers to. An absolute
  /// path may be a container's, so that only its end has to match.
  std::optional<std::string> locate(const std::string& printed) {
    std::string path = printed;
    if (!path.starts_with('/')) {
      const auto relative = code::normal_relative_path(path);
      if (relative && !relative->empty() && is_users_path(*relative)) return relative;
      return std::nullopt;
    }
    while (!path.empty()) {
      path.erase(0, path.find_first_not_of('/'));
      if (const auto relative = code::normal_relative_path(path);
          relative && !relative->empty() && is_users_path(*relative))
        return relative;
      const auto slash = path.find('/');
      path = slash == std::string::npos ? std::string() : path.substr(slash);
    }
    return std::nullopt;
  }

  /// Returns advice for a file of this machine that the step named by its absolute path.
  std::optional<std::string> absolute_advice(const StepSpec& step, const CodeSet& code,
                                             const std::string& path) {
    if (!path.starts_with('/')) return std::nullopt;
    const auto relative = std::filesystem::path(path).lexically_relative(root).string();
    if (relative.empty() || relative.starts_with("..")) return outside_advice(path);
    const auto known = code::normal_relative_path(relative);
    if (!known || known->empty() || !is_users_path(*known)) return std::nullopt;
    return "read '" + *known + "', relative to the step's folder, instead of '" + path + "'" +
           (has(code, *known) ? "" : "; " + code_advice(step, code, *known));
  }

  bool has(const CodeSet& code, const std::string& path) const {
    return std::any_of(code.files.begin(), code.files.end(), [&](const CodeFile& file) {
      return file.relative_path == path || file.relative_path.starts_with(path + "/");
    });
  }

  /// Returns advice for a script that the command names and the folder lacks.
  std::string script_advice(const std::string& script) {
    std::set<std::string> looked_at;
    const auto files = tree.files_below("", looked_at);
    const auto meant = core::did_you_mean(script, files);
    return "there is no file '" + script + "' in the pipeline's folder" +
           (meant.empty() ? "" : ": " + meant);
  }

  /// Returns advice for a module that Python does not find by itself, because it is elsewhere in
  /// the folder, or in a package.
  std::string module_advice(const StepSpec& step, const CodeSet& code, const std::string& module) {
    std::string path = module.substr(0, module.find('.'));
    std::set<std::string> looked_at;
    for (const auto& file : tree.files_below("", looked_at))
      if ((file.ends_with("/" + path + ".py") || file.ends_with("/" + path + "/__init__.py")) &&
          !has(code, file))
        return code_advice(step, code, file);
    return "the step's environment has no module '" + module +
           "': add its package, as `settings: {docker: {requirements: [" +
           python_packages::package_of(module) + "]}}`";
  }

  const std::filesystem::path root;
  code::CodeTree tree;
  code::CodeDiscovery discovery;
  std::unordered_map<std::string, std::unique_ptr<CodeSet>> sets;
  Command last_command;  ///< The command that found() had last.
  std::string last_python_path;
  const CodeSet* last_found = nullptr;  ///< The files of that command; null before the first call.
};

}  // namespace

struct CodeResolver::Implementation {
  explicit Implementation(const PipelineSpec& pipeline) : root(pipeline.root) {}

  CodeFolder& folder_at(const std::filesystem::path& folder) {
    auto& known = folders[folder.empty() ? root : folder];
    if (!known) known = std::make_unique<CodeFolder>(folder.empty() ? root : folder);
    return *known;
  }
  CodeFolder& folder_of(const StepSpec& step) { return folder_at(step.code_root); }

  const std::filesystem::path root;
  std::map<std::filesystem::path, std::unique_ptr<CodeFolder>> folders;
};

CodeResolver::CodeResolver(const PipelineSpec& pipeline)
    : self_(std::make_unique<Implementation>(pipeline)) {}
CodeResolver::~CodeResolver() = default;

const CodeSet& CodeResolver::code_of(const StepSpec& step) {
  return self_->folder_of(step).code_of(step);
}

std::optional<std::string> CodeResolver::failure_advice(const StepSpec& step,
                                                        std::string_view output) {
  CodeFolder& folder = self_->folder_of(step);
  const CodeSet& code = folder.code_of(step);
  const MissingNames names = missing_names(output);
  for (const auto& module : names.modules) {
    std::string path = module;
    std::replace(path.begin(), path.end(), '.', '/');
    for (const auto& candidate : {path + ".py", path})
      if (const auto found = folder.locate(candidate); found && !folder.has(code, *found))
        return code_advice(step, code, *found);
  }
  for (const auto& script : missing_scripts(step))
    if (std::ranges::any_of(names.paths, [&](const std::string& path) {
          return path == script || path.ends_with("/" + script);
        }))
      return folder.script_advice(script);
  const auto refused = refused_files(output);
  for (const auto* paths : {&refused, &names.paths})
    for (const auto& path : *paths)
      if (auto advice = folder.absolute_advice(step, code, path)) return advice;
  for (const auto& path : names.paths) {
    try {
      if (const auto found = folder.locate(path); found && !folder.has(code, *found))
        return code_advice(step, code, *found);
    } catch (const core::InputError& error) {
      return error.diagnostics().front().message;
    }
  }
  if (!names.modules.empty()) return folder.module_advice(step, code, names.modules.front());
  return write_advice(output);
}

std::vector<std::string> CodeResolver::missing_scripts(const StepSpec& step) {
  std::vector<std::string> missing;
  CodeFolder& folder = self_->folder_of(step);
  for (const auto& script : folder.discovery.scripts_of(step.command))
    if (const auto path = code::normal_relative_path(script);
        path && !step.files.contains(*path) &&
        folder.tree.kind(*path) == code::CodeTree::Kind::none)
      missing.push_back(script);
  return missing;
}

std::vector<std::string> CodeResolver::all_files() {
  std::set<std::string> looked_at;
  return self_->folder_at({}).tree.files_below("", looked_at);
}

}  // namespace pipeline::spec
