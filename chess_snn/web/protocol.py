"""Messages of the page's WebSocket: what a browser may ask, checked once, here.

A request is one JSON text frame; it has a ``type`` and an ``id`` that its answers repeat. The
server keeps no game: each request has the beginning of its game and all moves (chess), or a board
and the moves since (2048). Answers are JSON text frames with a ``type`` of ``position``, ``info``
(a search under way), ``result`` (its end), ``imported``, ``exported`` or ``error``, and binary
frames with spikes (:mod:`chess_snn.web.networks`).
"""

from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from chess_snn.errors import UsageError

MAX_MESSAGE_BYTES: Final = 64 * 1024
"""Most bytes of a frame from a browser: 1,200 plies, or PGN of a long game with comments."""
MAX_PLIES: Final = 1_200
MAX_SIMULATIONS: Final = 10_000
"""Most simulations of a search: a larger tree would not fit the memory of a connection."""
MAX_TILE_SIMULATIONS: Final = 1_000
"""The same in 2048."""
MAX_NAME: Final = 500
"""Characters of the name of a network or of a player."""


class ProtocolError(UsageError):
    """A frame that is not a request."""

    code = "protocol"


class _Message(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class ChessGame(_Message):
    """A game of chess up to now."""

    kind: Literal["chess"]
    start: str | None = Field(default=None, max_length=120)
    """FEN; None is the initial position."""
    moves: tuple[Annotated[str, Field(max_length=5)], ...] = Field(max_length=MAX_PLIES)
    """UCI."""


class TilesGame(_Message):
    """A game of 2048: a board, and moves from there on. Seed and ply decide the new tiles."""

    kind: Literal["2048"]
    start: str | None = Field(default=None, max_length=120)
    """Rows from top to bottom; None is the start that the seed decides."""
    seed: int = Field(ge=0, lt=2**53)
    ply: int = Field(default=0, ge=0, le=1_000_000)
    """Moves before ``start``."""
    moves: tuple[Literal["left", "up", "right", "down"], ...] = Field(default=(), max_length=64)


AnyGame = Annotated[ChessGame | TilesGame, Field(discriminator="kind")]


class _Request(_Message):
    id: int = Field(ge=0, lt=2**53)


class PositionRequest(_Request):
    """Check the moves, and describe where they lead."""

    type: Literal["position"]
    game: AnyGame


class SearchRequest(_Request):
    """Search where the moves lead; the search before it of this connection is stopped."""

    type: Literal["search"]
    game: AnyGame
    model: str = Field(min_length=1, max_length=MAX_NAME)
    simulations: int = Field(ge=0, le=MAX_SIMULATIONS)
    """Visits of the position; in chess 0 asks the policy alone."""
    seconds: float | None = Field(default=None, gt=0, le=3600)
    """The search ends after them at the latest; of chess only."""

    @model_validator(mode="after")
    def _check_tiles(self) -> Self:
        if isinstance(self.game, TilesGame):
            if not 1 <= self.simulations <= MAX_TILE_SIMULATIONS:
                raise ValueError(
                    f"simulations of 2048 must be >= 1 and <= {MAX_TILE_SIMULATIONS}, got "
                    f"{self.simulations}"
                )
            if self.seconds is not None:
                raise ValueError("a search of 2048 takes no seconds; give simulations alone")
        return self


class StopRequest(_Request):
    """End the search with what it has found."""

    type: Literal["stop"]


class ImportRequest(_Request):
    """Read the first game of a PGN, or a FEN."""

    type: Literal["import"]
    text: str


class ExportRequest(_Request):
    """Write the game as PGN."""

    type: Literal["export"]
    game: ChessGame
    white: str = Field(max_length=MAX_NAME)
    black: str = Field(max_length=MAX_NAME)
    result: Literal["1-0", "0-1", "1/2-1/2", "*"] = "*"


Request = PositionRequest | SearchRequest | StopRequest | ImportRequest | ExportRequest
_REQUESTS: Final = TypeAdapter[Request](Annotated[Request, Field(discriminator="type")])


def parse_request(text: str | None) -> Request:
    """The request in a text frame; None stands for a binary one.

    Raises:
        ProtocolError: it is none; names the first fault.
    """
    if text is None:
        raise ProtocolError("bad request: frames must be JSON text")
    try:
        return _REQUESTS.validate_json(text)
    except ValidationError as error:
        fault = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, fault["loc"])) or "message"
        raise ProtocolError(f"bad request: {place}: {fault['msg']}") from None
