"""Where a bridge with a certain configuration is, as its commands see it."""

from bridge.cli.location import Location
from bridge.config import Config


def located(config: Config) -> Location:
    assert config.state_dir is not None
    tls = config.http.tls
    return Location(
        state_dirs=(config.state_dir,),
        listen=config.http.listen,
        tls=tls is not None,
        certificate=tls.certificate if tls else None,
    )
