"""A report says what `campaign status` says, in one well-formed file that asks for no other."""

import json
import re
import shlex
import shutil
from dataclasses import replace
from itertools import pairwise

import pytest
import small_campaigns as made
from read_page import read_page, rows_of
from stored_files import ARCHIVES, unpack
from typer.testing import CliRunner

from chess_snn.campaign import CampaignFolder, load_config, read_receipts
from chess_snn.campaign.forking import fork_campaign, fork_config
from chess_snn.campaign.store import plans
from chess_snn.campaign.store.plans import Length
from chess_snn.campaign.strength import champions
from chess_snn.campaign.strength.champions import promote_by_hand, read_hand_promotions
from chess_snn.campaign.strength.match_games import match_files, read_match
from chess_snn.campaign.strength.match_schedule import is_gating_match
from chess_snn.campaign.strength.ratings import rate_campaign
from chess_snn.campaign.viewing.results import iteration_columns, result_rows
from chess_snn.cli.main import app
from chess_snn.errors import CorruptDataError
from chess_snn.games import get_game
from chess_snn.pgn.tokens import RESULT_TEXTS
from chess_snn.report.facts import gather
from chess_snn.report.page import repeat_commands, report_html

HEADINGS = ("h1", "h2", "h3", "h4")


def ran(*arguments: object) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def html(chess_campaign):
    return report_html(chess_campaign)


@pytest.fixture(scope="module")
def page(html):
    return read_page(html)


@pytest.fixture(scope="module")
def page_2048(campaign_2048):
    return read_page(report_html(campaign_2048))


def test_the_tables_have_the_figures_of_the_receipts(chess_campaign, page):
    rows = result_rows(chess_campaign, read_receipts(chess_campaign))
    for caption, place in (("Iterations", "learning"), ("Evaluated generations", "strength")):
        columns = iteration_columns(chess_campaign.config, place)
        _, *found = rows_of(page, caption)
        assert found == [[cell(row) for cell in columns.values()] for row in rows]
    assert len(rows_of(page, "Matches at")) == 1 + 4


def test_the_ratings_are_those_of_the_command(chess_campaign, page):
    output = ran("campaign", "status", chess_campaign.path, "--ratings")
    printed = [line.split() for line in output.splitlines()]
    _, *found = rows_of(page, "All players")
    assert len(found) == len(rate_campaign(chess_campaign).ratings.players)
    for cells in found:
        assert " ".join(cells).split() in printed


def test_the_head_says_what_the_campaign_did(chess_campaign, page):
    assert page.all("h1")[0].text == chess_campaign.name
    figures = {
        div.all("dt")[0].text: div.all("dd")[0].text
        for div in page.all("header")[0].all("dl")[0].all("div")
    }
    body = result_rows(chess_campaign, read_receipts(chess_campaign))
    assert figures["games"] == f"{sum(row['games'] for row in body):.0f}"
    assert figures["positions"] == f"{sum(row['positions'] for row in body):,.0f}"
    assert figures["champion"] == f"gen {body[-1]['champion']}"


def test_curves_have_the_figures_of_the_receipts(chess_campaign, page):
    body = result_rows(chess_campaign, read_receipts(chess_campaign))
    chart = chart_of(page, "Policy loss")
    points, _ = json.loads(chart.all("script")[0].text)["series"]
    assert [number for number, *_ in points] == [row["iteration"] for row in body]
    assert [value for _, value, *_ in points] == [
        pytest.approx(row["policy_loss"], rel=1e-6) for row in body
    ]
    newest = f"policy loss {body[-1]['policy_loss']:.3f}"
    assert newest in " ".join(chart.all("p")[-1].text.split())
    elos = json.loads(chart_of(page, "Elo").all("script")[0].text)["series"][0]
    assert [point[2:] for point in elos] == [
        [pytest.approx(row[end], rel=1e-6) for end in ("elo_low", "elo_high")] for row in body
    ]


def chart_of(page, title):
    (chart,) = [
        figure for figure in page.all("figure")
        if figure.all("h3") and figure.all("h3")[0].text == title
    ]
    return chart


def test_every_curve_of_a_chart_looks_different(page_2048):
    chart = chart_of(page_2048, "Share of games that reached a tile")
    names = [span.attributes["class"] for span in chart.all("span")[1:] if span.all("b")]
    assert len(set(names)) == len(names) == len(get_game("2048").spec.milestones)
    styles = page_2048.all("style")[0].text
    assert all(re.search(rf"--{name}: (.*);", styles) for name in names)


