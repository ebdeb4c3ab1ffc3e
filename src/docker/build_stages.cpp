#include "docker/build_stages.hpp"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "async/retry_policy.hpp"
#include "async/sleep.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "docker/json_text.hpp"
#include "net/url.hpp"

namespace pipeline::docker {
namespace {

constexpr async::RetryPolicy between_rounds{.first_pause = std::chrono::milliseconds(250),
                                            .max_pause = std::chrono::milliseconds(2000),
                                            .max_tries = 6};

bool is_unnamed(const nlohmann::json& image) {
  const auto tags = image.find("RepoTags");
  return tags == image.end() || !tags->is_array() ||
         std::ranges::all_of(*tags, [](const auto& tag) { return tag == "<none>:<none>"; });
}

/// Removes an image. Returns the engine's message if it refuses; an empty text on success, and if
/// there is no such image.
async::Task<std::string> refusal_to_remove(EngineApi& engine, std::string id) {
  try {
    co_await engine.call("DELETE", "/images/" + id);
  } catch (const core::EnvironmentError& error) {
    const auto* answer = dynamic_cast<const EngineError*>(&error);
    if (!answer || answer->status() != 404) co_return error.what();
  }
  co_return std::string();
}

/// The result of trying to remove each stage once.
struct Round {
  std::size_t removed = 0, left = 0;
  std::string refusal;  ///< The last one.
};

async::Task<Round> remove_once(EngineApi& engine, std::string path, std::time_t made_before) {
  Round round;
  const auto images = co_await engine.call("GET", path);
  for (const auto& image : images) {
    const auto id = text_at(image, "Id");
    if (id.empty() || !is_unnamed(image) ||
        std::cmp_greater_equal(number_at(image, "Created"), made_before))
      continue;
    auto refusal = co_await refusal_to_remove(engine, id);
    ++(refusal.empty() ? round.removed : round.left);
    if (!refusal.empty()) round.refusal = std::move(refusal);
  }
  co_return round;
}

}  // namespace

async::Task<> remove_stages(EngineApi& engine, std::string label, std::time_t made_before) {
  const auto path = "/images/json?all=1&filters=" +
                    net::url_encode(nlohmann::json{{"label", {std::move(label)}}}.dump());
  async::Backoff backoff(between_rounds);
  std::string trouble;
  while (true) {
    Round round;
    try {
      round = co_await remove_once(engine, path, made_before);
    } catch (const core::EnvironmentError& error) {
      trouble = error.what();
      break;
    }
    if (round.left == 0) co_return;
    if (round.removed > 0) continue;
    trouble = round.refusal;
    if (backoff.exhausted()) break;
    co_await async::sleep(backoff.next());
  }
  core::log::warn(
      "an intermediate image of a build, which contains addresses and logins of package indexes, "
      "could not be removed from the engine: " +
      trouble + "; `pipe clean --images` removes it once it is six hours old");
}

}  // namespace pipeline::docker
