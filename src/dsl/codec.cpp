#include <pipeline/codec.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/file.hpp"

namespace pipeline::detail {

namespace fs = std::filesystem;

Json read_json(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in || fs::is_directory(file))
    throw CodecError("cannot read " + file + ": expected a JSON file");
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  constexpr core::JsonLimits limits{.bytes = std::numeric_limits<std::size_t>::max()};
  if (!core::is_within(text, limits))
    throw CodecError("cannot read " + file + ": the JSON is nested deeper than " +
                     std::to_string(limits.depth) + " levels");
  try {
    return json::parse(text);
  } catch (const json::parse_error& error) {
    throw CodecError("cannot read " + file + ": invalid JSON: unexpected byte " +
                     std::to_string(error.byte));
  }
}

void write_json(const Json& value, const std::string& file) {
  std::string text;
  try {
    text = value->dump(-1, ' ', false, json::error_handler_t::strict);
  } catch (const json::type_error&) {
    throw CodecError(
        "cannot write " + file +
        ": JSON holds text in UTF-8 only, and a text of this value is not UTF-8: store "
        "it as a std::vector<unsigned char> or a File");
  }
  std::ofstream out(file, std::ios::binary);
  out << text << '\n';
  if (!out.flush()) throw CodecError("cannot write " + file);
}

void wrong_json(const std::string& file, const JsonError& error) {
  throw CodecError("cannot read " + file + ": " + error.what());
}

bool is_json_name(const std::string& file) { return file.ends_with(".json"); }

bool has_json_list(const std::string& file) { return std::ifstream(file).peek() == '['; }

void make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (error) throw CodecError("cannot make the folder " + folder + ": " + error.message());
}

bool exists(const std::string& path) { return fs::exists(path); }

std::string entry_path(const std::string& folder, std::string_view name,
                       std::string_view extension) {
  return std::string(folder).append("/").append(name).append(extension);
}

namespace {

/// Copies a folder. The copy is writable even if the folder is read-only, as artifacts are.
void copy_folder(const fs::path& from, const fs::path& to) {
  fs::create_directory(to);
  for (const auto& entry : fs::directory_iterator(from)) {
    const auto target = to / entry.path().filename();
    if (entry.is_directory() && !entry.is_symlink())
      copy_folder(entry.path(), target);
    else
      fs::copy(entry.path(), target, fs::copy_options::copy_symlinks);
  }
}

/// @param type a regular file or a folder
void put_result(const std::string& from, const std::string& to, fs::file_type type) {
  const bool is_folder = type == fs::file_type::directory;
  std::error_code error;
  if (fs::status(from, error).type() != type)
    throw CodecError("the step's result is a " + std::string(is_folder ? "Folder" : "File") +
                     ", but there is none at '" + from + "'");
  const bool can_be_moved =
      (fs::status(from).permissions() & fs::perms::owner_write) != fs::perms::none &&
      !fs::is_symlink(from);
  if (can_be_moved) {  // An input that is passed on is read-only and stays in its folder.
    fs::rename(from, to, error);
    if (!error) return;
  }
  try {
    const auto source = fs::canonical(from);  // An input may be a link to the artifact.
    if (is_folder)
      copy_folder(source, to);
    else
      fs::copy_file(source, to);
  } catch (const fs::filesystem_error& failed) {
    throw CodecError("cannot copy " + from + " to " + to + ": " + failed.code().message() +
                     (failed.code() == std::errc::permission_denied
                          ? "; StepContext::scratch() is a folder for files that become results"
                          : ""));
  }
}

}  // namespace

void put_file(const std::string& from, const std::string& to) {
  put_result(from, to, fs::file_type::regular);
}

void put_folder(const std::string& from, const std::string& to) {
  put_result(from, to, fs::file_type::directory);
}

}  // namespace pipeline::detail
