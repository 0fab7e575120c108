#!/usr/bin/env bash
# The linux backend from scratch, as on a fresh machine: the packages that `ackclock doctor` names, a clone of HEAD, `make
# setup`, the kernel, and the same run twice, all by an ordinary user in a folder that is removed afterwards. As root it
# installs the packages and continues as `nobody`. Sources and kernels are taken from the cache and put back there, so
# that only the first run takes long. Needs an environment made by `make setup`.
#
# If packages are missing and their archive is unreachable, nothing is tested: a line says so, and the exit code is 0, or 1
# with ACKCLOCK_CI_LINUX=require.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
since=$SECONDS
say() { echo "ci_linux: $* ($((SECONDS - since)) s)"; }

give_up() { # give_up WHY: the test is impossible here
  say "$*; the linux backend was NOT tested" >&2
  [ "${ACKCLOCK_CI_LINUX:-}" = require ] && exit 1
  exit 0
}

as_user=()
python=${PYTHON:-python3}
if [ "$(id -u)" = 0 ]; then
  as_user=(runuser -u nobody --)
  python=/usr/bin/python3 # root's own may be unreadable
fi

# Packages.
packages=$(.venv/bin/ackclock doctor --packages) || [ $? = 3 ]
"${as_user[@]}" "$python" -c 'import ensurepip, venv' 2>/dev/null || packages+=" python3-venv"
packages=$(echo $packages)
if [ -n "$packages" ]; then
  say "missing: $packages"
  [ "$(id -u)" = 0 ] || give_up "only root can install them"
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq update || give_up "Debian's archive cannot be reached"
  apt-get -qq install -y --no-install-recommends $packages >/dev/null
fi

# A folder owned by the user, with the toolchain if only root can read it.
place=$(mktemp -d "${TMPDIR:-/tmp}/ackclock-ci.XXXXXX")
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
path=$PATH
sysroot=$(rustc --print sysroot)
if ! "${as_user[@]}" test -x "$sysroot/bin/cargo"; then
  mkdir "$place/rust"
  cp -r "$sysroot/bin" "$sysroot/lib" "$place/rust/"
  path=$place/rust/bin:$path
fi
git -c advice.detachedHead=false clone -q --no-hardlinks "$top" "$place/ackclock"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/ackclock/linux
mkdir -p "$place/cache/ackclock/linux" "$place/home" "$place/tmp"
for kept in "$cache"/sources "$cache"/kernel-* "$cache"/current; do
  [ ! -e "$kept" ] || cp -r "$kept" "$place/cache/ackclock/linux/"
done
[ "$(id -u)" != 0 ] || chown -R nobody "$place"

user() { # user COMMAND...: in the clone, as the user
  (cd "$place/ackclock" && "${as_user[@]}" env HOME="$place/home" XDG_CACHE_HOME="$place/cache" TMPDIR="$place/tmp" \
    CARGO_HOME="$place/home/.cargo" PATH="$path" "$@")
}

say "$(. /etc/os-release && echo "$PRETTY_NAME"), user $("${as_user[@]}" id -un)"
user make -s setup PROFILE=quick PYTHON="$python"
say "environment"
user .venv/bin/ackclock linux build
say "kernel"
for out in first second; do
  user .venv/bin/ackclock run scenarios/cubic-100m.toml --backend linux --out "$place/home/$out" --json >"$place/$out.json"
done
"$python" - "$place/first.json" "$place/second.json" <<'PYTHON'
import json, sys
first, second = (json.load(open(file)) for file in sys.argv[1:])
assert first["digest"] == second["digest"], (first["digest"], second["digest"])
PYTHON
say "the same run twice: equal digests"
XDG_CACHE_HOME=$place/cache .venv/bin/pytest tests/python/linux -m "not long"
say "tests against this kernel"

# One of the older kernels, chosen by the day of the commit: it builds, and most of two drawn scenarios of each family run on it.
day=$(git log -1 --format=%cd --date=format:%d)
[ $((10#$day % 2)) = 0 ] && older=6.1 || older=6.12
if user .venv/bin/ackclock linux build --source "linux-source-$older" --name older; then
  user .venv/bin/ackclock diff --drawn --count 2 --kernel older --json >"$place/older.json"
  "$python" - "$place/older.json" "$older" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))
ran = [row for row in rows if not row["refused"]]
assert len(ran) > 0.8 * len(rows), [row["difference"] for row in rows if row["refused"]]
assert all(row["kernel"].startswith(sys.argv[2] + ".") for row in ran)
print(f"{len(ran)} of {len(rows)} drawn scenarios ran on Linux {sys.argv[2]}")
PYTHON
  say "Linux $older"
else
  say "Linux $older could not be built; it was NOT tested" >&2
fi

# Keep sources and kernels, but not the tree.
mkdir -p "$cache"
for kept in "$place"/cache/ackclock/linux/{sources,kernel-*}; do
  [ -e "$cache/$(basename "$kept")" ] || cp -r "$kept" "$cache/"
done
[ -e "$cache/current" ] || cp "$place/cache/ackclock/linux/current" "$cache/"
say "done"
