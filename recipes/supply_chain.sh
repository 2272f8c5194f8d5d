#!/usr/bin/env bash
# What a release stands on: the licence of every pinned package, an SBOM, and known vulnerabilities.
#
#   bash recipes/supply_chain.sh [PYTHON]
#
# PYTHON is an interpreter in which `pip install -c constraints.txt -e '.[test,docs]'` was run (default: python). The
# tools come into an environment of their own. Writes docs/reference/dependencies.md (the table) and
# dist/elmokit.cdx.json (CycloneDX). Fails if a package has a known vulnerability, or cannot be looked up: that
# step asks pypi.org.
set -euo pipefail
python=$(command -v "${1:-python}")
cd "$(dirname "$0")/.."
tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
python3 -m venv "$tools"
"$tools/bin/pip" install -q pip-audit==2.10.1 pip-licenses==5.5.5 cyclonedx-bom==7.5.0

page=docs/reference/dependencies.md
table=$("$tools/bin/pip-licenses" --python="$python" --format=markdown --order=name --with-system \
    --ignore-packages elmokit torch pip)
awk '{print} /^<!-- licences: begin -->$/ {exit}' "$page" > "$tools/page"
printf '\n%s\n\n<!-- licences: end -->\n' "$table" | sed -E 's/ {2,}/ /g; s/-{4,}/---/g' >> "$tools/page"
cp "$tools/page" "$page"

mkdir -p dist
"$tools/bin/cyclonedx-py" environment "$python" --pyproject pyproject.toml --mc-type library \
    --output-reproducible -o dist/elmokit.cdx.json
"$tools/bin/pip-audit" --requirement constraints.txt --no-deps --disable-pip --strict
