/// @file
/// The files that a command uses, found by reading: what it names, what Python files import, what
/// shell scripts name.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include <pipeline/spec.hpp>

#include "spec/code_tree.hpp"
#include "spec/python_imports.hpp"
#include "spec/shell_words.hpp"

namespace pipeline::spec {

/// Where the search begins: what a command itself says.
struct CodeSeeds {
  std::map<std::string, std::string> files;  ///< Path to reason.
  std::map<std::string, std::string> folders;
  std::map<std::string, std::string> modules;  ///< `python -m`, dotted.
  std::set<std::string> scripts;               ///< `python -c`
  std::set<std::string> looked_at;             ///< Folders in which a named file might appear.
  std::string key() const;                     ///< Equal for equal seeds.
};

class CodeDiscovery {
 public:
  explicit CodeDiscovery(CodeTree& tree) : tree_(tree) {}
  CodeSeeds seeds_of(const Command& command);
  /// The scripts, as written, that the command hands to Python or a shell; none where it changes
  /// the folder.
  std::vector<std::string> scripts_of(const Command& command);
  /// All files with the reason why each belongs to it.
  std::map<std::string, std::string> follow(const CodeSeeds& seeds,
                                            std::set<std::string>& looked_at);
  /// The files of the module `dotted`, seen from the folder; without following what they import.
  std::vector<std::string> find_module(const std::string& folder, const std::string& dotted);

 private:
  struct Search;
  void read_words(const std::vector<ShellWord>& words, bool is_command, const std::string& script,
                  CodeSeeds& seeds);
  void read_word(const ShellWord& word, bool is_command, const std::string& script,
                 CodeSeeds& seeds);
  void add_path(const std::string& path, bool is_command, const std::string& reason,
                CodeSeeds& seeds);
  void read_file(const std::string& file, Search& search);
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

}  // namespace pipeline::spec
