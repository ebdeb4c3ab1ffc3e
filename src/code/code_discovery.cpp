#include "code/code_discovery.hpp"

#include <algorithm>
#include <deque>

#include <fcntl.h>
#include <unistd.h>

#include "core/file.hpp"
#include "core/inline_script.hpp"
#include "core/notebook.hpp"
#include "core/text.hpp"

namespace pipeline::code {
namespace {

std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash);
}

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool is_python(std::string_view program) {
  return base_name(program).starts_with("python") || base_name(program).starts_with("pypy");
}

bool is_module_name(std::string_view text) {
  return !text.empty() && text.front() != '.' && text.front() != '-' && text.back() != '.' &&
         core::all(text, [](char c) { return core::is_alnum(c) || c == '_' || c == '.'; });
}

/// Returns the argument of `-c` among the first options after a program, or null.
const ShellWord* inline_script(const std::vector<ShellWord>& words, std::size_t program) {
  const auto found = core::inline_script(
      program, words.size(), [&](std::size_t i) -> std::string_view { return words[i].text; });
  return found ? &words[*found] : nullptr;
}

/// Returns the template's text with unknown_value for each of its placeholders.
std::string flatten(const Template& text) {
  std::string flat;
  for (const auto& part : text.parts) {
    if (const auto* literal = std::get_if<std::string>(&part))
      flat += *literal;
    else
      flat += unknown_value;
  }
  return flat;
}

std::vector<ShellWord> words_of(const Command& command) {
  std::vector<ShellWord> words;
  if (command.shell) {  // Its only argument is the script.
    for (const Template& script : command.arguments) words = shell_words(flatten(script));
  } else {
    for (const Template& argument : command.arguments) words.push_back({flatten(argument), 1});
  }
  return words;
}

}  // namespace

std::vector<std::string> CodeDiscovery::scripts_of(const Command& command) {
  std::vector<std::string> scripts;
  const auto words = words_of(command);
  if (!words.empty() && words[0].text.starts_with("./") &&
      words[0].text.find(unknown_value) == std::string::npos)
    scripts.push_back(words[0].text);
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i].text == "cd" || words[i].text == "pushd") return {};
    const std::string& script = words[i + 1].text;
    const bool is_script = is_python(words[i].text)
                               ? script.ends_with(".py")
                               : core::is_shell(words[i].text) && script.ends_with(".sh");
    if (is_script && !script.starts_with('-') && !script.starts_with('/') &&
        script.find(unknown_value) == script.npos)
      scripts.push_back(script);
  }
  return scripts;
}

std::string CodeSeeds::key() const {
  std::string key;
  const auto add = [&](const auto& group, auto&& text_of) {
    for (const auto& each : group) (key += text_of(each)) += '\0';
    key += '\0';
  };
  const auto first = [](const auto& pair) -> const std::string& { return pair.first; };
  const auto self = [](const std::string& text) -> const std::string& { return text; };
  add(files, first);
  add(folders, first);
  add(modules, first);
  add(scripts, self);
  add(looked_at, self);
  return key;
}

CodeSeeds CodeDiscovery::seeds_of(const Command& command, const std::string& python_path) {
  CodeSeeds seeds;
  seeds.looked_at.insert("");
  read_words(words_of(command), "", seeds);
  for (std::size_t begin = 0; begin < python_path.size();) {
    const auto end = std::min(python_path.find(':', begin), python_path.size());
    add_path(python_path.substr(begin, end - begin), {.text = "PYTHONPATH"}, seeds);
    begin = end + 1;
  }
  return seeds;
}

void CodeDiscovery::read_words(const std::vector<ShellWord>& words, const std::string& script,
                               CodeSeeds& seeds) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const ShellWord& word = words[i];
    read_word(word, script, seeds);
    if (word.text == "-m" && i + 1 < words.size() && is_module_name(words[i + 1].text))
      seeds.modules.emplace(words[i + 1].text, place_of(word, script).reason());
    if (is_python(word.text)) {
      if (const ShellWord* code = inline_script(words, i)) seeds.scripts.insert(code->text);
    } else if (core::is_shell(word.text)) {
      if (const ShellWord* code = inline_script(words, i))
        // An inline script is shorter than the text around it, so the recursion ends.
        read_words(shell_words(code->text), script, seeds);
    }
  }
}

