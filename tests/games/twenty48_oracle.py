"""2048 read slowly: boards are lists of rows of tile values, 0 where a cell is empty.

It shares no code with the library.
"""

ACTIONS = ("left", "up", "right", "down")


def slide_row_left(row):
    """(the row after the slide, points)."""
    tiles = [tile for tile in row if tile]
    slid, points = [], 0
    while tiles:
        tile = tiles.pop(0)
        if tiles and tiles[0] == tile and tile < 32768:
            tile += tiles.pop(0)
            points += tile
        slid.append(tile)
    return slid + [0] * (len(row) - len(slid)), points


def move(board, name):
    """(the board after the move, points); the same board where the move is illegal."""
    rows = [list(row) for row in (zip(*board, strict=True) if name in ("up", "down") else board)]
    if name in ("right", "down"):
        rows = [row[::-1] for row in rows]
    slid = [slide_row_left(row) for row in rows]
    rows = [row for row, _ in slid]
    if name in ("right", "down"):
        rows = [row[::-1] for row in rows]
    if name in ("up", "down"):
        rows = [list(column) for column in zip(*rows, strict=True)]
    return rows, sum(points for _, points in slid)


def legal_actions(board):
    return [a for a, name in enumerate(ACTIONS) if move(board, name)[0] != board]


def events(board):
    """{event: (probability, the board after it)}."""
    empty = [(r, c) for r in range(4) for c in range(4) if not board[r][c]]
    children = {}
    for r, c in empty:
        for k, (tile, probability) in enumerate(((2, 0.9), (4, 0.1))):
            child = [list(row) for row in board]
            child[r][c] = tile
            children[2 * (4 * r + c) + k] = probability / len(empty), child
    return children


def to_word(board):
    cells = [tile for row in board for tile in row]
    return sum((tile.bit_length() - 1 if tile else 0) << 4 * i for i, tile in enumerate(cells))


def from_word(word):
    tiles = [1 << e if (e := int(word) >> 4 * cell & 15) else 0 for cell in range(16)]
    return [tiles[i : i + 4] for i in range(0, 16, 4)]


def expectimax(board, depth, leaf):
    """{action: value} with rewards in units of 1024 points; ``leaf`` values afterstates."""
    values = {}
    for action in legal_actions(board):
        after, points = move(board, ACTIONS[action])
        values[action] = points / 1024 + (_afterstate(after, depth - 1, leaf) if depth else 0)
    return values


def _afterstate(board, depth, leaf):
    if depth == 0:
        return leaf(board)
    return sum(
        probability * max(expectimax(child, depth, leaf).values(), default=0)
        for probability, child in events(board).values()
    )
