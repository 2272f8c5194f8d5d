#!/usr/bin/env bash
# Run the tests that need no PyTorch with the lowest or the newest versions of what elmokit needs.
#
#   bash recipes/versions.sh lowest|newest [PYTHON]
#
# The lowest are the bounds in pyproject.toml; the newest are what pip chooses without constraints.txt. The
# environment is made in a temporary directory. Prints the versions, and what pytest says.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${2:-python3}
case "${1:-}" in lowest) operator='==' ;; newest) operator='>=' ;; *) sed -n 4p "$0" >&2; exit 2 ;; esac
"$python" --version
needed=$("$python" -c 'import tomllib
for name in tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"]: print(name)')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder"
# shellcheck disable=SC2086
"$folder/bin/pip" install -q ${needed//>=/$operator} pytest pytest-xdist hypothesis beartype 'jaxtyping>=0.3.11' scipy
"$folder/bin/pip" install -q --no-deps -e .
"$folder/bin/pip" list --format=freeze
"$folder/bin/python" -m pytest -n 0 -q -p no:cacheprovider -m "not gpu" tests/project/test_without_torch.py \
    tests/unit/{embed,evaluation,inspection,text,weights}
