/// @file
/// The project of a command: the folders whose files others may have written, such as a repository
/// that was cloned. This is state of the process, as its working folder is: the command line sets
/// it once, before it reads a file.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pipeline::core {

/// A command that looks runs no program and loads no code that the project could have chosen.
enum class Purpose { run, look };

/// @param folder the pipeline's; the project is the git repository around it, or else the folder
/// alone. Nothing above the home of the user is a project.
/// @param servers returns the addresses of servers that the user has named for credentials; asked
/// for once, when needed
void set_project(const std::filesystem::path& folder, Purpose purpose,
                 std::function<std::vector<std::string>()> servers = {});

/// Returns true if credentials may be sent there: the user has named the server, not only a file of
/// the project. Without a project, all are the user's.
bool is_named_server(const std::string& url);

bool only_looks();

/// Returns true if the file, or what it is a link to, is in the project.
bool is_in_project(const std::filesystem::path& file);

/// Returns true if messages may not show the file's content: there is a project, and the file is in
/// none of its folders, or a link to elsewhere.
bool is_outside_project(const std::filesystem::path& file);

/// Returns the environment of programs that are not steps, as `NAME=VALUE`: without variables by
/// which interpreters find modules, and, in a command that looks, without what names the project
/// in PATH and the loader's variables.
/// @param own these replace variables of the same names
std::vector<std::string> tool_environment(const std::vector<std::string>& own = {});

/// Returns PATH as tools are looked for.
std::string tool_path();

/// Returns the file of the program as execvp(3) would find it in tool_path(); empty if there is
/// none. In a command that looks, throws EnvironmentError for a program of the project.
std::filesystem::path find_tool(const std::string& name);

}  // namespace pipeline::core
