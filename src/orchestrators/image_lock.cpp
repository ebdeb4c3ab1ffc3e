#include "orchestrators/image_lock.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "core/bounded_json.hpp"
#include "core/error.hpp"

namespace pipeline::orchestrators {

using nlohmann::json;

json to_json(const ImageLock& lock) {
  std::vector<const LockedImage*> different;
  json steps = json::object(), images = json::array();
  for (const auto& [step, image] : lock) {
    auto found =
        std::ranges::find_if(different, [&](const LockedImage* each) { return *each == image; });
    if (found == different.end()) {
      found = different.insert(found, &image);
      images.push_back({{"environment", image.environment},
                        {"description", image.description},
                        {"packages", image.packages},
                        {"notices", image.notices},
                        {"id", image.image.id},
                        {"reference", image.image.reference},
                        {"pull", image.image.pull},
                        {"program", image.image.program},
                        {"agent", image.image.agent},
                        {"services", image.image.services}});
    }
    steps[step] = found - different.begin();
  }
  return {{"images", std::move(images)}, {"steps", std::move(steps)}};
}

ImageLock image_lock_of(const json& written) try {
  std::vector<LockedImage> images;
  for (const auto& each : written.at("images")) {
    LockedImage image{each.at("environment"),
                      each.at("description"),
                      each.value("packages", std::string()),
                      each.at("notices"),
                      {}};
    image.image = {each.at("id"),    each.at("reference"),
                   each.at("pull"),  each.at("program"),
                   each.at("agent"), each.value("services", image.image.services)};
    images.push_back(std::move(image));
  }
  ImageLock lock;
  for (const auto& [step, number] : written.at("steps").items())
    lock.emplace(step, images.at(core::integer_of<std::size_t>(number)));
  return lock;
} catch (const std::exception& error) {
  throw core::EnvironmentError(
      std::string("the record of the images of the run's steps cannot be read: ") + error.what());
}

}  // namespace pipeline::orchestrators
