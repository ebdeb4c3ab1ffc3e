/// @file
/// The project of a command: the folders whose files other people may have written, such as a
/// cloned repository. The project is global state of the process, like its working folder: the
/// command line sets it once, before it reads a file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pipeline::core {

/// The purpose of a command. A command with `look`, such as `pipe plan`, runs no program and loads
/// no code that the project could have chosen.
enum class Purpose { run, look };

/// Sets the project of this process.
/// @param folder the pipeline's folder. The project is the git repository around it, or else the
/// folder alone. The user's home folder and the folders above it are not a project.
/// @param servers returns the addresses of servers that the user has named for credentials; called
/// once, when needed
void set_project(const std::filesystem::path& folder, Purpose purpose,
                 std::function<std::vector<std::string>()> servers = {});

/// Returns true if credentials may be sent to the server, because the user has named it, and not
/// only a file of the project. Without a project, returns true for every server.
bool is_named_server(const std::string& url);

/// Returns true if the command's purpose is `look`.
bool only_looks();

/// Returns true if the file, or the target of a link, is in the project.
bool is_in_project(const std::filesystem::path& file);

/// Returns true if messages may not show the file's content: there is a project, but the file, or
/// the target of a link, is in none of its folders.
bool is_outside_project(const std::filesystem::path& file);

/// Returns the environment of programs that are not steps, as `NAME=VALUE`, without the variables
/// by which interpreters find modules. In a command that only looks, PATH and the loader's
/// variables also lack the folders of the project.
/// @param own variables that are added, and replace those of the same names
std::vector<std::string> tool_environment(const std::vector<std::string>& own = {});

/// Returns the PATH in which tools are searched.
std::string tool_path();

/// Returns the file of the program as execvp(3) would find it in tool_path(); empty if there is
/// none. In a command that only looks, throws EnvironmentError for the path of a program in the
/// project.
std::filesystem::path find_tool(const std::string& name);

}  // namespace pipeline::core
