/// @file
/// Attempts for tests of orchestrators: a step, its folders, and its output. The functions above
/// AttemptBuilder make commands and their placeholders.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "orchestrators/orchestrator.hpp"

namespace pipeline::test {

namespace fs = std::filesystem;

inline Template text(std::string literal) { return {{std::move(literal)}}; }
inline Template placeholder(Template::Placeholder kind, std::string name = {}) {
  return {{Template::Reference{kind, std::move(name)}}};
}
inline Template operator+(Template left, const Template& right) {
  for (const auto& part : right.parts)
    std::visit([&](const auto& each) { left.parts.emplace_back(each); }, part);
  return left;
}
inline Command shell(Template line) { return {{std::move(line)}, true}; }
inline Command shell(std::string line) { return shell(text(std::move(line))); }
inline Command program(const std::vector<std::string>& words) {
  Command command;
  for (auto& word : words) command.arguments.push_back(text(word));
  return command;
}

inline void write(const fs::path& file, std::string_view content) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << content;
}

/// Keeps what a step prints; `on_write` is called after each piece.
class Log : public orchestrators::LogSink {
 public:
  void write(Stream stream, std::string_view bytes) override {
    (stream == Stream::out ? out : err) += bytes;
    if (on_write) on_write(*this);
  }
  std::string out, err;
  std::function<void(const Log&)> on_write;
};

/// One attempt with folders of its own. All members are public; change them before calling
/// attempt().
struct AttemptBuilder {
  explicit AttemptBuilder(Command command) {
    step.name = "step";
    step.command = std::move(command);
    for (auto* name : {"code", "artifacts", "outputs", "scratch"})
      fs::create_directories(folder.path() / name);
  }

  AttemptBuilder& code(const std::string& name, std::string_view content) {
    write(folder.path() / "code" / name, content);
    return *this;
  }
  AttemptBuilder& input(const std::string& name, const std::string& file_name,
                        std::string_view content) {
    write(folder.path() / "artifacts" / file_name, content);
    fs::permissions(folder.path() / "artifacts" / file_name, fs::perms(0444));
    inputs.push_back({name, file_name, folder.path() / "artifacts" / file_name});
    return *this;
  }
  AttemptBuilder& output(const std::string& name, const std::string& file_name) {
    outputs.push_back({name, file_name});
    return *this;
  }
  /// Returns the content of an output's file.
  std::string written(const std::string& file_name) const {
    return core::read_file(folder.path() / "outputs" / file_name, std::size_t{1} << 30);
  }

  orchestrators::Attempt attempt() {
    return {{.step = step,
             .pipeline = "tests",
             .run_id = run_id,
             .number = number,
             .code = folder.path() / "code",
             .inputs = inputs,
             .outputs = folder.path() / "outputs",
             .output_names = outputs,
             .scratch = folder.path() / "scratch",
             .environment = environment,
             .secrets = secrets},
            {.log = log, .cancel = cancel, .on_began = on_began}};
  }

  core::TemporaryFolder folder;
  StepSpec step;
  std::string run_id =
      "test-" + folder.path().filename().string().substr(5);  ///< Without the folder's `pipe-`.
  unsigned number = 1;
  std::vector<orchestrators::AttemptInput> inputs;
  std::vector<orchestrators::AttemptOutput> outputs;
  StringMap environment, secrets;
  Log log;
  core::CancelSource cancel;
  std::function<void(std::chrono::milliseconds)> on_began;  ///< See AttemptIo::on_began.
};

}  // namespace pipeline::test
