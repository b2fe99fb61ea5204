"""What others read: validators of our schemas, and parsers of CEF, OCSF and OTLP."""

from importlib.metadata import version

import pytest
from support import foreign
from support.siem_readers import read_cef, read_ocsf, read_otlp
from support.world import published

from bridge.common import schemas
from bridge.plugins import open_format
from bridge.plugins.sinks import SinkSettings

pytestmark = pytest.mark.timeout(120)
READERS = {
    "cef": (read_cef, "pycef", version("pycef"), "reads the format cef"),
    "ocsf": (read_ocsf, "the schema of OCSF", "1.8.0", "accepts the format ocsf"),
    "otlp": (
        read_otlp,
        "OpenTelemetry's protobuf code",
        version("opentelemetry-proto"),
        "reads the format otlp",
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_their_parser_reads_every_type(name: str, proves):
    read, *what = READERS[name]
    proves("Formats and schemas", *what)
    form = open_format(SinkSettings.model_validate({"type": "any", "format": name}))
    for cloudevent in published().values():
        assert read(form.encode(cloudevent))


async def test_strict_validators_compile_every_schema_and_parse_the_asyncapi_document(proves):
    for package, what in (
        ("ajv", "compiles every schema, in strict mode"),
        ("@asyncapi/parser", "parses the AsyncAPI document"),
    ):
        proves("Formats and schemas", f"npm {package}", foreign.npm_version(package), what)
    known = [name for name in schemas.names() if name.endswith(".v1")]
    asked = {
        "schemas": {name: schemas.schema(name) for name in known},
        "asyncapi": schemas.read("asyncapi"),
    }
    *compiled, last = await foreign.ask("JavaScript", "schemas", stdin=asked)
    names = {one["compiled"] for one in compiled}
    assert {*known} < names
    assert len(names) == len(known) + len(published()) + 1
    assert last == {"asyncapi": True, "errors": []}
