#include "docker/build_log.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"
#include "core/excerpt.hpp"
#include "core/joined.hpp"
#include "core/quantity.hpp"
#include "core/scope_guard.hpp"
#include "core/text.hpp"
#include "docker/buildkit_trace.hpp"
#include "docker/dockerfile.hpp"
#include "docker/json_text.hpp"
#include "python_packages/python_packages.hpp"

namespace pipeline::docker {

namespace {

constexpr std::size_t kept_build_lines = 200, max_build_hints = 20;
/// Maximum number of bytes that are kept of all outputs. A build has some tens of vertexes; only a
/// malicious engine sends more than this.
constexpr std::size_t max_kept_output = std::size_t{64} << 20;
/// Maximum number of bytes of a line; a longer line is divided.
constexpr std::size_t max_build_line = 64 * 1024;
/// Begins the lines that templates/image/layer.sh prints while it downloads.
constexpr std::string_view received_mark = "pipe: received ";

/// Returns the instruction in a line with which a builder without BuildKit begins an instruction:
/// `Step 2/3 : RUN ...`, or with Podman `STEP 2/3: RUN ...` and `[1/2] STEP 2/3: RUN ...`. Returns
/// nothing for other lines.
std::optional<std::string_view> begun_instruction(std::string_view text) {
  auto rest = text;
  if (const auto end = rest.find("] STEP "); rest.starts_with('[') && end != rest.npos)
    rest.remove_prefix(end + 2);
  const bool podman = rest.starts_with("STEP ");
  const std::string_view separator = podman ? ": " : " : ";
  const auto at = rest.find(separator);
  if ((!podman && !rest.starts_with("Step ")) || at == rest.npos) return std::nullopt;
  return rest.substr(at + separator.size());
}

/// Returns `RUN ...` for `[stage 2/3] RUN ...` and for `Step 2/3 : RUN ...`.
std::string instruction_in(std::string_view name) {
  if (const auto begun = begun_instruction(name)) {
    name = *begun;
  } else if (name.starts_with('[')) {
    auto end = name.find("] ");
    if (end != name.npos) name.remove_prefix(end + 2);
  }
  return core::joined(core::words_of(name), " ");
}

/// Removes escape sequences and other control characters from an error's lines.
std::string printable(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\x1b' && at + 1 < text.size() && text[at + 1] == '[') {
      at += 2;
      while (at < text.size() && (static_cast<unsigned char>(text[at]) < 0x40 ||
                                  static_cast<unsigned char>(text[at]) > 0x7e))
        ++at;
    } else if (text[at] == '\t') {
      result += ' ';
    } else if (static_cast<unsigned char>(text[at]) >= 0x20 && text[at] != 0x7f) {
      result += text[at];
    }
  }
  return result;
}

/// Replaces the builder's "executor failed running [/bin/sh ...]: exit code: 1" by a plain message
/// if the instruction is from one of pipe's templates.
std::string plain_error(const std::string& instruction, const std::string& error) {
  static constexpr std::pair<const char*, const char*> scripts[] = {
      {"/apt/install.sh", "the Debian packages could not be installed"},
      {"/fetch/fetch.sh", "the Python package installer could not be fetched"},
      {"/python/install.sh", "the Python packages could not be installed"},
      {"/python/layer.sh", "the locked Python packages could not be installed"},
      {"/install/install.sh", "local_project_install_command failed"},
      {"/user/create.sh", "the user could not be created"},
  };
  static const std::regex exit_code("(?:exit code:|non-zero code:|exit status) (\\d{1,9})");
  std::smatch match;
  for (auto& [script, what] : scripts)
    if (instruction.find(script) != instruction.npos && std::regex_search(error, match, exit_code))
      return std::string(what) + " (exit code " + match[1].str() + ")";
  return error;
}

/// Returns the lines in which known causes are searched. std::regex recurses for each character of
/// a repetition, so that a line of some 100,000 characters would end the program.
std::vector<std::string> searched_lines(const std::vector<std::string>& lines,
                                        const std::string& error) {
  constexpr std::size_t max_searched = 2000;
  std::vector<std::string> found;
  const auto add = [&](const std::string& text) {
    for (const auto line : core::split(text, '\n'))
      found.emplace_back(line.substr(0, max_searched));
  };
  add(error);
  for (const auto& line : lines) add(line);
  return found;
}

/// Groups causes: of each group but `other`, only the first cause that is found is reported.
enum class Topic { other, requirement, apt_package, apt_release, connection };

/// The meaning of a text that a failed build printed.
struct BuildCause {
  BuildCause(Topic about, const char* text, const char* meaning)
      : topic(about), pattern(text, std::regex::icase), advice(meaning) {}
  Topic topic;
  std::regex pattern;
  std::string advice;  ///< `$1` is what the first group matched.
};

constexpr auto no_such_requirement =
    "there is no `$1` for this Python in the package index: check the name and version under "
    "requirements, and the Python of the parent image";

const std::vector<BuildCause>& build_causes() {
  static const std::vector<BuildCause> causes{
      {Topic::other, "no space left on device",
       "free space where the engine keeps images and build caches: `pipe clean --images`, `docker "
       "builder "
       "prune`, `docker image prune`"},
      {Topic::requirement, "Because ([A-Za-z0-9_.-]+) was not found in the package",
       no_such_requirement},
      {Topic::requirement,
       "(?:No matching distribution found for|Because there is no version of) ([^\\s]+)",
       no_such_requirement},
      {Topic::requirement,
       "no solution found when resolving|ResolutionImpossible|conflicting dependencies",
       "these requirements contradict each other: relax one of the versions named above"},
      {Topic::apt_package, "Unable to locate package (\\S+)",
       "this distribution has no such package `$1`: check apt_packages against the parent image's "
       "release"},
      {Topic::apt_package,
       "Version '[^']+' for '[^']+' was not found|has no installation candidate",
       "this distribution has no such package: check apt_packages against the parent image's "
       "release"},
      {Topic::apt_release,
       "The repository '([^']*)/[0-9]{8}T[0-9]{6}Z [^']*' does not have a Release file",
       "$1 has no snapshot of that time for this distribution: take another apt_snapshot, or name "
       "a mirror that has it in PIPE_APT_SNAPSHOT_MIRROR"},
      {Topic::apt_release, "unmet dependencies|held broken packages",
       "packages of the parent image are newer than apt_packages need: with "
       "apt_snapshot, take a later date, or a parent image of that time"},
      {Topic::connection,
       "CERTIFICATE_VERIFY_FAILED|certificate verify failed|invalid peer "
       "certificate|UnknownIssuer|self.signed certificate",
       "the package index's certificate is not trusted in the build: name your CA bundle in "
       "SSL_CERT_FILE or PIP_CERT; it reaches the build and stays out of the image"},
      {Topic::connection,
       "Temporary failure (in name resolution|resolving)|Name or service not known|Could not "
       "resolve|dns error|failed to lookup address",
       "the build cannot resolve names: check the engine's DNS, or set "
       "build_config.build_options.network"},
      {Topic::connection,
       "Connection refused|Connection timed out|Network is "
       "unreachable|ProxyError|ConnectTimeout|operation timed out",
       "the build cannot reach the package index: an index or proxy on localhost is not reachable "
       "from a build, unless build_config.build_options.network is host"},
      {Topic::other, "(?:unexpected argument '|no such option: )(--[a-z0-9-]+)",
       "the installer has no option `$1`: correct `python_package_installer_args`"},
      {Topic::other, "externally-managed-environment",
       "this Python refuses installs outside of a virtual environment (PEP 668): pass "
       "--break-system-packages, or use a virtual environment"},
      {Topic::other, "401 Unauthorized|403 Forbidden|403 Client Error|401 Client Error",
       "the package index refused the request: check the credentials in PIP_INDEX_URL, "
       "UV_DEFAULT_INDEX or pip.conf"},
      {Topic::other,
       "pull access denied|no active sessions|authorization (failed|status)|unauthorized: ",
       "an image of the Dockerfile needs credentials: `docker login REGISTRY`"},
      {Topic::other,
       "(gcc|cc|g\\+\\+|clang).*(not found|No such file)|error: command "
       "'?(gcc|cc|x86_64-linux-gnu-gcc)'?",
       "a package is compiled from source and needs a compiler: add `apt_packages: "
       "[build-essential]`, or ask for a version that has a wheel"},
      {Topic::other, "Git executable not found|Cannot find command 'git'",
       "a requirement is in a git repository: add `apt_packages: [git]`"},
      {Topic::other, "exec format error",
       "the image is for another processor: set `platform`, or install emulation (binfmt) on the "
       "engine's machine"},
  };
  return causes;
}

}  // namespace

