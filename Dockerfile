# BASE names the image with Python; a release names it by digest: python@sha256:…
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY bridge bridge
COPY sinks sinks
COPY schemas schemas
# The wheel is built by the pinned build tool, and installed where the image's own pip cannot reach it.
RUN pip install --no-cache-dir -c constraints.txt hatchling \
 && pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist .
# Compiled without times, so that the same sources give the same bytes; the root may be read-only.
RUN python -m venv --without-pip /opt/scheduled-events-bridge \
 && pip --python /opt/scheduled-events-bridge/bin/python install --no-cache-dir --no-compile -c constraints.txt \
    "$(ls /dist/*.whl)[kafka,mqtt,template,ed25519,telemetry]" \
 && PYTHONHASHSEED=0 /opt/scheduled-events-bridge/bin/python -m compileall -q -j 1 \
    --invalidation-mode unchecked-hash /opt/scheduled-events-bridge/lib \
 && rm -f /opt/scheduled-events-bridge/lib/python3*/site-packages/*.dist-info/direct_url.json

FROM ${BASE}
LABEL org.opencontainers.image.title="scheduled-events-bridge" \
      org.opencontainers.image.description="Azure Scheduled Events as CloudEvents on Kafka, MQTT, webhooks and SIEMs, and approvals back." \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/scheduled-events-bridge /opt/scheduled-events-bridge
ENV PATH=/opt/scheduled-events-bridge/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
# The journal outlives the container only when something is mounted here, writable for the user below.
RUN install -d -o 65532 -g 65532 -m 0700 /var/lib/scheduled-events-bridge
VOLUME /var/lib/scheduled-events-bridge
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["seb", "health"]
ENTRYPOINT ["seb"]
CMD ["run"]
