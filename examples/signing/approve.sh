#!/bin/sh
# A signed approval with an Ed25519 key, with openssl 3 and curl or kcat: approve.sh EVENT_ID VM URL|BROKER/TOPIC
set -eu
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The DER prefix of an Ed25519 key, then the key. openssl gets it in a file, where ps does not show it.
{
    printf '\060\056\002\001\000\060\005\006\003\053\145\160\004\042\004\040'
    printf %s "${SEB_KEY#whsk_}" | openssl base64 -d -A | head -c 32
} >"$work/key"
body=$(printf '{"eventId": "%s", "resource": "%s"%s}' "$1" "$2" "${SEEN:+, \"seen\": \"$SEEN\"}")
id=$(openssl rand -hex 16) now=$(date +%s)
printf %s "$id.$now.$body" >"$work/content"
made=$(openssl pkeyutl -sign -rawin -keyform DER -inkey "$work/key" -in "$work/content" | openssl base64 -A)
set -- "$3" "webhook-id" "$id" "webhook-timestamp" "$now" "webhook-signature" "v1a,$made"
case $1 in
http*) curl -sS -m 30 --fail-with-body -H content-type:application/json -H "$2:$3" -H "$4:$5" -H "$6:$7" -d "$body" "$1" ;;
*) printf %s "$body" | kcat -P -b "${1%/*}" -t "${1##*/}" -H "$2=$3" -H "$4=$5" -H "$6=$7" ;;
esac