std::string readable_title(std::string_view name) {
  auto words = core::words_of(name);
  std::erase_if(words, [](auto& word) { return word.starts_with("--mount="); });
  return core::joined(words, " ");
}

/// Returns the layer of packages that an instruction makes, or null. The instruction contains the
/// layer's folder in the build context.
const LayerTitle* BuildLog::layer_of(std::string_view name) const {
  static constexpr std::string_view folder = "layers/";
  auto number = layers_.size();
  if (const auto at = name.find(folder); at != name.npos)
    std::from_chars(name.data() + at + folder.size(), name.data() + name.size(), number);
  return number < layers_.size() ? &layers_[number] : nullptr;
}

std::string BuildLog::title_of(std::string_view name) const {
  const auto* layer = layer_of(name);
  return layer ? layer->title : readable_title(name);
}

/// Reports the progress of a download at each tenth, but not more often than every 10 MB, as for
/// pulls.
void BuildLog::report_received(Output& output, std::string_view bytes_received) {
  constexpr std::uint64_t min_interval = 10'000'000;
  std::uint64_t bytes = 0;
  std::from_chars(bytes_received.data(), bytes_received.data() + bytes_received.size(), bytes);
  const auto* layer = output.layer ? output.layer : layer_of(output.name);
  const auto all = layer ? layer->bytes : 0;
  if (bytes < output.received + std::max(min_interval, all / 10)) return;
  output.received = bytes;
  auto text = "Downloading " + core::format_bytes(all > 0 ? std::min(bytes, all) : bytes);
  if (layer) text = layer->number + " " + text;
  on_line_(all > 0 ? text + " of " + core::format_bytes(all) : text);
}

