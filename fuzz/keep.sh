#!/usr/bin/env bash
# Keeps a few dozens of the inputs of a fuzz target that together reach what all found ones do, of all sizes.
#
#   fuzz/keep.sh TARGET
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1 most=${2:-48}
binary=$(echo fuzz/target/*/release/"$target")
merged=$(mktemp -d)
trap 'rm -rf "$merged"' EXIT
mkdir -p "fuzz/corpus/$target" "fuzz/target/corpus/$target"
"$binary" -set_cover_merge=1 -max_len=2048 "$merged" "fuzz/corpus/$target" "fuzz/target/corpus/$target" 2>/dev/null
rm -f "fuzz/corpus/$target"/*
# Evenly over their sizes; names are hashes of the content.
find "$merged" -type f -size -2k -printf '%s %p\n' | sort -n |
    awk -v most="$most" '{ path[NR] = $2 } END { n = NR < most ? NR : most; for (i = 1; i <= n; i++) print path[int(i * NR / n)] }' |
    xargs -I{} cp {} "fuzz/corpus/$target/"
echo "$target: $(ls "fuzz/corpus/$target" | wc -l) of $(ls "$merged" | wc -l) inputs kept," \
    "$(du -cb "fuzz/corpus/$target"/* | tail -1 | cut -f1) bytes"
