#!/usr/bin/env bash
# Builds the wheel twice, in two folders of different names and with empty target folders, and compares them byte for byte.
# REPRODUCIBLE_PROFILE (quick) is Cargo's profile; `release` also trains, with counts that differ between runs unless they are kept.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commit=$(git rev-parse HEAD) # for both builds, even if HEAD moves meanwhile
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export PYO3_PYTHON=$top/.venv/bin/python
for name in one another/deeper; do
  mkdir -p "$work/$name/source" "$work/$name/out"
  git archive "$commit" | tar -x -C "$work/$name/source"
  (
    cd "$work/$name/source"
    # panic messages contain source paths
    export RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
    "$top/.venv/bin/python" tools/linux_sources.py
    "$top/.venv/bin/python" tools/man_pages.py
    CARGO_TARGET_DIR="$work/$name/target" "$top/.venv/bin/maturin" build --quiet --strip --profile "${REPRODUCIBLE_PROFILE:-quick}" --locked --out "$work/$name/out"
  )
  rm -rf "$work/$name/target"
done
first=$(ls "$work"/one/out/*.whl)
second=$(ls "$work"/another/deeper/out/*.whl)
sha256sum "$first" "$second" | sed "s#$work/##"
if cmp -s "$first" "$second"; then
  echo "reproducible: both wheels are equal, $(stat -c %s "$first") bytes"
else
  "$top/.venv/bin/python" - "$first" "$second" <<'PY'
import sys, zipfile
a, b = (zipfile.ZipFile(name) for name in sys.argv[1:])
for name in sorted({*a.namelist(), *b.namelist()}):
    if name not in a.namelist() or name not in b.namelist():
        print(f"differs: {name} is in one of them only")
    elif a.read(name) != b.read(name):
        print(f"differs: {name}")
    elif a.getinfo(name).date_time != b.getinfo(name).date_time:
        print(f"differs: time of {name}")
PY
  exit 1
fi
