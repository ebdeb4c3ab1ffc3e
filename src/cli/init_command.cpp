// `pipe init`: writes a small pipeline to start from.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "cli/commands.hpp"
#include "cli/context.hpp"
#include "core/diagnostic.hpp"
#include "core/file.hpp"
#include "core/identifier.hpp"
#include "spec/pipeline_file.hpp"
#include "templates/templates.hpp"

namespace pipeline::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* pipeline_file = "pipeline.yaml";
constexpr const char* schema_file = "pipeline.schema.json";  ///< The schema's text is generated.
constexpr const char* ignore_file = ".gitignore";
constexpr std::array files{pipeline_file, schema_file, "load.py",  "points.py",
                           "train.py",    "report.py", ignore_file};

/// Returns a name for the pipeline: the folder's name, if that is valid, else `starter`.
std::string pipeline_name(const fs::path& folder) {
  const auto name = folder.filename().string();
  return core::is_name(name) ? name : "starter";
}

std::string text_of(std::string_view file, const fs::path& folder) {
  if (file == schema_file) return spec::schema().dump(2) + "\n";
  if (file == ignore_file) return ".pipe/\n__pycache__/\n";
  auto text = templates::template_text("starter/" + std::string(file), {});
  if (file == pipeline_file) text.replace(text.find("NAME"), 4, pipeline_name(folder));
  return text;
}

/// Creates the file; never overwrites an existing file, not even one created at the same moment.
void write_new(const fs::path& path, std::string_view text) {
  const core::Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) throw core::system_error("cannot write " + path.string(), errno);
  if (const int error = core::write_all(file.get(), text))
    throw core::system_error("cannot write " + path.string(), error);
}

}  // namespace

core::ExitCode init_command(Context& context) {
  const auto folder =
      (fs::absolute(context.options().init.folder) / "").lexically_normal().parent_path();
  std::error_code error;
  for (const std::string_view file : files) {
    if (fs::exists(fs::symlink_status(folder / file, error)) && file != ignore_file &&
        file != schema_file)
      throw core::InputError(shown_path(folder / file) + " exists already; nothing was written",
                             "give another folder: `pipe init DIR`");
  }
  core::make_folders(folder);
  std::vector<std::string> written;
  for (const auto* file : files) {
    if (fs::exists(folder / file, error)) continue;
    write_new(folder / file, text_of(file, folder));
    written.push_back(shown_path(folder / file));
  }
  if (context.options().json) {
    context.print_json(nlohmann::json{{"folder", folder.string()}, {"files", written}});
    return core::ExitCode::ok;
  }
  for (const auto& path : written) context.print("wrote " + path + "\n");
  const auto run = "pipe run " + core::shell_quote(shown_path(folder / "pipeline.yaml"));
  context.print("\nRun it:                 " + run + "\nwithout an engine:      " + run +
                " --orchestrator local\n");
  return core::ExitCode::ok;
}

}  // namespace pipeline::cli
