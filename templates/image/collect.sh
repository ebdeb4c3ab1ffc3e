# Usage: collect.sh NAME. For the classic builder: copies the files that this stage changed since the last collect.sh to /pipe-changed/NAME,
# from where the last stage takes them.
start=/pipe-build/start
find "$start" -cnewer "$start" >/dev/null 2>&1 || fail "this engine has no BuildKit, and the find of $(distribution) cannot tell what a build changed (-cnewer)" \
  "use an engine with BuildKit, or a parent_image with GNU find"
mkdir -p "/pipe-changed/$1"
find / -xdev \( -path /pipe-build -o -path /pipe-changed -o -path /pipe-tools -o -path /proc -o -path /sys -o -path /dev -o -path /tmp \) -prune -o \
  \( ! -type d -o -type d -empty \) -cnewer "$start" \
  ! -path /etc/hosts ! -path /etc/resolv.conf ! -path /etc/hostname ! -path /.dockerenv -print0 | xargs -0 -r cp -a --parents -t "/pipe-changed/$1"
touch "$start"
