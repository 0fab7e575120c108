#!/bin/sh
# Reports in one line the missing tools for building ackclock, if any.
set -u
rust_needed=1.88 # the newest version that a locked crate requires
say() {
  echo "ackclock needs $*" >&2
  exit 3
}
newer() { # newer HAVE NEED: not older than NEED
  "$python" -c 'import re, sys; have, need = ([int(n) for n in re.findall(r"\d+", v)[:3]] for v in sys.argv[1:]); sys.exit(have < need)' "$1" "$2"
}

python=${PYTHON:-python3}
command -v "$python" >/dev/null 2>&1 ||
  say "Python >= 3.11: install it with \`apt install python3 python3-venv\`, or say where it is: make PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  say "Python >= 3.11, found $("$python" -V 2>&1): say where a newer one is: make PYTHON=/path/to/python3.11"
"$python" -c 'import ensurepip, venv' 2>/dev/null ||
  say "Python's venv module: install it with \`apt install python3-venv\`"
rust="a Rust toolchain (>= $rust_needed): install it from https://rustup.rs, or with \`apt install cargo\` where that is new enough"
have=$(cargo --version 2>/dev/null)
have=${have#cargo }
have=${have%% *}
[ -n "$have" ] || say "$rust"
newer "$have" "$rust_needed" || say "$rust; found cargo $have"
command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 ||
  say "a C compiler, to link: install it with \`apt install build-essential\`"
