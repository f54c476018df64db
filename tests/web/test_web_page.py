"""The page in headless Chromium: games by mouse and keyboard, spikes, a campaign, accessibility."""

import io
import random
import re
import shutil

import chess
import chess.pgn
import numpy as np
import pytest

playwright = pytest.importorskip(
    "playwright.sync_api", reason="pip install playwright: the page is NOT tested in a browser"
)

import small_campaigns as made  # noqa: E402
import torch  # noqa: E402
from chromium import Opened, find_chromium, serving  # noqa: E402
from page_browser import SHIPPED  # noqa: E402

from chess_snn.campaign import CampaignFolder  # noqa: E402
from chess_snn.campaign.configuration.loading import config_values  # noqa: E402
from chess_snn.campaign.models.references import find_model  # noqa: E402
from chess_snn.campaign.models.versions import campaign_versions  # noqa: E402
from chess_snn.games import get_game  # noqa: E402
from chess_snn.nets import Network, count_spikes, network_input, record_activity  # noqa: E402
from chess_snn.training import WEIGHTS  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

NOT_SERIOUS = ("minor", "moderate")
CASTLING = "r3k2r/pppppppp/8/8/8/8/PPPPPPPP/R3K2R w KQkq - 0 1"
PROMOTION = "8/P6k/8/8/8/8/7K/8 w - - 0 1"
MOST_PLIES = 400
SECRET = {"username": "me", "password": "a-long-password"}


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as running:
        try:
            browser = running.chromium.launch(executable_path=find_chromium())
        except playwright.Error as error:
            pytest.skip(f"no Chromium: the page is NOT tested in a browser ({str(error)[:80]})")
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def address():
    with serving() as address:
        yield address


@pytest.fixture
def open_page(chromium, address):
    """Opens pages; none of them may complain, or ask another server for anything."""
    opened, contexts = [], []

    def begin(where=address, **options) -> Opened:
        options = {"viewport": {"width": 1440, "height": 900}, **options}
        contexts.append(chromium.new_context(**options))
        opened.append(Opened(contexts[-1].new_page(), where))
        return opened[-1]

    yield begin
    for context in contexts:
        context.close()
    assert [fault for page in opened for fault in page.faults] == []


@pytest.fixture
def opened(open_page):
    return open_page()


def proposed(opened: Opened, board: chess.Board) -> str:
    """The network's own choice for the person, once it has been searched."""
    turn = "White" if board.turn else "Black"
    opened.wait_for_status("^You are to move|wins|Drawn")
    opened.wait("() => document.querySelectorAll('#candidates tr').length > 0")
    rows = opened.page.locator("#candidates tr")
    moves = rows.evaluate_all("rows => rows.map(row => row.dataset.move)")
    legal = [move for move in moves if chess.Move.from_uci(move) in board.legal_moves]
    assert legal, (turn, moves, board.fen())
    return legal[0]


