#!/usr/bin/env bash
# Licences and sources of the crates, and known vulnerabilities of crates and Python packages. A look-up that is
# impossible here (missing tool, unreachable data) is reported in a line and is not an error; a finding is.
set -euo pipefail
cd "$(dirname "$0")/.."
not_checked() { echo "advisories: NOT checked: $*" >&2; }

if cargo deny --version >/dev/null 2>&1; then
  cargo deny --log-level error check bans licenses sources
  if cargo deny fetch db >/dev/null 2>&1; then
    cargo deny --log-level error check advisories
  else
    not_checked "crates; the database of RustSec cannot be reached"
  fi
else
  not_checked "crates and their licences; cargo install cargo-deny --locked"
fi

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
if python3 -m venv "$place/venv" && timeout 120 "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check pip-audit 2>/dev/null; then
  said=$(timeout 120 "$place/venv/bin/pip-audit" --disable-pip --require-hashes -r requirements.lock -r requirements-dev.lock 2>&1) || {
    case $said in
      *"known vulnerabilit"*) echo "$said"; exit 1 ;;
      *) not_checked "Python packages; their database cannot be reached" ;;
    esac
  }
else
  not_checked "Python packages; pip-audit cannot be installed"
fi
