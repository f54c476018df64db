"""Where a campaign's tracking data lies when no server is given."""

from pathlib import Path


def database_file(directory: Path) -> Path:
    """The SQLite store in ``directory``."""
    return directory.resolve() / "mlflow.db"


def local_tracking_uri(directory: Path) -> str:
    """URI of that store."""
    return f"sqlite:///{database_file(directory)}"


def artifact_directory(directory: Path) -> Path:
    """Folder of the stored models beside that store."""
    return directory.resolve() / "mlartifacts"


def is_server(tracking_uri: str) -> bool:
    """Whether ``tracking_uri`` is the address of a server rather than a database."""
    return tracking_uri.startswith(("http://", "https://"))
