#include "orchestrators/slurm/unpacked_image.hpp"

#include "core/identifier.hpp"

namespace pipeline::orchestrators::slurm {
namespace {

/// The image's devices are left out: a user without root cannot make them, and the runtime has its
/// own. See apptainer-exec(1), ch-run(1). Exit code 3 is no_runtime_code.
constexpr const char* unpacking = R"sh(folder=$PWD
mkdir -p pipe tmp
unsquashfs -no-progress -quiet -excludes -d root "$image" 'dev/*' >/dev/null || exit 1
mkdir -p root/dev/pts root/dev/shm root/pipe
runtime=
for name in "$@"; do
  if command -v "$name" >/dev/null; then runtime=$name; break; fi
done
[ -n "$runtime" ] || exit 3
USER=$(id -un) HOME=$folder/tmp
export USER HOME
in_container() {
  case ${runtime##*/} in
    ch-run)
      [ -z "$writable" ] || set -- --write "$@"
      "$runtime" --uid=0 --gid=0 --bind="$folder/pipe:/pipe" --bind="$folder/tmp:/tmp" "$@"
      ;;
    *)
      [ -z "$writable" ] || set -- --writable "$@"
      [ "$(id -u)" = 0 ] || set -- --fakeroot "$@"
      "$runtime" exec --contain --no-home --no-mount /etc/localtime \
        --bind "$folder/pipe:/pipe" --bind "$folder/tmp:/tmp" "$@"
      ;;
  esac
}
run() {
  case ${runtime##*/} in
    ch-run) in_container root -- /bin/sh "/pipe/$1" ;;
    *) in_container root /bin/sh "/pipe/$1" ;;
  esac
}
touch begun
)sh";

/// Changed files get the time 1980-01-01. All files are made readable, because mksquashfs would
/// pack a file that its user cannot read as an empty one.
constexpr const char* tidying = R"sh(find root -newer begun -exec touch -h -d @315532800 {} + &&
  find root ! -type l ! -perm -u+r -exec chmod u+r {} +
)sh";

}  // namespace

std::vector<std::string> building_runtimes(const std::string& wanted) {
  if (wanted == "any") return {"apptainer", "singularity", "ch-run"};
  if (wanted == "apptainer") return {"apptainer", "singularity"};
  if (wanted == "charliecloud") return {"ch-run"};
  const bool builds = !wanted.ends_with("/enroot") && !wanted.ends_with("/podman");
  if (wanted.starts_with('/') && builds) return {wanted};
  return {};
}

std::string unpacked_image_script(const std::string& image,
                                  const std::vector<std::string>& runtimes,
                                  const std::vector<ImageScript>& scripts) {
  auto text = "image=" + core::shell_quote(image) + "\n";
  text += "set --";
  for (const auto& runtime : runtimes) text += " " + core::shell_quote(runtime);
  text += "\n";
  text += unpacking;
  for (const auto& script : scripts)
    text += std::string("writable=") + (script.is_writable ? "yes" : "") + "\nrun " +
            core::shell_quote(script.name) + " || exit 1\n";
  return text + tidying;
}

}  // namespace pipeline::orchestrators::slurm
