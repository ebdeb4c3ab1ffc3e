# Usage: create.sh NAME|UID[:GROUP|:GID]. Adds to /etc/passwd and /etc/group what is not there: works without useradd and adduser.
number() { case $1 in *[!0-9]*) return 1 ;; esac; }
# Usage: id_in FILE NAME|ID. Prints the id of the entry with this name or id: the third field in /etc/passwd as in /etc/group.
id_in() {
  [ -e "$1" ] || : >"$1"
  while IFS=: read -r entry_name _ entry_id _ || [ -n "$entry_name" ]; do
    if number "$2"; then found=$entry_id; else found=$entry_name; fi
    [ "$found" != "$2" ] || { echo "$entry_id"; return; }
  done <"$1"
  return 1
}
# Usage: append FILE LINE. Ends the file's last line first, if it has no line end.
append() {
  [ -z "$(tail -c 1 "$1")" ] || echo >>"$1"
  echo "$2" >>"$1"
}
free_id() {
  free=1000
  while id_in /etc/passwd "$free" >/dev/null || id_in /etc/group "$free" >/dev/null; do free=$((free + 1)); done
  echo "$free"
}
[ "$(id -u)" = 0 ] || fail "the user $1 can be created by root only, and the parent image runs as user $(id -u)"
user=${1%%:*}
group=
case $1 in *:*) group=${1#*:} ;; esac

known=$(id_in /etc/passwd "$user") || known=
if [ -n "$group" ]; then
  gid=$(id_in /etc/group "$group") || { gid=$group; number "$group" || gid=$(free_id); }
  new_group=$group
else
  gid=$user
  number "$user" || gid=$(free_id)
  new_group=$user
fi
if [ -z "$known" ] || [ -n "$group" ]; then
  if ! id_in /etc/group "$gid" >/dev/null; then
    ! number "$new_group" || new_group=group$new_group
    append /etc/group "$new_group:x:$gid:"
  fi
fi
[ -z "$known" ] || exit 0
uid=$user
name=$user
if number "$user"; then name=user$user; else uid=$gid; ! id_in /etc/passwd "$uid" >/dev/null || uid=$(free_id); fi
append /etc/passwd "$name:x:$uid:$gid::/home/$name:/bin/sh"
[ ! -e /etc/shadow ] || append /etc/shadow "$name:!::0:99999:7:::"
mkdir -p "/home/$name"
chown "$uid:$gid" "/home/$name"
