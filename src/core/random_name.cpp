#include "core/random_name.hpp"

#include <random>

#include "core/digest.hpp"

namespace pipeline::core {

std::string random_name() {
  std::random_device random;
  return sha256(std::to_string(random()) + "-" + std::to_string(random())).hex().substr(0, 16);
}

}  // namespace pipeline::core
