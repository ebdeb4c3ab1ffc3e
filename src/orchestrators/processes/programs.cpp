#include "orchestrators/processes/programs.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "core/file.hpp"
#include "orchestrators/processes/process.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

/// Returns true for a word that can be the name of a program: it has no expansions, and is neither
/// a keyword nor a command of the shell itself.
bool is_program_word(std::string_view word) {
  static const std::set<std::string_view> shell_words = {
      "if",     "then",  "else", "elif", "fi",   "for",   "do",     "done", "while",
      "until",  "case",  "esac", "in",   "set",  "cd",    "export", "exit", "return",
      "shift",  "unset", "trap", "eval", "read", "wait",  "true",   "test", "echo",
      "printf", "[",     ":",    "exec", "time", "break", "local",  "umask"};
  return !word.empty() && !shell_words.contains(word) &&
         std::all_of(word.begin(), word.end(), [](unsigned char c) {
           return std::isalnum(c) ||
                  std::string_view("._+-/").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

std::string first_line(const fs::path& file) {
  if (access(file.c_str(), R_OK) != 0) return {};
  const auto text = core::read_if_file(file);
  return text.substr(0, text.find('\n'));
}

/// Returns the file's size and time of change.
std::string stamp(const fs::path& file) {
  struct stat info;
  if (stat(file.c_str(), &info) != 0) return "none";
  return std::to_string(info.st_size) + "@" + std::to_string(info.st_mtim.tv_sec) + "." +
         std::to_string(info.st_mtim.tv_nsec);
}

bool is_version(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
}

/// Returns `3.11` for `/usr/bin/python3.11`, and `3.11.7` for
/// `~/.pyenv/versions/3.11.7/bin/python`.
/// @param real the file that `file` leads to
std::string version_of(const fs::path& file, const fs::path& real) {
  const auto home = file.parent_path().parent_path();
  if (home.parent_path().filename() == "versions" && is_version(home.filename().string()))
    return home.filename().string();
  const auto name = real.filename().string();
  return name.starts_with("python3.") && is_version(name.substr(6)) ? name.substr(6) : "";
}

/// Returns the version or the environment that pyenv chooses, if the file is one of its shims,
/// scripts that start the Python of the choice.
std::optional<std::string> choice_of_pyenv(const fs::path& file, const fs::path& root) {
  const auto bin = file.parent_path();
  if (bin.filename() != "shims") return std::nullopt;
  const char* chosen = std::getenv("PYENV_VERSION");
  auto choice = chosen ? std::string(chosen) : first_line(root / ".python-version");
  return choice.empty() ? first_line(bin.parent_path() / "version") : choice;
}

/// Returns the Python that the shim starts; an empty path if there is no such file.
fs::path behind_shim(const fs::path& shim, const std::string& choice) {
  if (choice.empty() || choice.find('/') != choice.npos) return {};
  auto file = shim.parent_path().parent_path() / "versions" / choice / "bin" / shim.filename();
  return access(file.c_str(), X_OK) == 0 ? file : fs::path();
}

/// Adds what identifies a Python besides the executable's file.
void describe_python(FoundProgram& program, const fs::path& real) {
  program.version = version_of(program.file, real);
  const auto home = program.file.parent_path().parent_path();
  if (!fs::exists(home / "pyvenv.cfg")) return;
  program.identity += " venv " + home.string();
  std::error_code error;
  // The installation of a package changes the time of `site-packages`.
  for (auto& entry : fs::directory_iterator(home / "lib", error))
    program.identity += " " + stamp(entry.path() / "site-packages");
}

}  // namespace

std::vector<std::string> programs_of(const Command& command) {
  std::vector<std::string> programs;
  if (command.arguments.empty() || command.arguments[0].parts.empty()) return programs;
  const auto& parts = command.arguments[0].parts;
  if (!command.shell) {
    const auto name = parts.only_text();
    if (name && (name->find('/') == name->npos || name->front() == '/'))
      programs.emplace_back(*name);
    return programs;
  }
  std::string line;
  for (const auto& part : parts)
    line += std::holds_alternative<std::string>(part) ? std::get<std::string>(part) : "\x01";
  bool first = true;  // The current word is the first of a simple command.
  std::string word;
  auto end_of_word = [&] {
    if (word.empty()) return;
    if (first && word.find('=') == word.npos) {
      if (is_program_word(word) && (word.find('/') == word.npos || word.front() == '/') &&
          std::find(programs.begin(), programs.end(), word) == programs.end())
        programs.push_back(word);
      first = word == "exec" || word == "time" || word == "then" || word == "do" ||
              word == "else" || word == "if" || word == "while" || word == "until" || word == "!";
    }
    word.clear();
  };
  for (char c : line) {
    if (std::string_view(" \t").find(c) != std::string_view::npos) {
      end_of_word();
    } else if (std::string_view("\n;&|(){}`").find(c) != std::string_view::npos) {
      end_of_word();
      first = true;
    } else {
      word += c;
    }
  }
  end_of_word();
  return programs;
}

const FoundProgram& Programs::find(const std::string& name) {
  auto [entry, is_new] = found_.try_emplace(name);
  auto& program = entry->second;
  if (!is_new) return program;
  program.file = find_program(name, path_, root_);
  if (program.file.empty() && name == "python")
    program.file = find_program("python3", path_, root_);
  if (program.file.empty()) {
    program.identity = "missing";
    return program;
  }
  const bool is_python = fs::path(name).filename().string().starts_with("python");
  const auto choice = is_python ? choice_of_pyenv(program.file, root_) : std::nullopt;
  auto behind = choice ? behind_shim(program.file, *choice) : fs::path();
  const bool is_shim = choice && behind.empty();
  // A Python that the shim has started has its own folder first on PATH, so that its `python3` is
  // this file. The shim takes ten times as long to start as well.
  if (!behind.empty()) program.file = std::move(behind);
  std::error_code error;
  auto real = fs::canonical(program.file, error);
  program.identity = program.file.string() + " " + real.string() + " " + stamp(program.file);
  if (is_python) describe_python(program, real);
  if (is_shim) {
    program.identity += " pyenv " + *choice;
    if (is_version(*choice)) program.version = *choice;
  }
  return program;
}

std::optional<std::string> python_of_image(std::string_view reference) {
  auto colon = reference.rfind(':');
  if (colon == reference.npos) return {};
  auto name = reference.substr(0, colon), tag = reference.substr(colon + 1);
  if (name != "python" && !name.ends_with("/python")) return {};
  auto version = tag.substr(0, tag.find_first_not_of("0123456789."));
  auto dot = version.find('.');
  if (dot == version.npos) return {};
  return std::string(version.substr(0, version.find('.', dot + 1)));
}

}  // namespace pipeline::orchestrators::processes
