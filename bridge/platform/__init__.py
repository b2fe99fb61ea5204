"""What differs between operating systems, under the same names for POSIX and Windows.

Only this package, and `sinks.command.groups`, check which system they run on.
"""

import sys

from bridge.platform.errors import AlreadyRunning, ServiceError
from bridge.platform.systemd import watchdog_interval

if sys.platform == "win32":
    from bridge.platform.windows import (
        boot_id,
        check_group,
        config_file,
        control_address,
        control_connector,
        default_state_dir,
        dhcp_options,
        forbid_core_dumps,
        lock,
        notify,
        open_files,
        open_to_others,
        peer_user,
        private_directory,
        private_file,
        raise_open_files,
        read_owned,
        runs_as,
        serve_control,
        signals,
        state_dirs,
    )
else:
    from bridge.platform.control_socket import (
        check_group,
        control_address,
        control_connector,
        peer_user,
        serve_control,
    )
    from bridge.platform.posix import (
        boot_id,
        config_file,
        default_state_dir,
        dhcp_options,
        forbid_core_dumps,
        lock,
        open_files,
        open_to_others,
        private_directory,
        private_file,
        raise_open_files,
        read_owned,
        runs_as,
        signals,
        state_dirs,
    )
    from bridge.platform.systemd import notify

__all__ = [
    "AlreadyRunning",
    "ServiceError",
    "boot_id",
    "check_group",
    "config_file",
    "control_address",
    "control_connector",
    "default_state_dir",
    "dhcp_options",
    "forbid_core_dumps",
    "lock",
    "notify",
    "open_files",
    "open_to_others",
    "peer_user",
    "private_directory",
    "private_file",
    "raise_open_files",
    "read_owned",
    "runs_as",
    "serve_control",
    "signals",
    "state_dirs",
    "watchdog_interval",
]
