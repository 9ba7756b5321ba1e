#!/usr/bin/env bash
# Builds the image and looks at it as it runs: its size, its user, on a root that cannot be written, its probes, its key, its end.
#
#   deploy/check-image.sh docker     with Docker: the Dockerfile as it is
#   deploy/check-image.sh buildah    as root on Debian, without an engine or a registry: on bases of Debian's packages (buildah,
#                                    debootstrap), with the Node of this checkout and the npm of the machine; DEBIAN_BASE names
#                                    a folder that debootstrap made before
set -euo pipefail
cd "$(dirname "$0")/.."
engine="${1:-docker}"
most_bytes=200000000
revision="$(git rev-parse HEAD)"
work="$(mktemp -d)"
chmod 755 "$work"
ends=()
finish() {
  for ((i = ${#ends[@]} - 1; i >= 0; i--)); do eval "${ends[i]}" >/dev/null 2>&1 || true; done
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "FAILED: $*" >&2; exit 1; }
ok() { echo "ok: $*"; }
# ask PATH: the answer of the broker, tried for a minute.
ask() { curl -sS --fail --max-time 5 --retry 60 --retry-delay 1 --retry-all-errors "$url$1" 2>/dev/null; }

openssl rand -base64 32 > "$work/master.key"
chmod 0400 "$work/master.key"
chown 65532:65532 "$work/master.key" 2>/dev/null || sudo chown 65532:65532 "$work/master.key"

if [ "$engine" = docker ]; then
  docker buildx build --load --tag agent-broker:check --build-arg "REVISION=$revision" .
  bytes="$(docker image inspect agent-broker:check --format '{{.Size}}')"
  user="$(docker image inspect agent-broker:check --format '{{.Config.User}}')"
  id="$(docker run --detach --read-only --tmpfs /tmp --cap-drop ALL --security-opt no-new-privileges \
    --volume "$work/master.key:/run/secrets/master.key:ro" --publish 127.0.0.1::8787 \
    --env BASE_URL=http://localhost:8787 agent-broker:check)"
  ends+=("docker rm --force --volumes $id")
  url="http://$(docker port "$id" 8787/tcp | head -n 1)"
  run() { docker exec "$id" /usr/local/bin/node "$@"; }
  stop() { docker stop --time 30 "$id" >/dev/null; code="$(docker inspect "$id" --format '{{.State.ExitCode}}')"; }
  healthy() { docker inspect "$id" --format '{{.State.Health.Status}}'; }
else
  export BUILDAH_ISOLATION=chroot
  buildah() { command buildah --root "$work/storage" --runroot "$work/runroot" "$@"; }
  # Where node:24-…-slim would be: Debian with Node and npm.
  if [ -n "${DEBIAN_BASE:-}" ]; then cp -a "$DEBIAN_BASE" "$work/node"
  else debootstrap --variant=minbase bookworm "$work/node" > "$work/log" || fail "debootstrap: $(tail -n 3 "$work/log")"; fi
  install -D -m 755 node_modules/node/bin/node "$work/node/usr/local/bin/node"
  cp -a "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$work/node/usr/local/lib/npm"
  ln -s ../lib/npm/bin/npm-cli.js "$work/node/usr/local/bin/npm"
  certificates=""
  if [ -n "${NODE_EXTRA_CA_CERTS:-}" ]; then
    cp "$NODE_EXTRA_CA_CERTS" "$work/node/etc/extra-ca.pem"
    certificates="--env NODE_EXTRA_CA_CERTS=/etc/extra-ca.pem"
  fi
  # Where gcr.io/distroless/cc would be: the packages that it is made of, unpacked.
  mkdir -p "$work/cc" "$work/deb"
  (cd "$work/deb" && apt-get download -qq base-files netbase tzdata ca-certificates libc6 libgcc-s1 libgomp1 libstdc++6 libssl3 2>/dev/null)
  for deb in "$work"/deb/*.deb; do dpkg-deb --extract "$deb" "$work/cc"; done
  install -d -m 1777 "$work/cc/tmp"
  echo 'nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin' > "$work/cc/etc/passwd"
  for base in node cc; do
    container="$(buildah from scratch)"
    buildah add --quiet "$container" "$work/$base" / >/dev/null
    [ "$base" = cc ] || buildah config --env PATH=/usr/local/bin:/usr/bin:/bin $certificates "$container"
    buildah commit --quiet "$container" "localhost/$base" >/dev/null
    buildah rm "$container" >/dev/null
  done
  rm -rf "$work/node" "$work/deb" "$work/cc"
  buildah build --quiet --format docker --tag localhost/agent-broker --build-arg "REVISION=$revision" \
    --build-arg NODE_IMAGE=localhost/node --build-arg BASE_IMAGE=localhost/cc . >/dev/null
  container="$(buildah from localhost/agent-broker)"
  root="$(buildah mount "$container")"
  ends+=("umount --recursive --lazy '$work/storage/overlay'")
  bytes="$(du --summarize --block-size=1 "$root" | cut -f 1)"
  user="$(buildah inspect --type image --format '{{.OCIv1.Config.User}}' localhost/agent-broker)"
  config="$(buildah inspect --type image localhost/agent-broker)"
  read_config() { node -e "const c = JSON.parse(process.argv[1]).Docker.config; console.log($1)" "$config"; }
  # As an engine would: namespaces of its own, a root for reading alone, a volume, a tmpfs, no capability, and process 1.
  mkdir -p "$work/data" && cp -a --attributes-only "$root/data/." "$work/data/" && chown 65532:65532 "$work/data" && chmod 700 "$work/data"
  mkdir -p "$root/run/secrets" "$root/proc" && touch "$root/run/secrets/master.key"
  port=18787
  url="http://127.0.0.1:$port"
  mapfile -t environment < <(read_config 'c.Env.join("\n")')
  mapfile -t command < <(read_config '[...c.Entrypoint, ...c.Cmd].join("\n")')
  cat > "$work/inside.sh" <<'INSIDE'
set -e
root="$1" work="$2"; shift 2
mount --bind "$root" "$root"
mount --bind "$work/data" "$root/data"
mount --bind "$work/master.key" "$root/run/secrets/master.key"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
# chroot by itself needs a capability that is given up here.
exec chroot --userspec=65532:65532 --groups= "$root" "$@"
INSIDE
  env -i "${environment[@]}" PORT=$port BASE_URL=http://localhost:$port \
    /usr/bin/unshare --mount --pid --ipc --uts --fork --kill-child=SIGKILL \
    /usr/bin/setpriv --no-new-privs --bounding-set=-all,+sys_chroot,+setuid,+setgid,+sys_admin \
    /bin/sh "$work/inside.sh" "$root" "$work" "${command[@]}" > "$work/log" 2>&1 &
  parent=$!
  # It does not heed SIGTERM itself; its end is that of the process inside.
  ends+=("wait $parent" "kill -KILL $parent")
  first() { pgrep --parent "$parent" | head -n 1; }
  run() { env -i "${environment[@]}" PORT=$port /usr/bin/nsenter --target "$(first)" --mount --pid --root --wd \
    --setuid 65532 --setgid 65532 -- /usr/local/bin/node "$@"; }
  stop() { kill -TERM "$(first)"; wait "$parent" && code=0 || code=$?; }
  healthy() {
    mapfile -t check < <(read_config 'c.Healthcheck.Test.slice(2).join("\n")')
    run "${check[@]}" && echo healthy || echo unhealthy
  }
fi

[ "$bytes" -lt "$most_bytes" ] || fail "the image has $bytes bytes, more than $most_bytes"
ok "$bytes bytes unpacked"
[ "$user" = 65532:65532 ] || fail "its user is '$user'"
[ "$(ask /livez)" = '{"status":"ok"}' ] || fail '/livez'
[ "$(ask /readyz)" = '{"status":"ok"}' ] || fail '/readyz'
ok 'serves /livez and /readyz'
ask /version | grep -q "$revision" || fail '/version does not name the commit'
ok 'knows its commit'
run -e 'if (process.getuid() !== 65532) process.exit(1)' || fail 'is not user 65532'
for path in /app/x /usr/x /x; do
  run -e "try { require('node:fs').writeFileSync('$path', ''); process.exit(1) } catch (error) { process.exit(error.code === 'EROFS' ? 0 : 2) }" ||
    fail "$path can be written"
done
ok 'runs as user 65532 on a root that cannot be written'
run -e "if (require('node:fs').readdirSync('/data').includes('keys')) process.exit(1)" || fail 'there is a key in the data folder'
ok 'keeps its key out of the data folder'
run /app/bin/agent-broker.js owner link | grep -q http || fail 'owner link'
ok 'makes a sign-in link by the command line inside'
for _ in $(seq 60); do [ "$(healthy)" = healthy ] && break; sleep 1; done
[ "$(healthy)" = healthy ] || fail 'its health check fails'
ok 'its health check passes'
began=$SECONDS
stop
[ "$code" = 0 ] || fail "ended with $code"
ok "ends with 0 on SIGTERM, after $((SECONDS - began)) s"
