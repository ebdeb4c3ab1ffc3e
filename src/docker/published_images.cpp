#include "docker/published_images.hpp"

#include <functional>

#include "core/log.hpp"
#include "core/quantity.hpp"
#include "core/text.hpp"
#include "docker/build_report.hpp"
#include "docker/config.hpp"
#include "docker/reference.hpp"
#include "docker/registry_errors.hpp"

namespace pipeline::docker {
namespace {

/// Formats `3 layers pushed (12.5 MiB unpacked), 4 were there`.
std::string summary(const Pushed& pushed) {
  std::string text = pushed.sent == 0 ? "only the manifest pushed"
                                      : core::counted(pushed.sent, "layer") + " pushed (" +
                                            core::format_bytes(pushed.bytes) + " unpacked)";
  if (pushed.existing > 0)
    text += ", " + core::counted(pushed.existing, "layer") +
            (pushed.existing == 1 ? " was there" : " were there");
  return text;
}

}  // namespace

async::Task<std::string> PublishedImages::publish(LocalImage image, std::string step,
                                                  EventSink& events, core::CancelSource& cancel) {
  const auto key = key_of(image);
  co_return co_await published_.get(
      key, [&] { return push_if_missing(image, step, events, cancel); }, &cancel);
}

/// Pushes an image unless the registry has it. The registry is asked for the digest of the
/// manifest, not for the tag: the tag depends only on the image's plan, and may stand for another
/// build.
async::Task<std::string> PublishedImages::push_if_missing(LocalImage image, std::string step,
                                                          EventSink& events,
                                                          core::CancelSource& cancel) {
  const auto registry = registry_of(image.reference);
  const auto found = co_await engine_.inspect_image(image.reference);
  if (!found)
    throw core::EnvironmentError(
        "cannot push the image " + image.reference + ": it is not on the engine any more",
        {"run again: it is rebuilt"});
  const auto auth = co_await credentials(registry, events);
  if (auto known = pinned_reference(*found, image.reference); !known.empty()) {
    const auto in_registry = co_await digest_in_registry(known, auth, cancel);
    if (!in_registry.empty()) co_return known;
  }
  const BuildReport report{image.reference, step, "push: " + registry + " does not have it"};
  const auto digest =
      co_await reported(push(image.reference, auth, events, cancel), report, events, cancel);
  co_return split_reference(image.reference).first + "@" + digest;
}

async::Task<> PublishedImages::add_tag(LocalImage image, std::string tag, std::string step,
                                       EventSink& events, core::CancelSource& cancel) {
  const auto published = co_await publish(image, step, events, cancel);
  const auto [repository, digest] = split_reference(published);
  const LocalImage named{repository + ":" + tag, image.id};
  if (find(named)) co_return;
  const auto auth = co_await credentials(registry_of(repository), events);
  const auto in_registry = co_await digest_in_registry(named.reference, auth, cancel);
  if (in_registry != digest) {
    const BuildReport report{
        named.reference, step,
        "push: " + registry_of(repository) +
            (in_registry.empty() ? " does not have it" : " has another image of that name")};
    co_await reported(push(named.reference, auth, events, cancel), report, events, cancel);
  }
  published_.set(key_of(named), published);
}

async::Task<std::string> PublishedImages::push(std::string reference, RegistryAuth auth,
                                               EventSink& events, core::CancelSource& cancel) {
  const std::function<void(std::string_view)> on_line = [&](std::string_view line) {
    events.emit(event::BuildProgress{reference, std::string(line)});
  };
  try {
    const auto pushed = co_await engine_.push_image(reference, auth.header, on_line, cancel);
    on_line(summary(pushed));
    if (!pushed.digest.empty()) co_return pushed.digest;
  } catch (const EngineError& error) {
    const auto advice = push_advice(error.what(), reference, config_folder() / "config.json",
                                    !auth.credentials.empty());
    throw core::EnvironmentError(error.what(), advice.empty() ? error.advice() : advice);
  }
  const auto image = co_await engine_.inspect_image(reference);  // Podman reports no digest.
  const auto known = image ? pinned_reference(*image, reference) : std::string();
  if (known.empty())
    throw core::EnvironmentError(
        "cannot run the image " + reference +
        " by digest: the engine has pushed the image, but does not report its digest");
  co_return split_reference(known).second;
}

async::Task<RegistryAuth> PublishedImages::credentials(std::string registry, EventSink& events) {
  auto auth = co_await registry_auth(registry);
  if (!auth.notice.empty() && reported_.insert(auth.notice).second)
    events.emit(event::Notice{"", auth.notice});
  co_return auth;
}

/// Returns the digest of the registry's image; an empty text if the registry lacks the image or
/// fails. A failure is then reported by the push.
async::Task<std::string> PublishedImages::digest_in_registry(std::string reference,
                                                             RegistryAuth auth,
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
