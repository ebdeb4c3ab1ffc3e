#include "docker/render.hpp"

#include <nlohmann/json.hpp>

#include "core/quantity.hpp"
#include "docker/context.hpp"

namespace pipeline::docker {

std::string render_plan(const ImagePlan& plan) {
  std::string text;
  if (plan.parent)
    text +=
        "# The parent, from the pipeline's own Dockerfile:\n" + render_plan(*plan.parent) + "\n";
  if (!plan.build) return "# Nothing to build: " + plan.parent_image + " is used as it is.\n";
  text += plan.dockerfile;
  if (!text.ends_with('\n')) text += '\n';
  text += "\n# context: " + core::format_bytes(size_of(plan.context)) + " in " +
          std::to_string(plan.context.size()) + " files\n";
  for (auto& file : plan.context) {
    if (file.kind == ContextFile::Kind::directory) continue;
    text += "#   " + file.path +
            (file.kind == ContextFile::Kind::symlink ? " -> " + *file.content
                                                     : "  " + core::format_bytes(file.bytes)) +
            "\n";
  }
  for (auto& file : plan.host_only)
    text +=
        "#   " + file.path + "  " + core::format_bytes(file.bytes) + ", only during the build\n";
  for (auto& notice : plan.notices) text += "# note: " + notice + "\n";
  return text;
}

nlohmann::json plan_to_json(const ImagePlan& plan) {
  nlohmann::json json{{"build", plan.build},
                      {"parent_image", plan.parent_image},
                      {"dockerfile", plan.dockerfile},
                      {"notices", plan.notices}};
  json["context"] = nlohmann::json::array();
  for (auto& file : plan.context)
    if (file.kind != ContextFile::Kind::directory)
      json["context"].push_back({{"path", file.path}, {"bytes", file.bytes}});
  json["host_only"] = nlohmann::json::array();
  for (auto& file : plan.host_only) json["host_only"].push_back(file.path);
  json["parent"] = plan.parent ? plan_to_json(*plan.parent) : nlohmann::json();
  return json;
}

}  // namespace pipeline::docker
