"""chess-snn: a spiking neural network learns chess by playing itself."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("chess-snn")
except PackageNotFoundError:  # a checkout on the path that was never installed
    __version__ = "0+uninstalled"