void BuildLog::add_line(Output& output, std::string text) {
  text = printable(text);
  if (text.empty()) return;
  if (text.starts_with(received_mark))
    return report_received(output, std::string_view(text).substr(received_mark.size()));
  if (text.starts_with("pipe: error: "))
    reason_ = text.substr(13);
  else if (text.starts_with("pipe: hint: ") && hints_.size() < max_build_hints)
    hints_.push_back(text.substr(12));
  on_line_(text);
  kept_ += text.size();
  output.lines.push_back(std::move(text));
  if (output.lines.size() <= kept_build_lines) return;
  kept_ -= output.lines.front().size();
  output.lines.pop_front();
}

/// Forgets all outputs if they are larger than max_kept_output.
void BuildLog::forget_if_too_large() {
  if (kept_ <= max_kept_output) return;
  outputs_.clear();
  kept_ = 0;
}

BuildLog::Output& BuildLog::output_of(const std::string& vertex) {
  const auto [found, is_new] = outputs_.try_emplace(vertex);
  if (is_new) kept_ += sizeof *found + vertex.size();
  return found->second;
}

/// Divides the text into lines. A `\r` without a `\n` lets the next text overwrite the line.
void BuildLog::add_text(Output& output, std::string_view text) {
  kept_ -= output.partial.size();
  const core::ScopeGuard counted([&] { kept_ += output.partial.size(); });
  for (char c : text) {
    if (c == '\n') {
      add_line(output, std::exchange(output.partial, {}));
    } else if (c == '\r') {
      if (!output.partial.ends_with('\r')) output.partial += c;
    } else {
      if (!output.partial.empty() && output.partial.back() == '\r') output.partial.clear();
      output.partial += c;
      if (output.partial.size() == max_build_line)
        add_line(output, std::exchange(output.partial, {}));
    }
  }
}

