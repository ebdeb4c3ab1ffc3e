#include "engine/data_input.hpp"

#include "core/identifier.hpp"

namespace pipeline::engine {

const store::UserData& DataInputs::of(const std::filesystem::path& path) {
  const auto found = read_.find(path);
  if (found != read_.end()) return found->second;
  return read_.emplace(path, store::read_user_data(path, stats_)).first->second;
}

std::vector<store::KeyPart> DataInputs::parts(const InputSpec& input) {
  const auto name = "data " + input.name;
  if (!input.data->url.empty())
    return {{name, input.data->sha256 + " " + file_name_of(*input.data)}};
  const auto& content = of(input.data->path);
  if (!content.is_directory)
    return {{name, content.digest.hex() + " " + file_name_of(*input.data)}};
  std::vector<store::KeyPart> parts{{name + "/", file_name_of(*input.data)}};
  for (const auto& [path, value] : content.parts) parts.push_back({name + "/" + path, value});
  return parts;
}

std::string file_name_of(const DataSpec& data) {
  std::string name;
  if (data.url.empty()) {
    name = (data.path / "").parent_path().filename().string();
  } else {
    const auto path = data.url.substr(0, data.url.find_first_of("?#"));
    name = path.substr(path.rfind('/') + 1);
  }
  return core::is_name(name) ? name : "data";
}

std::string name_of(const DataSpec& data) {
  return data.url.empty() ? data.path.string() : data.url.substr(0, data.url.find_first_of("?#"));
}

}  // namespace pipeline::engine
