"""The files of the console: small, self-contained, and strict."""

import gzip
import re
from pathlib import Path

CONSOLE = Path(__file__).parents[2] / "bridge/web/console"
FILES = sorted(
    path for path in CONSOLE.rglob("*") if path.suffix in {".html", ".css", ".js", ".svg"}
)
MOST = 60 * 1024


def text(path: Path) -> str:
    return path.read_text("utf-8")


async def test_all_files_together_are_at_most_60_kb_compressed():
    assert len(FILES) > 20
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in FILES) <= MOST


async def test_only_one_module_reaches_data():
    reaching = re.compile(r"\bfetch\(|\bEventSource\b|\bXMLHttpRequest\b|\bWebSocket\b")
    assert [path.name for path in FILES if reaching.search(text(path))] == ["api.js"]


async def test_nothing_comes_from_elsewhere_and_nothing_is_inline():
    elsewhere = re.compile(r"https?://(?!www\.w3\.org/)|(?:src|href)=[\"']//")
    assert [path.name for path in FILES if elsewhere.search(text(path))] == []
    page = text(CONSOLE / "index.html")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)


async def test_every_module_says_what_it_is_for_and_is_short():
    modules = [path for path in FILES if path.suffix in {".js", ".css"}]
    assert [path.name for path in modules if not text(path).startswith("/*")] == []
    assert [path.name for path in modules if len(text(path).splitlines()) > 300] == []
