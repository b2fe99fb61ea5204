#!/bin/sh
# Stop a unit before Azure touches this VM, and start it again when that is over.
#
#   drain.sh UNIT
#
# The bridge runs it for each CloudEvent and reads its exit code: 0 is done, 75 is try again later, anything
# else gives up. It may run twice for the same CloudEvent, so every step can be repeated.
set -eu

unit=${1:?usage: drain.sh UNIT}

case $EVENT_KIND in
    scheduled | updated) ;;
    completed | canceled)
        systemctl start "$unit" || exit 75
        echo "$unit runs again"
        exit 0
        ;;
    *) exit 0 ;;
esac

if [ "$EVENT_AFFECTED" != true ]; then
    exit 0
fi
if [ "$EVENT_DRILL" = true ]; then
    echo "a drill: $unit would be stopped now"
    exit 0
fi

systemctl stop --no-block "$unit" || exit 75

left=${EVENT_SECONDS_LEFT:-60}
while state=$(systemctl is-active "$unit" || true) &&
    [ "$state" != inactive ] && [ "$state" != failed ]; do
    if [ "$left" -le 0 ]; then
        echo "$unit is still $state, and the notice is over"
        exit 1
    fi
    left=$((left - 1))
    sleep 1
done
echo "$unit is drained ($state)"
