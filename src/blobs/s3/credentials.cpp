#include "blobs/s3/credentials.hpp"

#include <filesystem>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "blobs/s3/answer.hpp"
#include "core/bounded_json.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/project.hpp"
#include "core/text.hpp"
#include "core/user_environment.hpp"
#include "net/program.hpp"

namespace pipeline::blobs::s3 {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto renewal_margin = 10min;  // Keys are fetched again this long before they expire.

/// Returns the path in the variable `name`, or else that of the file `usual` in ~/.aws.
fs::path file_of(const char* name, const char* usual) {
  if (auto given = core::variable(name); !given.empty()) return given;
  const auto home = core::variable("HOME");
  return home.empty() ? fs::path() : fs::path(home) / ".aws" / usual;
}

IniFile read_ini(const fs::path& file) {
  std::error_code error;
  if (file.empty() || !fs::is_regular_file(file, error)) return {};
  return parse_ini(core::read_file(file));
}

std::string profile_name(const std::string& given) {
  if (!given.empty()) return given;
  auto name = core::variable("AWS_PROFILE");
  return name.empty() ? "default" : name;
}

/// Returns the profile's values of both files; those of `credentials` take precedence.
std::map<std::string, std::string> profile_of(const std::string& given) {
  const auto name = profile_name(given);
  auto credentials = read_ini(file_of("AWS_SHARED_CREDENTIALS_FILE", "credentials"));
  auto config = read_ini(file_of("AWS_CONFIG_FILE", "config"));
  auto values = std::move(credentials[name]);
  values.merge(config["profile " + name]);
  if (name == "default") values.merge(config[name]);
  return values;
}

/// Runs a `credential_process` and returns the keys that it prints.
async::Task<FoundKeys> run_credential_process(std::string program) {
  for (const auto* name : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"})
    if (const auto file = core::variable(name);
        core::only_looks() && !file.empty() && core::is_in_project(file))
      throw core::EnvironmentError(std::string(name) +
                                   " names a file of the project, and a command that only looks "
                                   "runs no credential_process of it");
  net::ProgramCall call;
  call.command = {"sh", "-c", program};  // Amazon's programs also run it by the shell.
  const auto answer = co_await net::run_program(std::move(call));
  if (answer.code != 0 || answer.late)
    throw core::EnvironmentError(
        "the credential_process of ~/.aws (" + program + ") " +
        (answer.late ? std::string("did not answer in time")
                     : "failed: " + std::string(core::trimmed(
                                        std::string_view(answer.errors).substr(0, 300)))));
  co_return parse_process_output(answer.output, program);
}

/// Returns the keys of the environment or the profile.
async::Task<FoundKeys> find_keys(std::string profile) {
  FoundKeys found;
  found.keys = {core::variable("AWS_ACCESS_KEY_ID"), core::variable("AWS_SECRET_ACCESS_KEY"),
                core::variable("AWS_SESSION_TOKEN")};
  found.origin = "the environment (AWS_ACCESS_KEY_ID)";
  if (!profile.empty() || found.keys.id.empty() || found.keys.secret.empty()) {
    const auto name = profile_name(profile);
    auto values = profile_of(profile);
    found.keys = {values["aws_access_key_id"], values["aws_secret_access_key"],
                  values["aws_session_token"]};
    found.origin = "the profile '" + name + "' of ~/.aws";
    if (const auto program = values["credential_process"];
        found.keys.id.empty() && !program.empty())
      found = co_await run_credential_process(program);
    if (found.keys.id.empty() || found.keys.secret.empty())
      throw core::EnvironmentError(
          "there are no keys for the remote store: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are "
          "not set, and the profile '" +
              name + "' of ~/.aws has no keys",
          {"`export AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...`, or `aws configure`",
           "for single sign-on and roles: `eval \"$(aws configure export-credentials --format "
           "env)\"`"});
  }
  co_return found;
}

}  // namespace

IniFile parse_ini(std::string_view text) {
  IniFile file;
  std::string section;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    // Indented lines are values below a key that has no value itself (`s3 =`), and are ignored.
    const bool nested = line.starts_with(' ') || line.starts_with('\t');
    line = std::string(core::trimmed(line));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    if (line.front() == '[' && line.back() == ']') {
      section = std::string(core::trimmed(std::string_view(line).substr(1, line.size() - 2)));
    } else if (const auto equals = line.find('='); equals != line.npos && !nested) {
      file[section][std::string(core::trimmed(std::string_view(line).substr(0, equals)))] =
          core::trimmed(std::string_view(line).substr(equals + 1));
    }
  }
  return file;
}

FoundKeys parse_process_output(std::string_view text, const std::string& program) {
  const auto answer = core::parse_json(text);
  const auto value = [&](const char* key) {
    const auto found = answer.find(key);
    return found != answer.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  FoundKeys found;
  if (answer.is_object())
    found.keys = {value("AccessKeyId"), value("SecretAccessKey"), value("SessionToken")};
  if (found.keys.id.empty() || found.keys.secret.empty())
    throw core::EnvironmentError(
        "the credential_process of ~/.aws (" + program +
        ") printed no keys: it has to print JSON with AccessKeyId and SecretAccessKey");
  found.origin = "the credential_process of ~/.aws";
  found.expiry = parse_time(value("Expiration"));
  return found;
}

std::string region_of(const std::string& profile) {
  for (const char* name : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (auto region = core::variable(name); !region.empty()) return region;
  auto values = profile_of(profile);
  return std::move(values["region"]);
}

async::Task<FoundKeys> CredentialSource::find() {
  const std::string name;  // Empty: a source has the keys of one profile.
  const auto* known = found_.find(name);
  if (known && known->expiry && *known->expiry - renewal_margin <= std::chrono::system_clock::now())
    found_.forget(name);
  const auto search = [this] { return find_keys(profile_); };
  co_return co_await found_.get(name, search, nullptr);
}

}  // namespace pipeline::blobs::s3
