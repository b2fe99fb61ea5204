"""A minimal Debian in a folder, and commands that run in it as root or as the bridge's user."""

import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
USER = "scheduled-events-bridge"
PATIENCE = 60.0
ENVIRONMENT = {
    "PATH": "/opt/bridge/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
}


def command(*words: object, env: dict[str, str] | None = None, cwd: Path | None = None) -> str:
    """Run it here; it must succeed."""
    done = subprocess.run(
        [str(word) for word in words], check=False, capture_output=True, text=True, env=env, cwd=cwd
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


def snapshot(target: Path) -> Path:
    """A copy of this tree, so that a proof sees one state of it."""
    names = command("git", "-C", ROOT, "ls-files", "-co", "--exclude-standard").split("\n")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name)
    return target


def epoch() -> str:
    return command("git", "-C", ROOT, "log", "-1", "--format=%ct").strip()


def wait(condition: Callable[[], Any], what: str, explain: Callable[[], str] = str) -> Any:
    limit = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < limit, f"waited in vain for {what}\n{explain()}"
        time.sleep(0.05)
    return found


class Machine:
    """A Debian of its own, without a kernel or systemd, and with no more packages than asked for."""

    def __init__(self, suite: str, folder: Path, packages: str = "") -> None:
        self.suite, self.root = suite, folder
        command(ROOT / "scripts" / "debian-root", suite, folder, packages)
        self.began = time.monotonic()

    def step(self, told: str) -> None:
        """Say what is done, and how long it took since the step before."""
        now = time.monotonic()
        print(f"  {self.suite:9} {now - self.began:6.2f} s  {told}", flush=True)
        self.began = time.monotonic()

    def run(self, *words: object, user: str | None = None) -> tuple[int, str]:
        done = subprocess.run(
            [*self._chroot(user), *map(str, words)],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=ENVIRONMENT,
        )
        return done.returncode, done.stdout

    def _chroot(self, user: str | None) -> list[str]:
        """In a mount namespace of its own with /proc, as on any machine, so that nothing stays mounted."""
        mounted = 'mount -t proc proc "$0/proc" && exec chroot "$@"'
        who = [f"--userspec={user}:{user}"] if user else []
        return ["unshare", "-m", "sh", "-c", mounted, str(self.root), *who, str(self.root)]

    def must(self, *words: object, user: str | None = None) -> str:
        code, told = self.run(*words, user=user)
        assert code == 0, f"{words}: {code}: {told}"
        return told

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")

    def install(self, package: Path) -> str:
        shutil.copy(package, self.root / "tmp" / package.name)
        return self.must("dpkg", "--force-confold", "-i", f"/tmp/{package.name}")

    @contextlib.contextmanager
    def running(self, *words: object, user: str = USER) -> Iterator[Path]:
        """Run it in the background, and end it with SIGTERM; its output is in the file."""
        log = self.root / "tmp" / f"{words[1]}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*self._chroot(user), *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=ENVIRONMENT,
            )
        try:
            yield log
            assert process.poll() is None, f"{words} ended: {log.read_text()}"
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


def cloudevents(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def kinds(path: Path) -> list[str]:
    return [one["type"].removeprefix("azure.scheduledevents.") for one in cloudevents(path)]
