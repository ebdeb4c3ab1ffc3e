/// @file
/// What an engine says of a build: BuildKit's trace as it stands, and messages of both builders,
/// one a line.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base64.hpp"
#include "docker/build_log.hpp"
#include "docker/buildkit_trace.hpp"
#include "docker/json_lines.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline;
  const std::string text(reinterpret_cast<const char*>(data), size);
  docker::decode_trace(text);
  docker::BuildLog traced([](const std::string&) {}), told([](const std::string&) {});
  traced.read({{"id", "moby.buildkit.trace"}, {"aux", core::encode_base64(text)}});
  docker::JsonLines lines([&](const nlohmann::json& message) { told.read(message); });
  lines.feed(text);
  lines.finish();
  for (const auto* log : {&traced, &told}) {
    docker::ImagePlan plan;
    const auto failure = docker::build_failure(plan, "FROM a\nRUN b\n", *log, log->error());
    if (std::string_view(failure.what()).empty()) __builtin_trap();
  }
  return 0;
}