void CodeDiscovery::read_word(const ShellWord& word, const std::string& script, CodeSeeds& seeds) {
  const Place place = place_of(word, script);
  std::string text = word.text;
  if (const auto unknown = text.rfind(unknown_value); unknown != std::string::npos) {
    // "$(dirname "$0")/lib.sh": the part after the unknown value is searched beside the script and
    // from the root.
    if (unknown + 2 >= text.size() || text[unknown + 1] != '/') return;
    text.erase(0, unknown + 2);
    if (script.empty()) return;
    add_path(join_path(folder_of(script), text), place, seeds);
  }
  if (!text.starts_with('-')) add_path(text, place, seeds);
  if (const auto equals = text.find('='); equals != std::string::npos)
    add_path(text.substr(equals + 1), place, seeds);
  if (text.starts_with('@')) add_path(text.substr(1), place, seeds);
}

std::string CodeDiscovery::Place::reason() const {
  std::string reason = "named in " + std::string(text);
  if (line > 0) reason += ":" + std::to_string(line);
  return reason;
}

CodeDiscovery::Place CodeDiscovery::place_of(const ShellWord& word, const std::string& script) {
  return script.empty() ? Place{} : Place{.text = script, .line = word.line};
}

void CodeDiscovery::add_path(const std::string& path, const Place& place, CodeSeeds& seeds) {
  constexpr std::size_t max_path = 1024;
  if (path.size() > max_path || path.find_first_of("\n\x01") != std::string::npos) return;
  const auto relative = normal_relative_path(path);
  if (!relative || relative->empty()) return;
  const bool is_script = place.line > 0;
  switch (tree_.kind(*relative)) {
    case CodeTree::Kind::file: seeds.files.emplace(*relative, place.reason()); break;
    case CodeTree::Kind::folder:
      // A folder that a script names, as in `mkdir -p out`, is not taken for code.
      if (!is_script) seeds.folders.emplace(*relative, place.reason());
      break;
    case CodeTree::Kind::none:
      if (!is_script && relative->find_first_of("./") != std::string::npos)
        tree_.check_left_out(*relative);
      for (std::string folder = folder_of(*relative); !folder.empty(); folder = folder_of(folder)) {
        if (tree_.kind(folder) != CodeTree::Kind::folder) continue;
        if (!is_script) tree_.check_submodule(folder);
        seeds.looked_at.insert(folder);
        break;
      }
  }
}

/// The state of follow().
struct CodeDiscovery::Search {
  std::map<std::string, std::string> files;
  std::deque<std::string> waiting;  ///< Files that have not been read yet.
  std::set<std::string>& looked_at;

  void add(const std::string& file, const std::string& reason) {
    if (files.emplace(file, reason).second) waiting.push_back(file);
  }
};

std::map<std::string, std::string> CodeDiscovery::follow(const CodeSeeds& seeds,
                                                         std::set<std::string>& looked_at) {
  Search search{{}, {}, looked_at};
  add_seeds(seeds, "imported by the command", search);
  while (!search.waiting.empty()) {
    const std::string file = std::move(search.waiting.front());
    search.waiting.pop_front();
    read_file(file, search);
  }
  return std::move(search.files);
}

void CodeDiscovery::add_seeds(const CodeSeeds& seeds, const std::string& what, Search& search) {
  for (const auto& [file, reason] : seeds.files) search.add(file, reason);
  for (const auto& [folder, reason] : seeds.folders)
    for (const auto& file : tree_.files_below(folder, search.looked_at)) search.add(file, reason);
  for (const auto& [module, reason] : seeds.modules) {
    for (const auto& file : find_module("", module)) search.add(file, reason);
    for (const auto& file : find_module("", module + ".__main__")) search.add(file, reason);
  }
  for (const auto& script : seeds.scripts)
    follow_imports(python_imports(script), "", "", what, search);
  search.looked_at.insert(seeds.looked_at.begin(), seeds.looked_at.end());
}

void CodeDiscovery::read_file(const std::string& file, Search& search) {
  const Source& source = source_of(file);
  if (source.language == Language::python)
    follow_imports(source.imports, file, folder_of(file), "imported by " + file, search);
  if (source.language != Language::shell) return;
  CodeSeeds seeds;
  read_words(source.words, file, seeds);
  add_seeds(seeds, "imported by " + file, search);
}