void BuildLog::read_trace(std::string_view bytes) {
  auto update = decode_trace(bytes);
  if (!update) return;
  for (auto& vertex : update->vertexes) {
    auto& output = output_of(vertex.digest);
    if (output.name.empty()) kept_ += (output.name = vertex.name).size();
    bool internal =
        vertex.name.starts_with("[internal]") || vertex.name.starts_with("copy /context");
    if (vertex.started && !output.announced && !internal) {
      output.announced = true;
      on_line_(title_of(vertex.name) + (vertex.cached ? " (cached)" : ""));
    }
    if (!vertex.error.empty() && vertex.error.find("context canceled") == std::string::npos &&
        failed_vertex_.empty()) {
      failed_vertex_ = vertex.digest;
      failed_instruction_ = instruction_in(vertex.name);
    }
  }
  for (auto& log : update->logs) add_text(output_of(log.vertex), log.text);
}

bool BuildLog::is_cut() const {
  return failed_instruction_.empty() && reason_.empty() &&
         (error_.find("executor failed running") != error_.npos ||
          error_.find("did not complete successfully: exit code") != error_.npos);
}

void BuildLog::read(const nlohmann::json& message) {
  if (!message.is_object()) return;
  forget_if_too_large();
  auto aux = message.find("aux");
  if (text_at(message, "id") == "moby.buildkit.trace") {
    if (aux != message.end() && aux->is_string())
      if (auto bytes = core::decode_base64(aux->get_ref<const std::string&>())) read_trace(*bytes);
    return;
  }
  if (aux != message.end())
    if (auto id = text_at(*aux, "ID"); !id.empty()) image_id_ = id;
  auto& classic = output_of("");
  if (auto text = text_at(message, "stream"); !text.empty()) {
    if (begun_instruction(text)) {
      for (const auto& line : std::exchange(classic.lines, {})) kept_ -= line.size();
      classic.name = core::excerpt(text);
      // The instructions after the copy of a layer's files install the layer.
      if (const auto* layer = layer_of(text)) classic.layer = layer;
      classic.received = 0;
      on_line_(printable(title_of(text)));
    } else {
      add_text(classic, text);
    }
  }
  if (const auto text = text_at(message, "error"); !text.empty()) error_ = core::excerpt(text);
  if (const auto detail = message.find("errorDetail"); detail != message.end())
    if (const auto text = text_at(*detail, "message"); !text.empty()) error_ = core::excerpt(text);
  // Podman ends the error with a line end and the internal data of the step.
  if (const auto members = error_.find(" &imagebuilder.Step{"); members != error_.npos)
    error_.erase(members);
  while (error_.ends_with('\n')) error_.pop_back();
  if (failed() && failed_instruction_.empty() && !classic.name.empty())
    failed_instruction_ = instruction_in(classic.name);
}

std::vector<std::string> BuildLog::last_lines(std::size_t count) const {
  const Output* output = nullptr;
  if (auto found = outputs_.find(failed_vertex_); found != outputs_.end()) output = &found->second;
  if (!output) return {};
  std::vector<std::string> lines(output->lines.begin(), output->lines.end());
  if (auto rest = printable(output->partial); !rest.empty()) lines.push_back(rest);
  if (lines.size() > count)
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  return lines;
}

std::vector<std::string> build_advice(const std::vector<std::string>& lines,
                                      const std::string& error) {
  const auto texts = searched_lines(lines, error);
  std::vector<std::string> advice;
  std::set<Topic> reported;
  for (const auto& cause : build_causes()) {
    std::smatch match;
    const auto matches = [&](const std::string& text) {
      return std::regex_search(text, match, cause.pattern);
    };
    if (reported.contains(cause.topic) || std::ranges::none_of(texts, matches)) continue;
    if (cause.topic != Topic::other) reported.insert(cause.topic);
    if (cause.advice == no_such_requirement) {
      const auto name = match[1].str();
      if (const auto meant =
              python_packages::similar_package(name.substr(0, name.find_first_of("<>=!~[;"))))
        advice.push_back("did you mean `" + *meant + "`?");
    }
    advice.push_back(match.format(cause.advice));
  }
  return advice;
}

