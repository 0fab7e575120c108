#!/usr/bin/env bash
# Installs the wheel of dist/ into an empty environment without a compiler, builds another from the source distribution, and lets both
# run a scenario: the digest must be that of this environment's own engine. `make dist-test` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
wheel=$(ls dist/ackclock-*-abi3-*.whl)
sdist=$(ls dist/ackclock-*.tar.gz)

"${PYTHON:-python3}" - "$wheel" <<'PY'
import sys, zipfile
names = zipfile.ZipFile(sys.argv[1]).namelist()
for wanted in ("ackclock/linux/sources.tar.xz", "licenses/LICENSE-MIT", "licenses/LICENSE-APACHE", "licenses/THIRD-PARTY.txt", ".cyclonedx.json", ".data/data/share/man/man1/ackclock-run.1"):
    if not any(name.endswith(wanted) for name in names):
        sys.exit(f"dist-test: {sys.argv[1]}: found no {wanted}")
PY
"${PYTHON:-python3}" -m venv "$work/venv"
sed -nE 's/^([a-z0-9-]+==[^ ]+) .*/\1/p' requirements.lock >"$work/versions"
empty() { # a command in an empty folder, with the system's programs only
  (cd "$work" && env -i HOME="$work" LANG=C.UTF-8 PATH=/usr/bin:/bin "$@")
}
if empty sh -c 'command -v cargo rustc' >/dev/null; then
  echo "dist-test: Rust is in /usr/bin; that nothing needs it is NOT tested" >&2
fi
digest() { empty "$work/venv/bin/ackclock" run first | sed -n 's/.*digest //p'; }
same() { # WHAT DIGEST
  [ -n "$2" ] && [ "$2" = "$here" ] || { echo "dist-test: $1: digest '$2', here '$here'" >&2; exit 1; }
  echo "$1: digest $2"
}

here=$(.venv/bin/ackclock run scenarios/first.toml | sed -n 's/.*digest //p')
pip=("$work/venv/bin/python" -m pip --quiet --disable-pip-version-check)
"${pip[@]}" install --no-compile -c "$work/versions" "$top/$wheel"
same "$wheel" "$(digest)"
test -s "$work/venv/share/man/man1/ackclock-run.1" # where man looks for a command of venv/bin
empty "$work/venv/bin/ackclock" run mahimahi --set "duration=1 s" --report run.html --out run >/dev/null
test -s "$work/run.html" -a -s "$work/run/flows.parquet"
plot=$(empty "$work/venv/bin/ackclock" run first --plot cwnd.png 2>&1) && code=0 || code=$?
[ "$code" = 3 ] && [ "${plot%install it with: pip install \'ackclock\[figures\]\'}" != "$plot" ] && [ ! -e "$work/cwnd.png" ] ||
  { echo "dist-test: a figure without the extra that draws it: exit code $code, $plot" >&2; exit 1; }
key='from ackclock.linux import _cache; print(_cache.guest_key())' # of the sources packed in the wheel
[ "$(empty "$work/venv/bin/python" -c "$key")" = "$(.venv/bin/python -c "$key")" ] ||
  { echo "dist-test: $wheel: other sources of the linux backend than here" >&2; exit 1; }
for study in prr iw10 large-pipes pcc slow-start; do empty "$work/venv/bin/ackclock" study show "$study" >/dev/null; done

# The profile that builds quickly, because the test is about the archive's completeness. Files of the archive share one old time, so
# cargo would treat the results of an earlier build in a shared folder as fresh.
CARGO_TARGET_DIR=$work/target MATURIN_PEP517_ARGS="--profile ${SDIST_PROFILE:-quick}" \
  PATH="$top/.venv/bin:$PATH" .venv/bin/python -m pip --quiet --disable-pip-version-check wheel --no-deps --no-build-isolation -w "$work/wheels" "$sdist"
"${pip[@]}" install --no-compile --no-deps --force-reinstall "$work"/wheels/*.whl
same "$sdist" "$(digest)"
