"""Print the configuration's JSON Schema, as it is kept in `schemas/config.v1.schema.json`."""

import json
import sys

from bridge.config.schema import json_schema

sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n")
