#!/usr/bin/env bash
# apps/Dockerfile without Docker: this script runs its lines in root folders with the packages of Debian's images. Then the program of the
# last root starts and trains.
#   docker.sh build-folder
. "$(dirname "$0")/programs.sh" "$@"
root=$(sed -n 's/^ricci_SOURCE_DIR:STATIC=//p' "$build/CMakeCache.txt")
[ "$(id -u)" = 0 ] || needs root
command -v mmdebstrap >/dev/null || needs mmdebstrap
: >out >err

# inside FOLDER COMMAND ...: in the root of the present stage, as in a container.
inside() {
  unshare --mount --pid --fork --mount-proc --root "$stage" --wd "$1" \
    env -i HOME=/root PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${@:2}" >out 2>err </dev/null
}
make_root() {  # make_root debian:12-slim
  mmdebstrap --quiet --variant=minbase bookworm "$1" >out 2>err && cp /etc/resolv.conf "$1/etc"
}
copy() {  # copy [--from=STAGE] FROM TO
  mkdir -p "$stage/${*: -1}" || return
  if [[ $1 = --from=* ]]; then cp -a "${1#--from=}$2/." "$stage$3" && return; fi
  (cd "$root" && tar --anchored -X apps/Dockerfile.dockerignore -c $(ls -A "$1")) | tar -x -C "$stage$2"
}
mapfile -t lines < <(grep -E '^[A-Z]' "$root/apps/Dockerfile")
for line in "${lines[@]}"; do
  words=($line) code=0
  case $line in
    'FROM debian:12 AS '*) stage=${words[3]} && { make_root "$stage" || needs "the packages of ${words[1]}"; } ;;
    'FROM debian:12-slim') stage=last && make_root "$stage" ;;
    COPY\ *) copy "${words[@]:1}" ;;
    RUN\ *) inside / sh -c "${line#RUN }" ;;
    WORKDIR\ *) place=${words[1]} && mkdir -p "$stage$place" ;;
    'ENTRYPOINT ["ricci"]') entry=ricci ;;
    *) echo 'this test does not know the line' >err && false ;;
  esac || code=$?
  verdict "$line" "$([ $code = 0 ] || echo "exit code $code")"
  [ $code = 0 ] || exit 1
done

cp text.txt tiny.yaml "$stage$place"
version=$(sed -n 's/^CMAKE_PROJECT_VERSION:STATIC=//p' "$build/CMakeCache.txt")
inside "$place" "$entry" --version
verdict 'the program says its version' "$(grep -qx "ricci $version" out || shown out)"
inside "$place" "$entry" train tiny.yaml name=one
verdict 'and trains' "$([ $? = 0 ] && [ -s "$stage$place/runs/one/model.safetensors" ] || shown out)"
echo "$failures failed"
exit $((failures > 0))
