#include "docker/program_image.hpp"

#include <algorithm>
#include <set>

#include "core/digest.hpp"
#include "docker/layer_image.hpp"

namespace pipeline::docker {
namespace {

namespace fs = std::filesystem;

constexpr const char* program_folder = "pipe/program";
constexpr const char* library_folder = "pipe/program/lib";

/// Libraries that glibc opens, if they exist, when it resolves a name or cancels a thread. These
/// libraries must have the same version as the C library.
constexpr const char* companions[] = {"libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2",
                                      "libgcc_s.so.1"};

#if defined(__aarch64__)
constexpr const char* multiarch = "aarch64-linux-gnu";
#else
constexpr const char* multiarch = "x86_64-linux-gnu";
#endif

std::string in_image(const std::string& path) { return "/" + path; }

ContextFile file(std::string path, const fs::path& source, unsigned mode) {
  std::error_code error;
  const auto bytes = fs::file_size(source, error);
  if (error)
    throw core::EnvironmentError("cannot put the program into an image: " + source.string() +
                                     " is needed, but " + error.message(),
                                 {"it existed when the program was started; if the program was "
                                  "rebuilt meanwhile, start it again"});
  return {.path = std::move(path), .source = source, .bytes = bytes, .mode = mode};
}

ContextFile folder(std::string path) {
  return {.path = std::move(path), .mode = 0755, .kind = ContextFile::Kind::directory};
}

}  // namespace

std::vector<ContextFile> program_files(const Program& program) {
  std::vector<ContextFile> files{folder("pipe"), folder(program_folder)};
  files.push_back(file(std::string(program_folder) + "/" + program.executable.filename().string(),
                       program.executable, 0755));
  if (program.loader.empty()) return files;
  files.push_back(folder(library_folder));
  std::set<std::string> names;
  const auto add = [&](const fs::path& library) {
    if (names.insert(library.filename().string()).second)
      files.push_back(
          file(std::string(library_folder) + "/" + library.filename().string(), library, 0755));
  };
  add(program.loader);
  for (const auto& library : program.libraries) {
    add(library);
    std::error_code error;
    if (library.filename().string().starts_with("libc.so."))
      for (const auto* companion : companions)
        if (fs::is_regular_file(library.parent_path() / companion, error))
          add(library.parent_path() / companion);
  }
  std::ranges::sort(files, {}, &ContextFile::path);
  return files;
}

std::vector<std::string> program_words(const Program& program,
                                       const std::vector<std::string>& image_variables) {
  const auto executable =
      in_image(std::string(program_folder) + "/" + program.executable.filename().string());
  if (program.loader.empty()) return {executable};
  constexpr std::string_view variable = "LD_LIBRARY_PATH=";
  // When the loader is given a path, it ignores LD_LIBRARY_PATH. The image's own ld.so.cache is
  // searched, too.
  std::string path = in_image(library_folder);
  for (const auto& each : image_variables)
    if (each.starts_with(variable) && each.size() > variable.size())
      path += ":" + each.substr(variable.size());
  path += std::string(":/usr/local/nvidia/lib64:/usr/local/nvidia/lib:/usr/lib/") + multiarch +
          ":/lib/" + multiarch + ":/usr/lib64:/lib64:/usr/lib:/lib";
  return {in_image(std::string(library_folder) + "/" + program.loader.filename().string()),
          "--library-path", path, executable};
}

ProgramImages::ProgramImages(asio::io_context& loop, EngineApi& engine, std::string run_id)
    : engine_(engine), run_id_(std::move(run_id)), made_(loop) {}

const std::string& ProgramImages::digest_of(const Program& program) {
  const auto [found, is_new] = digests_.try_emplace(&program);
  if (is_new) {
    core::Hasher hasher;
    hasher.field("pipe program 1");
    for (const auto& each : program_files(program))
      hasher.field(each.path).field(
          each.kind == ContextFile::Kind::file ? core::sha256_file(each.source).hex() : "");
    found->second = hasher.finish().hex();
  }
  return found->second;
}

std::string ProgramImages::key_of(const StepSpec& step, const ImageStatus& environment) {
  return environment.image_id + " " + digest_of(*step.program->program) + " " +
         step.settings->docker.target_repository.value_or("");
}

async::Task<ImageStatus> ProgramImages::look_up(const StepSpec& step, ImageStatus environment) {
  ImageStatus status;
  status.digest = core::Hasher()
                      .field(environment.image_id)
                      .field(digest_of(*step.program->program))
                      .finish()
                      .hex();
  status.reference = step.settings->docker.target_repository.value_or("pipe") + ":program-" +
                     status.digest.substr(0, 16);
  status.image_id = co_await layer_image_id(engine_, status.reference, status.digest,
                                            step.settings->docker.platform.value_or(""));
  if (status.image_id.empty()) status.reason = "the program is new, or was rebuilt";
  co_return status;
}

async::Task<ImageStatus> ProgramImages::status(const StepSpec& step, ImageStatus environment) {
  if (environment.image_id.empty()) co_return environment;
  const auto* known = made_.find(key_of(step, environment));
  if (known) co_return *known;
  co_return co_await look_up(step, environment);
}

async::Task<ImageStatus> ProgramImages::ensure(const StepSpec& step, ImageStatus environment,
                                               EventSink& events, core::CancelSource& cancel) {
  const auto key = key_of(step, environment);
  const auto status = co_await look_up(step, environment);
  co_return co_await made_.get(
      key, [&] { return build(step, environment, status, events, cancel); }, &cancel);
}

async::Task<ImageStatus> ProgramImages::build(const StepSpec& step, ImageStatus environment,
                                              ImageStatus status, EventSink& events,
                                              core::CancelSource& cancel) {
  if (!status.image_id.empty()) co_return status;
  LayerImage image;
  image.kind = "program";
  image.digest = status.digest;
  image.reference = status.reference;
  image.from = environment.reference;
  image.platform = step.settings->docker.platform.value_or("");
  image.run_id = run_id_;
  const auto& program = *step.program->program;
  image.files = [&program] { return program_files(program); };
  status.image_id =
      co_await build_layer_image(engine_, image, step.name, status.reason, events, cancel);
  status.reason.clear();
  co_return status;
}

}  // namespace pipeline::docker