/// Adds the files of the imported modules. Python searches a module in the folder of the started
/// script, which may be any folder above the importing file: all folders up to the root are
/// searched.
/// @param file the importing file; empty for a script in a command
/// @param folder of the file
/// @param what the beginning of the reason, such as `imported by FILE`
void CodeDiscovery::follow_imports(const std::vector<PythonImport>& imports,
                                   const std::string& file, const std::string& folder,
                                   const std::string& what, Search& search) {
  const auto add = [&](const std::string& from, const std::string& module,
                       const PythonImport& import) {
    const std::string reason = file.empty() ? what : what + ":" + std::to_string(import.line);
    search.looked_at.insert(from);
    for (const auto& found : find_module(from, module)) search.add(found, reason);
    if (std::find(import.names.begin(), import.names.end(), "*") == import.names.end()) {
      for (const auto& name : import.names)
        for (const auto& found : find_module(from, module.empty() ? name : module + "." + name))
          search.add(found, reason);
      return;
    }
    // `from package import *` may import all modules of the package (`__all__`).
    std::string package = module;
    std::replace(package.begin(), package.end(), '.', '/');
    package = package.empty() ? from : join_path(from, package);
    if (tree_.kind(package) != CodeTree::Kind::folder || package.empty()) return;
    for (const auto& each : tree_.files_below(package, search.looked_at))
      if (folder_of(each) == package && each.ends_with(".py")) search.add(each, reason);
  };
  for (const PythonImport& import : imports) {
    if (import.level > 0) {
      std::string base = folder;
      bool inside = true;
      for (unsigned up = 1; up < import.level && inside; ++up)
        inside = !std::exchange(base, folder_of(base)).empty();
      if (!inside) continue;
      if (const auto init = join_path(base, "__init__.py");
          tree_.kind(init) == CodeTree::Kind::file)
        search.add(init, what + ":" + std::to_string(import.line));
      add(base, import.module, import);
      continue;
    }
    for (std::string from = folder;; from = folder_of(from)) {
      add(from, import.module, import);
      if (from.empty()) break;
    }
  }
}

std::vector<std::string> CodeDiscovery::find_module(const std::string& folder,
                                                    const std::string& dotted) {
  std::vector<std::string> files;
  std::string path = folder;
  for (std::size_t start = 0; start < dotted.size();) {
    const auto end = std::min(dotted.find('.', start), dotted.size());
    if (end == start) return {};
    path = join_path(path, dotted.substr(start, end - start));
    const bool is_last = end == dotted.size();
    start = end + 1;
    if (is_last && tree_.kind(path + ".py") == CodeTree::Kind::file) files.push_back(path + ".py");
    if (tree_.kind(path) != CodeTree::Kind::folder) {
      // In `from module import name`, the file is the module, not the name.
      return is_last && !files.empty() && files.back() == path + ".py" ? files
                                                                       : std::vector<std::string>{};
    }
    if (const auto init = path + "/__init__.py"; tree_.kind(init) == CodeTree::Kind::file)
      files.push_back(init);
  }
  return files;
}

const CodeDiscovery::Source& CodeDiscovery::source_of(const std::string& file) {
  constexpr std::uintmax_t max_source = 8u << 20;
  const auto known = sources_.find(file);
  if (known != sources_.end()) return known->second;
  Source source;
  const auto path = tree_.path_of(file);
  const auto name = base_name(file);
  const bool has_extension = name.find('.', 1) != std::string_view::npos;
  if (core::is_notebook(name)) {
    source.language = Language::python;
    if (const auto cells = core::notebook_code(path))
      source.imports = python_imports(core::python_of(*cells));
    return sources_.emplace(file, std::move(source)).first->second;
  }
  if (name.ends_with(".py") || name.ends_with(".pyw"))
    source.language = Language::python;
  else if (name.ends_with(".sh") || name.ends_with(".bash") || name.ends_with(".zsh") ||
           name.ends_with(".ksh"))
    source.language = Language::shell;
  else if (!has_extension) {
    std::string line(256, '\0');
    const core::Descriptor stream(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    const auto count = stream ? ::pread(stream.get(), line.data(), line.size(), 0) : 0;
    line.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    line = line.substr(0, line.find('\n'));
    if (line.starts_with("#!"))
      source.language = line.find("python") != std::string::npos ? Language::python
                        : line.find("sh") != std::string::npos   ? Language::shell
                                                                 : Language::none;
  }
  std::error_code error;
  if (source.language == Language::none || std::filesystem::file_size(path, error) > max_source ||
      error) {
    source.language = Language::none;
    return sources_.emplace(file, std::move(source)).first->second;
  }
  const std::string text = core::read_file(path);
  if (source.language == Language::python)
    source.imports = python_imports(text);
  else
    source.words = shell_words(text);
  return sources_.emplace(file, std::move(source)).first->second;
}

}  // namespace pipeline::code