namespace {

/// Returns true if the container runtime's error says that there is no shell. The quotes in the
/// error may be escaped.
bool misses_shell(const std::string& text) {
  return text.find("no such file or directory") != text.npos &&
         (text.find("\"/bin/sh\"") != text.npos || text.find("\"/bin/sh\\\"") != text.npos);
}

}  // namespace

core::BuildError build_failure(const ImagePlan& plan, const std::string& dockerfile,
                               const BuildLog& log, const std::string& rejected) {
  std::string error = rejected.empty() ? log.error() : rejected;
  auto lines = log.last_lines(20);
  std::vector<std::string> details;
  std::string where;
  auto instructions = instructions_of(dockerfile);
  const Instruction* failing = nullptr;
  for (auto& instruction : instructions)
    if (!log.failed_instruction().empty() && instruction.text == log.failed_instruction())
      failing = &instruction;
  if (!failing && !log.failed_instruction().empty())
    // The builder fills in ARG and ENV values, so only the beginnings are compared.
    for (auto& instruction : instructions)
      if (instruction.text.substr(0, 12) == log.failed_instruction().substr(0, 12))
        failing = &instruction;
  static const std::regex line_number("line (\\d{1,9})");
  std::smatch match;
  if (!failing && std::regex_search(error, match, line_number)) {
    auto number = std::stoul(match[1].str());
    for (auto& instruction : instructions)
      if (instruction.line <= number) failing = &instruction;
  }
  if (failing) {
    where = " at line " + std::to_string(failing->line) + " of the Dockerfile";
    details.push_back("Dockerfile:" + std::to_string(failing->line) + ": " +
                      readable_title(failing->text));
  } else if (!log.failed_instruction().empty()) {
    details.push_back("Dockerfile: " + readable_title(log.failed_instruction()));
  }
  std::ranges::copy_if(lines, std::back_inserter(details), [](auto& line) {
    return !line.starts_with("pipe: error: ") && !line.starts_with("pipe: hint: ");
  });

  auto name = plan.for_own_dockerfile
                  ? std::string("the image of the pipeline's own Dockerfile")
                  : "the image from " + (plan.parent_image.empty() ? "the pipeline's own Dockerfile"
                                                                   : plan.parent_image);
  std::string parent = plan.parent_image.empty() ? "the parent image" : plan.parent_image;
  auto advice = log.hints();
  if (!log.reason().empty())
    return core::BuildError("cannot build " + name + ": " + log.reason(), details, advice);
  if (!plan.for_own_dockerfile && (misses_shell(error) || std::ranges::any_of(lines, misses_shell)))
    return core::BuildError(
        "cannot build " + name + ": " + parent +
            " has no shell (/bin/sh), which every install needs",
        details,
        {"install what the step needs in a `dockerfile` of your own that copies it from another "
         "stage, or choose a parent_image with a shell",
         "to run " + parent +
             " as it is, leave out requirements, apt_packages and user, or set skip_build: true"});
  if (!plan.for_own_dockerfile && failing) error = plain_error(failing->text, error);
  auto more = build_advice(lines, error);
  advice.insert(advice.end(), more.begin(), more.end());
  return core::BuildError("cannot build " + name + where + ": " + error, details, advice);
}

Failure failure_of(const core::EnvironmentError& error, const core::CancelSource& cancel) {
  if (cancel.level() != core::StopLevel::none)
    return {FailureKind::cancelled, "was stopped", {}, {}};
  Failure failure{FailureKind::environment, error.what(), error.advice(), {}};
  if (auto* build = dynamic_cast<const core::BuildError*>(&error)) {
    failure.kind = FailureKind::build;
    failure.details = build->details();
  }
  return failure;
}

}  // namespace pipeline::docker
