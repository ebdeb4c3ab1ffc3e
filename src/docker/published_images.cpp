#include "docker/published_images.hpp"

#include <chrono>
#include <optional>

#include "core/log.hpp"
#include "core/quantity.hpp"
#include "docker/build_log.hpp"
#include "docker/config.hpp"
#include "docker/reference.hpp"
#include "docker/registry_errors.hpp"

namespace pipeline::docker {
namespace {

using Clock = std::chrono::steady_clock;

std::string layers(unsigned count) {
  return std::to_string(count) + (count == 1 ? " layer" : " layers");
}

/// Formats `3 layers pushed (12.5 MiB unpacked), 4 were there`.
std::string summary(const Pushed& pushed) {
  std::string text = pushed.sent == 0 ? "nothing to push but its manifest"
                                      : layers(pushed.sent) + " pushed (" +
                                            core::format_bytes(pushed.bytes) + " unpacked)";
  if (pushed.there > 0)
    text += ", " + layers(pushed.there) + (pushed.there == 1 ? " was there" : " were there");
  return text;
}

}  // namespace

async::Task<std::string> PublishedImages::publish(LocalImage image, std::string step,
                                                  EventSink& events, core::CancelSource& cancel) {
  const auto key = key_of(image);
  const std::function<async::Task<std::string>()> make_it = [&]() {
    return make(image, step, events, cancel);
  };
  co_return co_await published_.get(key, make_it, &cancel);
}

/// The tag depends on the image's plan, but the manifest's digest on this build of it. The registry
/// is asked for the latter.
async::Task<std::string> PublishedImages::make(LocalImage image, std::string step,
                                               EventSink& events, core::CancelSource& cancel) {
  const auto registry = registry_of(image.reference);
  const auto found = co_await engine_.inspect_image(image.reference);
  if (!found)
    throw core::EnvironmentError(
        "cannot push the image " + image.reference + ": it is not on the engine any more",
        {"run again: it is rebuilt"});
  const auto auth = co_await credentials(registry, events);
  if (auto known = by_digest(*found, image.reference); !known.empty()) {
    const auto there = co_await digest_there(known, auth, cancel);
    if (!there.empty()) co_return known;
  }
  const auto digest =
      co_await push(image.reference, registry + " does not have it", auth, step, events, cancel);
  co_return split_reference(image.reference).first + "@" + digest;
}

async::Task<> PublishedImages::name(LocalImage image, std::string tag, std::string step,
                                    EventSink& events, core::CancelSource& cancel) {
  const auto published = co_await publish(image, step, events, cancel);
  const auto [repository, digest] = split_reference(published);
  const LocalImage named{repository + ":" + tag, image.id};
  if (find(named)) co_return;
  const auto auth = co_await credentials(registry_of(repository), events);
  const auto there = co_await digest_there(named.reference, auth, cancel);
  if (there != digest) {
    const std::string why =
        registry_of(repository) +
        (there.empty() ? " does not have it" : " has another image of that name");
    co_await push(named.reference, why, auth, step, events, cancel);
  }
  published_.set(key_of(named), published);
}

async::Task<std::string> PublishedImages::push(std::string reference, std::string why,
                                               RegistryAuth auth, std::string step,
                                               EventSink& events, core::CancelSource& cancel) {
  const auto began = Clock::now();
  const auto took = [&] {
    return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - began);
  };
  events.emit(event::BuildStarted{reference, {step}, "push: " + why});
  const auto tell = [&](std::string_view line) {
    events.emit(event::BuildProgress{reference, std::string(line)});
  };
  const std::function<void(std::string_view)> on_line = tell;
  std::string digest;
  std::optional<core::EnvironmentError> failed;
  try {
    const auto pushed = co_await engine_.push_image(reference, auth.header, on_line, cancel);
    tell(summary(pushed));
    digest = pushed.digest;
    if (digest.empty()) {  // Podman does not report it.
      const auto image = co_await engine_.inspect_image(reference);
      const auto known = image ? by_digest(*image, reference) : std::string();
      if (known.empty())
        throw core::EnvironmentError(
            "cannot run the image " + reference +
            " by digest: the engine has pushed it, but does not say its digest");
      digest = split_reference(known).second;
    }
  } catch (const EngineError& error) {
    const auto advice =
        push_advice(error.what(), reference, config_folder() / "config.json", auth.found);
    failed.emplace(error.what(), advice.empty() ? error.advice() : advice);
  } catch (const core::EnvironmentError& error) {
    failed = error;
  }
  events.emit(event::BuildFinished{
      reference, digest, took(),
      failed ? std::optional<Failure>(failure_of(*failed, cancel)) : std::nullopt});
  if (failed) throw core::EnvironmentError(*failed);
  co_return digest;
}

async::Task<RegistryAuth> PublishedImages::credentials(std::string registry, EventSink& events) {
  auto auth = co_await registry_auth(registry);
  if (!auth.notice.empty() && reported_.insert(auth.notice).second)
    events.emit(event::Notice{"", auth.notice});
  co_return auth;
}

/// Empty if the registry does not have it or cannot be asked; the push then reports the reason.
async::Task<std::string> PublishedImages::digest_there(std::string reference, RegistryAuth auth,
                                                       core::CancelSource& cancel) {
  try {
    const auto digest = co_await engine_.registry_digest(reference, auth.header, cancel);
    co_return digest.value_or("");
  } catch (const EngineError& error) {
    core::log::info(error.what());
  }
  co_return std::string();
}

}  // namespace pipeline::docker
