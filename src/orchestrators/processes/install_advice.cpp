#include "orchestrators/processes/install_advice.hpp"

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <regex>

#include "orchestrators/cache_folder.hpp"
#include "orchestrators/processes/virtual_environment.hpp"
#include "python_packages/python_packages.hpp"

namespace pipeline::orchestrators::processes {
namespace {

namespace fs = std::filesystem;

bool contains_any(const std::string& text, std::initializer_list<const char*> phrases) {
  return std::any_of(phrases.begin(), phrases.end(),
                     [&](const char* phrase) { return text.find(phrase) != text.npos; });
}

/// Returns a known package whose name is similar to one that no index has, according to the output
/// of uv or pip. The repetitions of the regular expression are bounded, because std::regex recurses
/// for each character of a repetition.
std::optional<std::string> meant_package(const std::string& output) {
  static const std::regex unknown(
      "Because ([A-Za-z0-9_.-]{1,100}) was not found in the package registry|"
      "No matching distribution found for ([A-Za-z0-9_.-]{1,100})");
  std::smatch match;
  if (!std::regex_search(output, match, unknown)) return std::nullopt;
  return python_packages::similar_package(match[1].matched ? match[1].str() : match[2].str());
}

}  // namespace

std::vector<std::string> advice_for_failed_install(const std::string& output,
                                                   const FoundProgram& python,
                                                   const fs::path& root) {
  std::vector<std::string> advice;
  if (const auto meant = meant_package(output)) advice.push_back("did you mean `" + *meant + "`?");
  auto version = python.version.empty() ? python.file.string() : "Python " + python.version;
  if (contains_any(output, {"ensurepip is not", "No module named venv",  // a line ends after `not`
                            "No module named ensurepip"}))
    advice.push_back(
        "install what `python3 -m venv` needs (Debian: apt install python3-venv), or uv");
  if (contains_any(output, {"No matching distribution", "no version of",
                            "was not found in the package registry", "no versions of",
                            "there are no versions"}))
    advice.push_back("check the name and version: the index has none that suits " + version +
                     " on this machine");
  if (contains_any(output, {"requires a different Python", "Requires-Python",
                            "does not satisfy Python", "requires-python"}))
    advice.push_back("this machine runs " + version +
                     "; choose a version of the package for it, or `--orchestrator docker` with a "
                     "parent_image of the right one");
  if (contains_any(output, {"Temporary failure in name resolution", "Name or service not known",
                            "Connection refused", "Network is unreachable", "timed out",
                            "dns error", "error sending request", "Failed to fetch"}))
    advice.push_back(
        "the package index cannot be reached: check the network, proxy (https_proxy) and index "
        "(PIP_INDEX_URL, UV_INDEX_URL, pip.conf)");
  if (contains_any(output, {"CERTIFICATE_VERIFY_FAILED", "certificate verify failed",
                            "invalid peer certificate", "UnknownIssuer"}))
    advice.push_back(
        "a certificate is not trusted: name your CA bundle in SSL_CERT_FILE (uv) or PIP_CERT "
        "(pip)");
  if (contains_any(output, {"No space left on device", "Disk quota exceeded"}))
    advice.push_back("the disk is full: " + cache_folder().string());
  if (contains_any(output, {"Python.h", "command 'gcc' failed", "command 'cc' failed",
                            "error: command 'x86_64", "linker `cc` not found"}))
    advice.push_back(
        "a package is compiled from source: install a compiler and Python's headers (Debian: apt "
        "install build-essential python3-dev), or take a "
        "version with a wheel");
  if (contains_any(output,
                   {"Could not open requirements file", "File not found", "does not exist"}))
    advice.push_back("relative paths are taken from " + root.string());
  if (advice.empty())
    advice.push_back(
        "try the installation by hand: python3 -m venv /tmp/try && /tmp/try/bin/pip install ...");
  return advice;
}

}  // namespace pipeline::orchestrators::processes