@pytest.mark.parametrize("name", ["page", "page_2048"])
def test_no_other_file_and_no_network_is_asked_for(name, request):
    page = request.getfixturevalue(name)
    for element in page.all("*"):
        for attribute, value in element.attributes.items():
            if attribute in ("src", "srcset", "data", "action", "poster", "xlink:href"):
                pytest.fail(f"{element.name} has {attribute}")
            if attribute == "href":
                assert value.startswith("#")
                page.named(value.removeprefix("#"))
            assert not attribute.startswith("on")
    assert page.all("link") == page.all("iframe") == page.all("img") == []
    styles, script = page.all("style")[0].text, page.all("script")[-1].text
    assert not re.search(r"@import|url\(", styles)
    assert not re.search(r"\bfetch\b|XMLHttpRequest|WebSocket|\bimport\b|\bexport\b", script)


@pytest.mark.parametrize("name", ["page", "page_2048"])
def test_headings_tables_and_figures_are_accessible(name, request):
    page = request.getfixturevalue(name)
    levels = [HEADINGS.index(each.name) for each in page.all("*") if each.name in HEADINGS]
    assert levels[0] == 0
    assert levels.count(0) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    for table in page.all("table"):
        assert len(table.all("caption")) == 1
        assert all(cell.attributes["scope"] in ("row", "col") for cell in table.all("th"))
    for figure in page.all("figure"):
        assert len(figure.all("figcaption")) == 1
        if figure.attributes.get("class") == "chart":
            assert figure.all("svg")[0].attributes["aria-label"]


def test_games_can_be_stepped_through(page):
    games = page.all("article")
    assert games
    for game in games:
        viewer = json.loads(game.all("script")[0].text)
        pgn = game.all("pre")[0].text
        fen = re.search(r'\[FEN "(.*)"\]', pgn)
        assert fen is None or viewer["positions"][0] == fen[1]
        assert len(viewer["positions"]) == len(viewer["moves"]) + 1
        assert int(re.search(r'\[PlyCount "(\d+)"\]', pgn)[1]) == len(viewer["moves"])
        *words, result = pgn.partition("\n\n")[2].split()
        assert result in RESULT_TEXTS.values()
        assert [name.split()[1] for name, _ in viewer["moves"]] == [
            word for word in words if not word.endswith(".")
        ]
        assert f"in {len(viewer['moves'])} plies" in game.all("h4")[0].text


def test_the_worst_games_are_the_shortest_losses(chess_campaign, page):
    late = {gather(chess_campaign).champion, 2}
    lost = sorted(
        int(plies) for path in match_files(chess_campaign) if not is_gating_match(path.stem)
        for result, body in [read_match(get_game("chess").spec, path)]
        if body["facts_a"]["generation"] in late and not body["facts_b"]
        for plies, score in zip(result.plies, result.scores_a, strict=True) if score == 0
    )
    titles = [game.all("h4")[0].text for game in page.named("games").all("article")]
    assert lost
    assert [int(title.split()[-2]) for title in titles if title.startswith("Loss")] == lost[:3]


def test_a_page_of_2048_has_points_and_tiles(campaign_2048, page_2048):
    assert "Openings" not in [heading.text for heading in page_2048.all("h3")]
    articles = page_2048.all("article")
    games = [json.loads(game.all("script")[0].text) for game in articles]
    points = [int(game.all("h4")[0].text.split()[0].replace(",", "")) for game in articles]
    best = [
        row["points_best"]
        for row in result_rows(campaign_2048, read_receipts(campaign_2048))
    ]
    assert points[0] >= max(best)
    assert {game["kind"] for game in games} == {"2048"}
    for game in games:
        assert {len(cells) for cells in game["positions"]} == {16}
        assert len(game["positions"]) == len(game["moves"]) + 1
    _, *rows = rows_of(page_2048, "Evaluated generations")
    assert [f"{points:,.0f}" for points in best] == [cells[4] for cells in rows]


def test_text_from_outside_is_escaped(chess_campaign, tmp_path):
    path = tmp_path / '<b>"a"&amp;</title><script>'
    shutil.copytree(chess_campaign.path, path)
    folder = CampaignFolder.open(path)
    champion = gather(folder).champion
    why = "</script><script>alert(1)</script>"
    promote_by_hand(folder, 3 - champion, 'A "<em>"', why)
    text = report_html(folder)
    page = read_page(text)
    assert page.all("h1")[0].text == folder.name
    _, (*_, who, told) = rows_of(page, "Champions chosen by hand")
    assert (who, told) == ('A "<em>"', why)
    assert "<script>alert" not in text
    assert "<em>" not in text
    assert f"gen {3 - champion}" in page.all("header")[0].text


