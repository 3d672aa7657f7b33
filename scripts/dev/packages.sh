# packages.sh -- installs what is missing on Debian and Ubuntu; sourced by scripts/luma and check.

# install_packages PACKAGE...: by apt as root or with a sudo that asks no password; otherwise prints
# the command and fails. Talks on stderr.
install_packages() {
    command="apt-get install -y --no-install-recommends $*"
    if ! command -v apt-get >/dev/null; then
        echo "luma needs these packages (named as on Debian): $*" >&2
        return 1
    fi
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root=sudo
    else
        printf 'luma needs packages that are not installed. Run this, then start again:\n' >&2
        printf '    sudo apt-get update && sudo %s\n' "$command" >&2
        return 1
    fi
    echo "luma: installing $*" >&2
    $as_root env DEBIAN_FRONTEND=noninteractive $command >/dev/null 2>&1 && return 0
    $as_root apt-get update >&2
    $as_root env DEBIAN_FRONTEND=noninteractive $command >&2
}

# Prints the packages that a build needs and that are not here.
missing_for_build() {
    command -v cc >/dev/null || echo gcc libc6-dev
    command -v cmake >/dev/null || echo cmake
    command -v ninja >/dev/null || command -v make >/dev/null || echo make
    [ -f /usr/include/lua5.4/lua.h ] || [ -f /usr/local/include/lua.h ] || echo liblua5.4-dev
    [ -f /usr/include/zlib.h ] || [ -f /usr/local/include/zlib.h ] || echo zlib1g-dev
}
