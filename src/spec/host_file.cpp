#include "spec/host_file.hpp"

#include <sys/utsname.h>

#include <fstream>

#include "core/file.hpp"
#include "settings/decode.hpp"
#include "spec/user_files.hpp"
#include "yaml/document.hpp"

namespace pipeline::spec {
namespace {

namespace fs = std::filesystem;

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool is_attribute(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/") ==
             std::string_view::npos;
}
constexpr settings::Format attribute_name{
    "an attribute's name of letters, digits, `.`, `_`, `-` and `/`", is_attribute};

}  // namespace

gpu::HostAttributes parse_host(std::string_view text, const fs::path& file) {
  settings::Diagnostics diagnostics;
  gpu::HostAttributes attributes;
  const auto root = yaml::parse_yaml(text, diagnostics);
  if (root && root->kind != core::Value::Kind::map)
    settings::report(diagnostics, "wrong-type",
                     "a host file must be a map, not " + settings::describe(*root), root->span,
                     {"as in `instance_type: g5.xlarge`"});
  if (root && root->kind == core::Value::Kind::map) {
    static const std::vector<std::string> keys{"instance_type", "availability_zone", "attributes"};
    settings::report_unknown_keys(*root, keys, "the host file", diagnostics);
    if (const core::Value* own = root->find("attributes"))
      attributes = settings::read_map("attributes", *own, attribute_name, settings::formats::line,
                                      diagnostics)
                       .value_or(StringMap{});
    if (const core::Value* type = root->find("instance_type"))
      attributes.insert_or_assign(
          "ecs.instance-type",
          settings::read_text("instance_type", *type, settings::formats::word, diagnostics)
              .value_or(""));
    if (const core::Value* zone = root->find("availability_zone"))
      attributes.insert_or_assign(
          "ecs.availability-zone",
          settings::read_text("availability_zone", *zone, settings::formats::word, diagnostics)
              .value_or(""));
  }
  if (!diagnostics.empty())
    throw core::InputError(std::move(diagnostics), file.string(), std::string(text));
  return attributes;
}

fs::path host_file() { return configuration_file("PIPE_HOST", "host.yaml"); }

gpu::HostAttributes host_attributes() {
  gpu::HostAttributes attributes{{"ecs.os-type", "linux"}};
  utsname system{};
  if (::uname(&system) == 0)
    attributes["ecs.cpu-architecture"] =
        std::string_view(system.machine) == "aarch64" ? "arm64" : system.machine;
  // The firmware of EC2 machines reports the instance type.
  if (first_line("/sys/devices/virtual/dmi/id/sys_vendor") == "Amazon EC2")
    if (std::string type = first_line("/sys/devices/virtual/dmi/id/product_name");
        type.find('.') != std::string::npos)
      attributes["ecs.instance-type"] = std::move(type);
  const fs::path file = host_file();
  std::error_code error;
  if (file.empty() || (!fs::exists(file, error) && core::variable("PIPE_HOST").empty()))
    return attributes;
  if (!fs::exists(file, error))
    throw core::InputError("there is no file '" + file.string() + "', which PIPE_HOST names");
  for (auto& [name, value] : parse_host(core::read_file(file), file))
    attributes.insert_or_assign(name, value);
  return attributes;
}

}  // namespace pipeline::spec
