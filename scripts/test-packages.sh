#!/usr/bin/env bash
# test-packages.sh VENV: tries to install the packages that some tests want: of Debian a browser, clang and what starts programs of
# aarch64; in VENV, a virtual environment of the Python in PATH that takes 6 GB, PyTorch with onnxscript, and what makes the wheel and checks it. Takes ten
# minutes at most, prints a line of what is there of each, and never fails: without them those tests are skipped, and `make test` says so.
set -u

packages=(chromium clang-19 qemu-user)
deadline=$((SECONDS + 590))
log=$(mktemp) || exit 0
trap 'rm -f "$log"' EXIT

version() { dpkg-query -W -f '${db:Status-Abbrev}${Version}' "$1" 2>/dev/null | sed -n 's/^ii //p'; }

root=()
can_install() {
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		echo "this is no Debian system"
	elif [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
		echo "installing needs root, or sudo without a password"
	fi
}

# apt runs apt-get until the deadline, silently.
apt() {
	local left=$((deadline - SECONDS))
	if [ "$left" -le 0 ]; then
		echo "no time left" >"$log"
		return 1
	fi
	timeout -k 5 "$left" "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=30 \
		-o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 "$@" >"$log" 2>&1 </dev/null
	local code=$?
	[ "$code" != 124 ] || echo "no time left" >>"$log"
	return "$code"
}

missing=()
for package in "${packages[@]}"; do
	[ -n "$(version "$package")" ] || missing+=("$package")
done

reason=$(can_install)
declare -A why
if [ "${#missing[@]}" -gt 0 ] && [ -z "$reason" ]; then
	[ "$(id -u)" = 0 ] || root=(sudo -n)
	apt update || true # an old list may do; if not, the package's own line says why
	for package in "${missing[@]}"; do
		# Downloads first: the deadline most likely falls there, where it leaves nothing half installed.
		apt install --no-install-recommends --download-only "$package" &&
			apt install --no-install-recommends "$package" ||
			why[$package]=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c 1-120)
	done
fi

have= without=
for package in "${packages[@]}"; do
	found=$(version "$package")
	if [ -n "$found" ]; then
		have+="${have:+, }$package $found"
	else
		without+="${without:+; }no $package: ${why[$package]:-${reason:-unknown}}"
	fi
done
echo "test packages: ${have:+have $have}${have:+${without:+; }}$without"

venv=$1
wheel=("$(sed -nE 's/^requires = \["(.*)"\]$/\1/p' "$(dirname "$0")/../pyproject.toml")" auditwheel==6.8.2)
[ -x "$venv/bin/python3" ] || python3 -m venv "$venv" >"$log" 2>&1 || echo "no virtual environment: $(tail -n 1 "$log" | cut -c 1-120)"
for list in "${wheel[*]}" "torch==2.15.0 numpy" onnxscript==0.7.2; do
	left=$((deadline - SECONDS))
	# shellcheck disable=SC2086 # words of a list
	if timeout -k 5 "$((left > 1 ? left : 1))" "$venv/bin/python3" -m pip install -q $list >"$log" 2>&1 </dev/null; then
		echo "Python packages: have $list"
	else
		echo "Python packages: not $list: $(grep -v '^[[:space:]]*$' "$log" | tail -n 1 | cut -c 1-120)"
	fi
done
exit 0
