#include <pipeline/settings.hpp>

int main() {
  return static_cast<int>(
             pipeline::DockerSettings{.requirements = {"numpy"}}.requirements.items().size()) -
         1;
}