def play_to_the_end(opened: Opened, colour: str, move_piece) -> chess.Board:
    """Play a complete game against the network, each move by ``move_piece(number, uci, san)``."""
    opened.new_game(colour)
    board, person = chess.Board(), chess.WHITE if colour == "white" else chess.BLACK
    while len(board.move_stack) < MOST_PLIES:
        if board.turn != person:
            opened.wait_for_moves(len(board.move_stack) + 1)
            board.push_san(opened.moves[-1])
        else:
            uci = proposed(opened, board)
            move = chess.Move.from_uci(uci)
            move_piece(len(board.move_stack) // 2, uci, board.san(move))
            if move.promotion:
                name = chess.piece_name(move.promotion)
                opened.page.click(f"#promotion-dialog [aria-label={name}]")
            opened.wait(
                "n => document.querySelectorAll('#moves li button').length >= n",
                len(board.move_stack) + 1,
            )
            board.push(move)
        if board.is_game_over() or board.is_repetition(3) or board.halfmove_clock >= 100:
            break
    return board


def assert_ended(opened: Opened, board: chess.Board) -> None:
    """The page shows the end and its reason, and exports exactly this game."""
    opened.wait_for_status("wins|Drawn")
    fen, pgn = opened.exported()
    assert fen == board.fen()
    record = chess.pgn.read_game(io.StringIO(pgn))
    assert list(record.mainline_moves()) == board.move_stack
    assert record.headers["Result"] == board.result(claim_draw=True)
    assert record.headers["Result"].replace("1/2-1/2", "½") in opened.status


def test_a_complete_game_by_mouse(opened):
    def move_piece(number, uci, _san):
        (opened.drag if number % 2 else opened.click)(uci)

    assert_ended(opened, play_to_the_end(opened, "white", move_piece))


def test_a_complete_game_by_keyboard_alone(opened):
    keyboard = opened.page.keyboard

    def steps(origin: str, target: str) -> None:
        """Play Black, who looks at the board from the other side."""
        files, ranks = ("ArrowRight", "ArrowLeft"), ("ArrowUp", "ArrowDown")
        for axis, (less, more) in enumerate((files, ranks)):
            distance = ord(target[axis]) - ord(origin[axis])
            for _ in range(abs(distance)):
                keyboard.press(more if distance > 0 else less)

    def move_piece(number, uci, san):
        if number % 2:
            opened.page.focus("#move")
            keyboard.type(uci if number % 4 == 1 else san)
            keyboard.press("Enter")
            return
        opened.page.focus("#board")
        keyboard.press("ArrowUp")  # the cursor appears on the king's own square
        steps("e8", uci[:2])
        keyboard.press("Enter")
        steps(uci[:2], uci[2:4])
        keyboard.press("Enter")
        keyboard.press("Tab")  # the cursor leaves with the focus

    def by_keys(number, uci, san):
        is_promotion = len(uci) == 5
        move_piece(2 if is_promotion else number, uci, san)

    assert_ended(opened, play_to_the_end(opened, "black", by_keys))


def test_take_back_takes_the_answer_too(opened):
    opened.new_game("white")
    opened.drag("e2e4")
    opened.wait_for_moves(2)
    opened.drag("d2d4")
    opened.wait_for_moves(4)
    first = opened.moves[:2]
    opened.page.click("#take-back")
    opened.wait_for_moves(2)
    assert opened.moves == first
    opened.page.click("#take-back")
    opened.wait_for_moves(0)
    assert opened.page.is_disabled("#take-back")
    assert opened.exported()[0] == chess.STARTING_FEN


BREAK_AT_NEXT_REQUEST = """() => {
  const { send } = WebSocket.prototype;
  WebSocket.prototype.send = function breakOff() {
    WebSocket.prototype.send = send;
    this.close();
  };
}"""


@pytest.mark.parametrize("move_piece", [Opened.drag, Opened.click])
def test_after_a_broken_connection_the_move_and_the_take_back_are_made_again(opened, move_piece):
    opened.new_game("white")
    opened.page.evaluate(BREAK_AT_NEXT_REQUEST)
    move_piece(opened, "e2e4")
    opened.wait_for_status("connection to the server broke")
    move_piece(opened, "e2e4")
    opened.wait_for_moves(2)
    opened.wait_for_status("^You are to move")
    moves = opened.moves
    opened.page.evaluate(BREAK_AT_NEXT_REQUEST)
    opened.page.click("#take-back")
    opened.wait_for_status("connection to the server broke")
    assert opened.moves == moves
    move_piece(opened, "d2d4")
    opened.wait_for_moves(4)
    opened.wait_for_status("^You are to move")
    assert opened.moves[:2] == moves
    opened.page.click("#take-back")
    opened.wait_for_moves(2)


def test_promotion_asks_which_piece(opened):
    opened.load(PROMOTION)
    opened.drag("a7a8")
    opened.page.click("#promotion-dialog [aria-label=knight]")
    opened.wait_for_moves(1)
    assert opened.exported()[0].startswith("N7/")


def test_a_promotion_can_be_called_off(opened):
    opened.load(PROMOTION)
    opened.click("a7a8")
    opened.page.keyboard.press("Escape")
    assert opened.exported()[0] == PROMOTION


def test_castling_moves_king_and_rook(opened):
    opened.load(CASTLING)
    board = chess.Board(CASTLING)
    for count, move in enumerate(("e1g1", "e8c8"), start=1):
        opened.drag(move)
        opened.wait_for_moves(count)
        board.push_uci(move)
    assert opened.moves == ["O-O", "O-O-O"]
    assert opened.exported()[0] == board.fen()


def test_mate_ends_the_game_and_is_spoken(opened):
    opened.new_game("both")
    for count, move in enumerate(("f2f3", "e7e5", "g2g4", "d8h4"), start=1):
        opened.click(move)
        opened.wait_for_moves(count)
    opened.wait_for_status("Black wins: checkmate")
    opened.wait(
        "() => document.getElementById('speech').textContent.startsWith('Black: queen h4, check')"
    )
    opened.drag("e1f2")
    assert len(opened.moves) == 4


def test_illegal_moves_do_nothing_and_say_so(opened):
    opened.new_game("white")
    opened.drag("e2e5")
    opened.drag("e7e5")
    opened.page.fill("#move", "Ke2")
    opened.page.press("#move", "Enter")
    opened.wait_for_status("“Ke2”")
    assert opened.moves == []


def test_a_game_is_imported_and_stepped_through(opened):
    opened.load("1. e4 e5 2. Nf3 Nc6 *")
    assert opened.moves == ["e4", "e5", "Nf3", "Nc6"]
    opened.page.click("#first")
    opened.wait(
        "() => document.querySelector('#board [data-square=e2]') !== null"
    )
    opened.page.focus("#moves")
    opened.page.keyboard.press("ArrowRight")
    opened.wait("() => document.querySelector('#board [data-square=e4]') !== null")
    opened.page.click("#import")
    opened.page.fill("#text", "nonsense")
    opened.page.click("#text-load")
    opened.wait("() => document.getElementById('text-fault').textContent !== ''")


def test_an_imported_game_keeps_its_players_and_result_until_a_move_is_made(opened):
    opened.load('[White "Ann"]\n[Black "?"]\n[Result "1-0"]\n\n1. e4 e5 1-0')
    opened.wait_for_moves(2)
    names = opened.page.locator(".player .name")
    assert sorted(names.all_inner_texts()) == ["Ann", "Black"]

    def tags() -> list[str]:
        record = chess.pgn.read_game(io.StringIO(opened.exported()[1]))
        return [record.headers[tag] for tag in ("White", "Black", "Result")]

    assert tags() == ["Ann", "?", "1-0"]
    opened.drag("g1f3")
    opened.wait_for_moves(3)
    assert tags() == ["Ann", "?", "*"]
    opened.new_game("both")
    assert names.all_inner_texts() == ["Black", "White"]


def test_the_result_is_of_the_game_and_not_of_the_position_shown(opened):
    opened.load(f'[Result "0-1"]\n\n{"Nf3 Nf6 Ng1 Ng8 " * 2} e4 e5 0-1')
    opened.wait_for_moves(10)
    for _ in range(2):
        opened.page.click("#previous")
        opened.wait_for_board()
    opened.wait_for_status("threefold repetition")
    record = chess.pgn.read_game(io.StringIO(opened.exported()[1]))
    assert (record.end().ply(), record.headers["Result"]) == (10, "0-1")


def test_a_dragged_piece_follows_the_mouse_while_the_search_goes_on(opened):
    opened.new_game("white", visits="10000")
    opened.page.mouse.move(*opened.centre("g1"))
    opened.page.mouse.down()
    opened.page.mouse.move(*opened.centre("f5"), steps=2)
    place = "document.querySelector('#board .held [data-square=g1]').getAttribute('transform')"
    before, visits = opened.page.evaluate(place), opened.page.inner_text("#search-note")
    opened.wait(
        "before => document.getElementById('search-note').textContent !== before", visits
    )
    assert opened.page.evaluate(place) == before
    opened.page.mouse.up()
    opened.page.wait_for_selector("#board .pieces [data-square=g1]")
    opened.drag("g1f3")
    opened.wait_for_moves(1)


def test_a_long_game_scrolls_its_list_and_not_the_page(open_page):
    opened = open_page(viewport={"width": 390, "height": 700})
    board, rng = chess.Board(), random.Random(3)
    while board.ply() < 60:
        board.push(rng.choice(list(board.legal_moves)))
    opened.load(str(chess.pgn.Game.from_board(board)))
    opened.page.evaluate("scrollTo(0, 0)")
    tops = []
    for button in ("#previous", "#first", "#last"):
        opened.page.click(button)
        opened.wait_for_board()
        tops.append(opened.page.evaluate("document.getElementById('moves').scrollTop"))
    assert tops[0] > tops[1] == 0
    assert tops[2] > 0
    assert opened.page.evaluate("scrollY") == 0


def test_enter_starts_the_game_that_was_chosen(opened):
    opened.page.focus("#new-game")
    opened.page.keyboard.press("Enter")
    opened.page.check("[name=colour][value=black]")
    opened.page.keyboard.press("Enter")
    opened.wait_for_moves(1)
    assert opened.page.locator("#player-bottom").get_attribute("data-side") == "black"


def new_game_with_a_clock(opened: Opened) -> None:
    opened.page.click("#new-game")
    opened.page.select_option("#clock", "60+1")
    opened.page.check("[name=colour][value=both]")
    opened.page.click("#new-dialog [value=start]")


HOLD_REQUESTS = """() => {
  const { send } = WebSocket.prototype;
  const held = [];
  WebSocket.prototype.send = function hold(text) { held.push(() => send.call(this, text)); };
  window.release = () => {
    WebSocket.prototype.send = send;
    held.forEach((sendIt) => sendIt());
  };
}"""


def test_a_move_of_an_abandoned_game_does_not_start_the_new_clock(opened):
    opened.page.clock.install()
    opened.page.select_option("#budget", "0")
    new_game_with_a_clock(opened)
    opened.wait_for_board()
    opened.page.evaluate(HOLD_REQUESTS)
    opened.drag("e2e4")
    new_game_with_a_clock(opened)
    opened.page.evaluate("release()")
    opened.wait_for_board()
    opened.page.clock.run_for(20_000)
    assert opened.page.locator(".player .clock").all_inner_texts() == ["1:00", "1:00"]
    opened.drag("e2e4")
    opened.wait_for_moves(1)
    opened.page.clock.run_for(20_000)
    assert opened.page.inner_text("#player-bottom .clock") == "1:00"
    assert opened.page.inner_text("#player-top .clock") in ("0:40", "0:39")


def test_a_clock_runs_and_ends_the_game(opened):
    opened.page.clock.install()
    new_game_with_a_clock(opened)
    clock = "text => document.querySelector('#player-bottom .clock').textContent === text"
    opened.wait(clock, "1:00")
    opened.click("e2e4")
    opened.wait_for_moves(1)
    opened.page.clock.run_for(30_000)
    assert opened.page.inner_text("#player-top .clock") in ("0:30", "0:29"), "it rounds down"
    opened.page.clock.run_for(31_000)
    opened.wait_for_status("White wins: time")


def planes_of(fen: str) -> torch.Tensor:
    game = get_game("chess")
    return network_input(game.planes(game.parse_state(fen)[None]), game.spec.board_shape)


def spikes_at_start(model: str) -> float:
    return spikes_of(find_model(model).load(get_game("chess")), planes_of(chess.STARTING_FEN))


def spikes_of(network: Network, planes: torch.Tensor) -> float:
    return sum(layer.spikes for layer in count_spikes(network, planes).layers.values())


LIT_CELLS = """() => [...document.querySelectorAll('#chess-spikes canvas')].map(canvas => {
  const { data, width, height } = canvas.getContext('2d')
    .getImageData(0, 0, canvas.width, canvas.height);
  const at = (x, y) => [...data.slice(4 * (y * width + x), 4 * (y * width + x) + 3)];
  const empty = getComputedStyle(document.getElementById('chess-spikes'))
    .getPropertyValue('--spike-empty').match(/[\\d.]+/g).slice(0, 3).map(Number);
  const [cell, tile] = [3, 27];
  let lit = 0;
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) {
    const inTile = [x % tile, y % tile];
    const isCentre = inTile.every(v => v < 24 && v % cell === 1);
    if (!isCentre || data[4 * (y * width + x) + 3] === 0) continue;
    if (at(x, y).some((v, i) => Math.abs(v - empty[i]) > 2)) lit++;
  }
  return lit;
})"""


def test_spikes_on_the_canvas_follow_the_position_and_match_the_counts(opened):
    network = find_model(SHIPPED["chess"]).load(get_game("chess"))
    seen = []
    for fen in (chess.STARTING_FEN, CASTLING):
        opened.load(fen)
        planes = planes_of(fen)
        opened.wait_for_spikes(spikes_of(network, planes))
        layers = record_activity(network, planes)[0]
        wanted = [int(np.count_nonzero(layer.spikes_TX.sum(0))) for layer in layers.values()]
        lit = opened.page.evaluate(LIT_CELLS)
        assert lit == wanted
        labels = opened.page.locator("#chess-spikes canvas").evaluate_all(
            "all => all.map(canvas => canvas.getAttribute('aria-label'))"
        )
        texts = [re.search(r": ([\d,]+) spike", label)[1] for label in labels]
        spikes = [int(text.replace(",", "")) for text in texts]
        assert spikes == [int(layer.spikes_TX.sum()) for layer in layers.values()]
        seen.append(lit)
    assert seen[0] != seen[1]


def test_the_spikes_of_the_best_line_can_be_chosen(opened):
    opened.new_game("white", visits="200")
    opened.wait("() => document.querySelectorAll('#candidates tr').length > 0")
    opened.page.click("#chess-spikes [data-value=line]")
    opened.wait(
        "() => /^After 1\\. /.test(document.querySelector('#chess-spikes .summary').textContent)"
    )


def test_what_changed_can_be_chosen(opened):
    summary = "document.querySelector('#chess-spikes .summary').textContent"
    opened.new_game("white", visits="200")
    opened.page.click("#chess-spikes [data-value=changes]")
    opened.wait(f"() => {summary}.includes('nothing to compare')")
    opened.drag("e2e4")
    opened.wait(f"() => /^\\d+\\.\\d% of the neurons changed/.test({summary})")
    opened.page.click("#chess-spikes [data-value=position]")


def test_a_tile_shades_its_squares_on_the_board(opened):
    opened.page.wait_for_selector("#chess-spikes canvas")
    opened.page.locator("#chess-spikes canvas").first.hover(position={"x": 40, "y": 40})
    opened.page.wait_for_selector("#board .mark.heat", state="attached")
    opened.page.mouse.move(2, 2)
    opened.page.wait_for_selector("#board .mark.heat", state="detached")


def test_pointing_at_a_candidate_shows_its_line(opened):
    opened.new_game("white", visits="200")
    row = opened.page.locator("#candidates tr").nth(1)
    row.hover()
    title = row.locator("button").get_attribute("title")
    assert opened.page.inner_text("#line") == title
    opened.page.wait_for_selector("#board .arrow", state="attached")


def test_2048_by_keys_and_by_the_network(opened):
    opened.page.click("#tab-tiles")
    opened.page.wait_for_selector("#tiles-candidates tr")
    board = opened.page.locator("#tiles-board .tile")
    before = board.all_inner_texts()
    for key in ("ArrowLeft", "ArrowUp", "ArrowRight", "ArrowDown"):
        opened.page.keyboard.press(key)
        opened.page.wait_for_timeout(150)
    assert board.all_inner_texts() != before
    ply = int(opened.page.inner_text("#tiles-ply"))
    assert ply >= 2
    opened.page.click("#tiles-back")
    assert int(opened.page.inner_text("#tiles-ply")) == ply - 1
    opened.page.click("#tiles-auto")
    opened.wait(
        "n => Number(document.getElementById('tiles-ply').textContent) > n", ply + 5
    )
    opened.page.click("#tiles-auto")


def test_the_report_of_a_campaign_that_runs_is_loaded_again(open_page, played_campaign, tmp_path):
    shutil.copytree(played_campaign.path, tmp_path / "c")
    folder = CampaignFolder.open(tmp_path / "c")
    receipt = folder.receipt(1).rename(tmp_path / "receipt")
    with serving("--campaign", str(folder.path)) as where:
        opened = open_page(where)
        opened.page.click("#tab-campaign")
        report = opened.page.frame_locator("#campaign iframe")
        report.get_by_text("1 iteration of a campaign of 2 iterations").wait_for()
        assert report.locator(".chart .curve").count() > 3
        receipt.rename(folder.receipt(1))
        report.get_by_text("2 iterations of a campaign of 2 iterations").wait_for()
        assert report.locator(".chart .curve").count() > 3
        opened.page.click("#theme")
        theme = "document.querySelector('#campaign iframe').contentDocument.documentElement.dataset"
        assert opened.page.evaluate(f"{theme}.theme") == "light"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_accessibility_finding(open_page, played_campaign, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    with serving("--model", str(played_campaign.path)) as where:
        opened = open_page(where, color_scheme=scheme)
        opened.page.wait_for_selector("#candidates tr")
        found = {}
        for tab in ("#tab-chess", "#tab-tiles", "#tab-campaign", "dialog"):
            if tab == "dialog":
                opened.page.click("#tab-chess")
                opened.page.click("#new-game")
            else:
                opened.page.click(tab)
            opened.page.wait_for_timeout(1500)
            for finding in axe.run(opened.page).response["violations"]:
                if finding["impact"] not in NOT_SERIOUS:
                    found[tab, finding["id"]] = [
                        (node["target"], node["failureSummary"]) for node in finding["nodes"][:3]
                    ]
        assert found == {}


@pytest.mark.parametrize("width", [320, 768])
def test_narrow_screens_need_no_sideways_scrolling(open_page, width):
    opened = open_page(viewport={"width": width, "height": 800})
    for tab in ("#tab-chess", "#tab-tiles"):
        opened.page.click(tab)
        opened.page.wait_for_timeout(500)
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_theme_is_kept(opened):
    names = []
    for _ in range(3):
        opened.page.click("#theme")
        names.append(opened.page.evaluate("document.documentElement.dataset.theme ?? ''"))
    assert names == ["light", "dark", ""]
    opened.page.click("#theme")
    opened.page.click("#theme")
    opened.page.reload()
    opened.page.wait_for_selector("body[data-ready]")
    assert opened.page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"


def test_the_page_comes_back_with_its_server(open_page, tmp_path):
    weights = made.make_weights(tmp_path / "net.safetensors")
    with serving("--model", str(weights)) as where:
        opened = open_page(where)
        opened.page.select_option("#network", str(weights))
        opened.page.wait_for_selector("#candidates tr")
        shutil.move(weights, tmp_path / "away")
        opened.drag("e2e4")
        opened.wait_for_status("is gone|does not exist")
    opened.wait(
        "() => document.getElementById('connection').textContent.startsWith('No connection')"
    )
    opened.faults.clear()  # a browser complains about a server that is away


def test_the_page_begins_without_a_list_of_networks_and_reads_it_once_when_it_is_chosen(opened):
    page, asked = opened.page, []
    fault = {"code": "failed", "message": "the disk is away"}
    page.route("**/api/networks", lambda route: route.fulfill(status=409, json=fault))
    page.reload()
    page.wait_for_selector("body[data-ready]")
    assert fault["message"] in page.inner_text("#connection")
    page.unroute("**/api/networks")
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate("""() => {
      const list = document.getElementById("network");
      list.dispatchEvent(new PointerEvent("pointerdown"));
      list.focus();
    }""")
    opened.wait("model => document.getElementById('network').value === model", SHIPPED["chess"])
    assert sum(url.endswith("api/networks") for url in asked) == 1
    opened.new_game("white")
    opened.drag("e2e4")
    opened.wait_for_moves(2)
    opened.faults.clear()  # a browser complains about the answer 409


def test_the_page_needs_its_password_and_plays_with_it(chromium, open_page):
    with serving(CHESS_SNN_CREDENTIALS=":".join(SECRET.values())) as where:
        without = chromium.new_page()
        with pytest.raises(playwright.Error, match="ERR_INVALID_AUTH_CREDENTIALS"):
            without.goto(where)
        assert without.request.get(f"{where}app.js").status == 401
        without.close()
        wrong = chromium.new_page(http_credentials={**SECRET, "password": "another-password"})
        refused = wrong.goto(where)
        assert refused.status == 401
        assert "chess" not in refused.text()
        wrong.close()
        opened = open_page(where, http_credentials=SECRET)
        opened.new_game("white")
        opened.drag("e2e4")
        opened.wait_for_moves(2)
        opened.page.reload()
        opened.page.wait_for_selector("#candidates tr")


REGISTERED = """[...document.querySelectorAll('#network option')].map(option => option.value)
  .filter(value => value.startsWith('models:/'))"""
LISTS_REGISTERED = f"""n => {{
  document.getElementById('network').dispatchEvent(new Event('focus'));
  return {REGISTERED}.length >= n;
}}"""


def test_registered_networks_play(open_page, played_campaign, tmp_path, monkeypatch):
    pytest.importorskip("mlflow", reason="pip install mlflow: registered networks are NOT tested")
    from chess_snn.tasks.tracking import champion_of_campaign, tracking_uri  # noqa: PLC0415
    from chess_snn.tasks.tracking.recorder import CampaignTracker  # noqa: PLC0415

    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.setenv("CHESS_SNN_HOME", str(tmp_path / "home"))
    shutil.copytree(played_campaign.path, tmp_path / "c")
    folder = CampaignFolder.open(tmp_path / "c")
    tracker = CampaignTracker(tracking_uri(), folder, configuration=config_values(folder.config))
    champion = f"models:/chess-snn@{champion_of_campaign(folder.campaign_id)}"
    registered = {}
    for address, version in zip(
        ("models:/chess-snn/1", champion), campaign_versions(folder),
        strict=True,
    ):
        weights = folder.checkpoint(version.generation) / WEIGHTS
        tracker.record_iteration(version.generation - 1, {"train/loss": 1.0}, version, weights)
        registered[address] = spikes_at_start(str(weights))
    tracker.promote(2)
    with serving("--model", str(folder.path)) as where:
        opened = open_page(where)
        opened.page.wait_for_function(LISTS_REGISTERED, arg=4)
        listed = opened.page.evaluate(REGISTERED)
        assert listed[:2] == ["models:/chess-snn@candidate", champion]
        assert listed[-2:] == ["models:/chess-snn/2", "models:/chess-snn/1"]
        opened.page.select_option("#network", "models:/chess-snn/1")
        opened.wait_for_spikes(registered["models:/chess-snn/1"])
        for address, total in registered.items():
            opened.choose_registered(address)
            opened.wait_for_spikes(total)
            assert opened.page.inner_text("#player-top .name") == address
        opened.choose_registered("models:/chess-snn@nobody")
        opened.wait(
            "text => document.getElementById('search-note').textContent.startsWith(text)",
            "models:/chess-snn@nobody",
        )
        opened.page.select_option("#network", next(iter(registered)))
        opened.new_game("white")
        opened.drag("e2e4")
        opened.wait_for_moves(2)
