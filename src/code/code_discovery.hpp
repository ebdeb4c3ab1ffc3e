/// @file
/// Finds the files that a command uses by static analysis: the files that the command names, those
/// that Python files import, and those that shell scripts name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <pipeline/spec.hpp>

#include "code/code_tree.hpp"
#include "code/python_imports.hpp"
#include "code/shell_words.hpp"

namespace pipeline::code {

/// The starting points of the search, taken from the command itself. The maps lead from a path or
/// name to the reason why it is included. All paths are relative to the pipeline's folder.
struct CodeSeeds {
  std::map<std::string, std::string> files;
  std::map<std::string, std::string> folders;
  std::map<std::string, std::string> modules;  ///< Dotted names given to `python -m`.
  std::set<std::string> scripts;               ///< Sources given to `python -c`.
  std::set<std::string> looked_at;  ///< Folders in which a named file might appear later.
  std::string key() const;          ///< Equal for equal seeds.
};

/// Remembers the imports and words of the files that it has read, for all commands of a pipeline.
class CodeDiscovery {
 public:
  explicit CodeDiscovery(CodeTree& tree) : tree_(tree) {}
  /// @param python_path the value of the step's variable PYTHONPATH: its folders are code, as those
  /// that the command names
  CodeSeeds seeds_of(const Command& command, const std::string& python_path);
  /// Returns the scripts that the command passes to Python or a shell, as written; none if the
  /// command changes the folder.
  std::vector<std::string> scripts_of(const Command& command);
  /// Returns all files that are reachable from the seeds, with the reason for each.
  /// @param looked_at receives the folders and files that the result depends on
  std::map<std::string, std::string> follow(const CodeSeeds& seeds,
                                            std::set<std::string>& looked_at);
  /// Returns the files of the module `dotted`, resolved from the folder; does not follow their
  /// imports.
  std::vector<std::string> find_module(const std::string& folder, const std::string& dotted);

 private:
  struct Search;
  /// The text that names a path: the step's command or PYTHONPATH, or a line of a script.
  struct Place {
    std::string_view text = "command";
    unsigned line = 0;  ///< Above 0 for a script.
    /// Returns why a file that is named here is included.
    std::string reason() const;
  };
  static Place place_of(const ShellWord& word, const std::string& script);
  /// @param script the file that has the words; empty for the command
  void read_words(const std::vector<ShellWord>& words, const std::string& script, CodeSeeds& seeds);
  void read_word(const ShellWord& word, const std::string& script, CodeSeeds& seeds);
  void add_path(const std::string& path, const Place& place, CodeSeeds& seeds);
  void read_file(const std::string& file, Search& search);
  /// Adds the files that the seeds name or import.
  /// @param what the beginning of the reason for the imports of the seeds' scripts
  void add_seeds(const CodeSeeds& seeds, const std::string& what, Search& search);
  void follow_imports(const std::vector<PythonImport>& imports, const std::string& file,
                      const std::string& folder, const std::string& what, Search& search);

  CodeTree& tree_;
  enum class Language { none, python, shell };
  struct Source {
    Language language = Language::none;
    std::vector<PythonImport> imports;
    std::vector<ShellWord> words;
  };
  const Source& source_of(const std::string& file);
  std::unordered_map<std::string, Source> sources_;
};

}  // namespace pipeline::code
