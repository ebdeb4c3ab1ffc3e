#include "orchestrators/slurm/podman_script.hpp"

namespace pipeline::orchestrators::slurm {

/// Podman's state is in the job's folder: a home folder may be on a file system that Podman cannot
/// use, and no state must stay. Storage is `vfs` because no image is stored. `podman unshare` makes
/// the namespace in which a user may mount; it stays until its process (pause.pid) ends. The words
/// from container_runtime.cpp mount the files with `:O`, an overlay that has the mount points which
/// an image lacks, and have Podman write the numbers of its processes to $own/agent and
/// $own/conmon.
/// An image is unpacked again every two weeks (1,209,600 s), because machines remove old files from
/// /var/tmp. The lock of an unpacked image is held until the container's end, because `exec` keeps
/// descriptor 9: no other job removes the files meanwhile. Code 2 of unsquashfs says that some
/// attributes could not be set, as without root.
const char* const podman_function = R"sh(pass_on() {
  kill "-$1" "$(cat "$own/agent" 2>/dev/null || cat "$own/process")" 2>/dev/null
}
in_podman() {
  own=$temporary/podman
  images=/var/tmp/pipe-images-$(id -u)
  program=$1 image=$2
  shift 2
  mkdir "$own" "$own/run" || return 1
  cat >"$own/enter" <<'END'
own=$1 images=$2 image=$3 folder=$4
shift 4
echo $$ >"$own/process"
is_mounted() {
  [ "$(stat -c %d "$folder")" != "$(stat -c %d "$folder/..")" ]
}
mount_image() {
  command -v squashfuse >/dev/null || return 1
  squashfuse -f "$image" "$folder" 2>"$own/said" &
  echo $! >"$own/fuse"
  while kill -0 $! 2>/dev/null; do
    if is_mounted; then return 0; fi
    sleep 0.02
  done
  rm -f "$own/fuse"
  return 1
}
unpack_image() {
  unpacked=$images/${image##*/}-$(($(date +%s) / 1209600))
  mkdir -m 700 "$images" 2>/dev/null
  if [ -L "$images" ] || [ ! -O "$images" ]; then
    echo "$images is not a folder of this user" >&2
    return 1
  fi
  exec 9>>"$unpacked.lock" && flock -s 9 || return 1
  if [ ! -d "$unpacked" ]; then
    flock 9 || return 1
    if [ ! -d "$unpacked" ]; then
      rm -rf "$unpacked.new"
      unsquashfs -no-progress -no-xattrs -d "$unpacked.new" "$image" >/dev/null
      case $? in
        0 | 2) mv "$unpacked.new" "$unpacked" || return 1 ;;
        *) return 1 ;;
      esac
    fi
    flock -s 9
  fi
  find "$images" -maxdepth 1 -name '*.lock' -mtime +14 | while read -r old; do
    flock -n "$old" rm -rf "${old%.lock}" "${old%.lock}.new"
  done
  mount --bind "$unpacked" "$folder"
}
if ! mount_image && ! unpack_image; then
  cat "$own/said" >&2 2>/dev/null
  echo "Podman cannot use the image: squashfuse or unsquashfs has to work on this node" >&2
  exit 1
fi
exec "$@"
END
  XDG_RUNTIME_DIR=$own/run
  export XDG_RUNTIME_DIR
  options="--runtime=crun --root=$own/storage --runroot=$own/run/storage --tmpdir=$own/run/tmp"
  options="$options --storage-driver=vfs --cgroup-manager=cgroupfs --events-backend=none"
  options="$options --log-level=fatal" # Hides a warning without /etc/subuid, but not failures.
  set -- "$program" $options run "$@"
  set -- /bin/sh "$own/enter" "$own" "$images" "$image" "$temporary/image" "$@"
  if [ "$(id -u)" = 0 ]; then
    set -- unshare --mount "$@"
  else
    set -- "$program" $options unshare "$@"
  fi
  trap 'pass_on TERM' TERM
  trap 'pass_on URG' URG
  exec 3<&0
  "$@" <&3 &
  started=$!
  exec 3<&-
  code=1
  while kill -0 "$started" 2>/dev/null; do
    wait "$started"
    code=$?
  done
  for name in process conmon; do
    while kill -0 "$(cat "$own/$name" 2>/dev/null)" 2>/dev/null; do sleep 0.1; done
  done
  for file in "$own/fuse" $(find "$own" -name pause.pid 2>/dev/null); do
    kill -KILL "$(cat "$file" 2>/dev/null)" 2>/dev/null
  done
  chmod -R u+rwx "$own" 2>/dev/null
  return $code
}
)sh";

}  // namespace pipeline::orchestrators::slurm
