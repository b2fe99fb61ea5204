"""The list of everything in the packages, in CycloneDX."""

import base64
import csv
import json
import uuid
from email import message_from_string
from pathlib import Path
from typing import Any

from release.facts import NAME, moment, run

_IDS = uuid.UUID("5e3d8f0a-7f0b-5a55-9a0c-6f2b9a6f7a10")


def write(bundle: Path, target: Path, *, version: str) -> Path:
    """Write the list of *bundle*; the same bundle has the same list."""
    libraries = sorted(_libraries(bundle), key=lambda one: str(one["bom-ref"]))
    [product] = [one for one in libraries if one["name"] == NAME]
    parts = [_python(bundle), *(one for one in libraries if one is not product)]
    body = json.dumps([product, parts], sort_keys=True)
    document = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(_IDS, body)}",
        "version": 1,
        "metadata": {
            "timestamp": moment(),
            "component": {**product, "type": "application", "version": version},
        },
        "components": parts,
        "dependencies": [
            {"ref": product["bom-ref"], "dependsOn": sorted(one["bom-ref"] for one in parts)}
        ],
    }
    target.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return target


def _python(bundle: Path) -> dict[str, Any]:
    show = "import platform; print(platform.python_version())"
    version = run(bundle / "python" / "bin" / "python3", "-I", "-c", show).strip()
    purl = f"pkg:generic/cpython@{version}"
    return {
        "type": "platform",
        "bom-ref": purl,
        "name": "cpython",
        "version": version,
        "licenses": [{"license": {"id": "PSF-2.0"}}],
        "purl": purl,
    }


def _libraries(bundle: Path) -> list[dict[str, Any]]:
    [site] = (bundle / "python" / "lib").glob("python3.*/site-packages")
    return [_library(folder) for folder in site.glob("*.dist-info")]


def _library(folder: Path) -> dict[str, Any]:
    facts = message_from_string((folder / "METADATA").read_text("utf-8"))
    name, version = facts["Name"], facts["Version"]
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    found: dict[str, Any] = {
        "type": "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
    }
    if facts["License-Expression"]:
        found["licenses"] = [{"expression": facts["License-Expression"]}]
    elif facts["License"] and "\n" not in facts["License"]:
        found["licenses"] = [{"license": {"name": facts["License"]}}]
    if facts["Summary"]:
        found["description"] = facts["Summary"]
    found["properties"] = [{"name": "record:sha256", "value": _record(folder)}]
    return found


def _record(folder: Path) -> str:
    """One hash for all files that the library brings."""
    import hashlib  # noqa: PLC0415  only here

    with (folder / "RECORD").open(newline="") as file:
        rows = sorted(row[:2] for row in csv.reader(file) if row[1])
    listed = "\n".join(" ".join(row) for row in rows).encode()
    return base64.urlsafe_b64encode(hashlib.sha256(listed).digest()).decode().rstrip("=")