def test_a_campaign_without_an_iteration_or_matches_has_its_settings(tmp_path):
    folder = made.make_campaign(tmp_path / "campaign")
    page = read_page(report_html(folder))
    assert page.named("learning").all("figure") == []
    assert "--set evaluation.won_positions=8" in page.named("repeat").text
    for link in page.all("nav")[0].all("a"):
        page.named(link.attributes["href"].removeprefix("#"))
    made.finish(folder, 0)
    page = read_page(report_html(folder))
    for place in ("strength", "games", "spikes"):
        assert page.named(place).text
        assert page.named(place).all("article") == []


def test_a_damaged_receipt_is_one_line(tmp_path):
    folder = made.make_campaign(tmp_path / "campaign")
    made.finish(folder, 0)
    receipt = folder.receipt(0)
    receipt.write_text(receipt.read_text().replace('"games": 100', '"games": 101'))
    with pytest.raises(CorruptDataError, match=re.escape(str(receipt))):
        report_html(folder)
    done = CliRunner().invoke(app, ["report", str(folder.path)])
    assert isinstance(done.exception, CorruptDataError)
    assert not (folder.path / "report.html").exists()


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name)
def test_stored_campaigns_have_a_page(archive, tmp_path):
    page = read_page(report_html(unpack(archive, tmp_path)))
    assert len(rows_of(page, "Iterations")) == 3
    assert "cannot be" not in page.named("spikes").text
    assert "µJ" in page.named("spikes").text or "nJ" in page.named("spikes").text


def test_the_commands_give_the_same_settings(chess_campaign):
    commands = repeat_commands(gather(chess_campaign))
    words = shlex.split(next(line for line in commands if "campaign start" in line))
    settings = [words[i + 1] for i, word in enumerate(words) if word == "--set"]
    preset = words[words.index("--preset") + 1]
    assert load_config(preset, settings=settings) == chess_campaign.config


def test_the_commands_stand_in_the_order_they_were_given_in(tmp_path, monkeypatch):
    folder = made.make_campaign(tmp_path / "a campaign")
    for iteration in range(4):
        made.finish_without_games(folder, iteration, champion=iteration + 1)

    def at(time):
        for module in (plans, champions):
            monkeypatch.setattr(module, "utc_now", lambda: f"2999-01-01T{time}+00:00")

    at("12:00:00")
    promote_by_hand(folder, 2, "A", "it's better")
    at("13:00:00")
    plans.write_extension(folder, Length(5), 1.0)
    made.finish_without_games(folder, 4, champion=5)
    at("14:00:00")
    promote_by_hand(folder, 3, "A", "the best")
    at("15:00:00")
    plans.write_extension(folder, Length(6), 1.0)
    start, *later = (shlex.split(line, comments=True) for line in repeat_commands(gather(folder)))
    assert start[:3] == ["chess-snn", "campaign", "start"]
    name = "campaigns/a campaign"
    resume = f"chess-snn campaign resume {name}"
    assert [" ".join(words) for words in later] == [
        f"chess-snn models promote {name}@2 --why it's better",
        f"chess-snn campaign extend {name} --iterations 5 {resume}",
        f"chess-snn models promote {name}@3 --why the best",
        f"chess-snn campaign extend {name} --iterations 6 {resume}",
    ]


def test_the_commands_of_a_fork_leave_out_what_it_has_from_its_parent(chess_campaign, tmp_path):
    parent = CampaignFolder.open(shutil.copytree(chess_campaign.path, tmp_path / "parent"))
    promote_by_hand(parent, 3 - gather(parent).champion, "A", "of the parent")
    choice = read_hand_promotions(parent)[0]
    at = choice.num_finished
    config = fork_config(parent, at, ["campaign.iterations=3"])
    fork = fork_campaign(parent, tmp_path / "fork", at, config)
    facts = replace(gather(fork), created="2999-01-01T00:00:00+00:00")  # a second is too short
    assert facts.by_hand == [choice]
    commands = [line for line in repeat_commands(facts) if line.startswith("chess-snn ")]
    assert commands == [f"chess-snn campaign fork campaigns/parent --at {at} --dir campaigns/fork"]


def test_a_long_campaign_stays_below_two_megabytes(html, tmp_path):
    assert len(html.encode()) < 2_000_000
    folder = made.make_campaign(tmp_path / "campaign", "campaign.iterations=100")
    for iteration in range(100):
        made.finish_without_games(folder, iteration, champion=iteration + 1)
    assert len(report_html(folder).encode()) < 500_000  # the games, spikes and openings come on top


def test_the_command_writes_the_same_into_the_campaign_or_elsewhere(chess_campaign, tmp_path):
    path = tmp_path / "campaign"
    shutil.copytree(chess_campaign.path, path)
    assert f"{path / 'report.html'}" in ran("report", path)
    ran("report", path, "--out", tmp_path / "other.html")
    assert (path / "report.html").read_bytes() == (tmp_path / "other.html").read_bytes()
