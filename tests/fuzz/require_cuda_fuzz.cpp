// Fuzzes NVIDIA_REQUIRE_CUDA and the other texts of an image: its name, versions, variables.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "gpu/image_cuda.hpp"
#include "gpu/require_cuda.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace pipeline::gpu;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const DriverFacts known{Version::parse("470.57.02"), Version::parse("11.4"), "tesla",
                          pipeline::settings::ComputeCapability{7, 0}};
  const auto verdict = check_require_cuda(text, known);
  const bool told = !verdict.condition.empty();
  const bool failed = verdict.kind == RequireVerdict::Kind::unsatisfied ||
                      verdict.kind == RequireVerdict::Kind::malformed;
  if (failed && !told && verdict.kind == RequireVerdict::Kind::unsatisfied) std::abort();
  check_require_cuda(text, {});
  if (const auto version = Version::parse(text);
      version && *Version::parse(version->text()) != *version)
    std::abort();
  image_cuda(text, {});
  image_cuda("x",
             ImageConfig{{{"CUDA_VERSION", text}, {"NVIDIA_REQUIRE_CUDA", text}, {"PATH", text}},
                         {{"com.nvidia.cuda.version", text}}});
  return 0;
}
