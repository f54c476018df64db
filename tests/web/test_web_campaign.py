"""A campaign on the page: what its folder says, and nothing written to it."""

import base64
import hashlib
import shutil

import pytest
import small_campaigns as made
from page_browser import SOCKET, Browser

from chess_snn.campaign.store.collection import open_collection
from chess_snn.campaign.viewing.watching import CampaignWatch
from chess_snn.errors import CampaignError
from chess_snn.report.page import report_html
from chess_snn.tasks.tracking import TrackingError
from chess_snn.web import server
from chess_snn.web.networks import RegisteredVersions
from chess_snn.web.server import CampaignPage


def snapshot(folder):
    """Size and time of every file."""
    facts = {path: path.stat() for path in sorted(folder.rglob("*"))}
    return {path: (fact.st_size, fact.st_mtime_ns) for path, fact in facts.items()}


@pytest.fixture(autouse=True)
def always_look(monkeypatch):
    monkeypatch.setattr(server, "_LOOK_PERIOD_S", 0.0)


@pytest.fixture
def played(make_client, played_campaign):
    return make_client(str(played_campaign.path), campaign=CampaignPage(played_campaign.path))


def test_without_a_campaign_there_is_none(client):
    for path in ("/api/campaign", "/report"):
        assert client.get(path).status_code == 404


def test_a_folder_without_a_campaign_is_refused(tmp_path):
    with pytest.raises(CampaignError):
        CampaignPage(tmp_path)


def test_line_and_report_are_those_of_the_commands_and_nothing_is_written(played, played_campaign):
    before = snapshot(played_campaign.path)
    state = played.get("/api/campaign").json()
    answer = played.get("/report")
    assert answer.status_code == 200
    assert snapshot(played_campaign.path) == before
    view = CampaignWatch(played_campaign.path).look()
    assert state["line"].startswith(view.state_text)
    assert state["progress"] == view.progress
    assert answer.text == report_html(played_campaign)


def test_the_report_is_made_again_only_after_a_change(make_client, tmp_path, monkeypatch):
    made_for = []

    def make(folder):
        made_for.append(folder.path)
        return f"report {len(made_for)}"

    monkeypatch.setattr(server, "report_html", make)
    folder = made.make_campaign(tmp_path / "c")
    client = make_client(campaign=CampaignPage(folder.path))
    versions = []
    for iteration in range(2):
        made.finish(folder, iteration)
        for _ in range(2):
            assert client.get("/report").text == f"report {iteration + 1}"
        versions.append(client.get("/api/campaign").json()["version"])
    assert len(made_for) == len(set(versions)) == 2


def test_a_report_may_run_its_own_script_alone_and_be_framed_by_its_page_alone(played):
    answer = played.get("/report")
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'self'"
    for rule, begin, end in (
        ("style-src", "<style>", "</style>"), ("script-src", '<script type="module">', "</script>"),
    ):
        text = answer.text.rpartition(begin)[2].partition(end)[0]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[rule] == f"'sha256-{digest}'"
    assert "style=" not in answer.text
    assert played.get("/").headers["Content-Security-Policy"].endswith("frame-ancestors 'none'")


def test_damage_of_a_receipt_is_one_line_in_place_of_the_report(make_client, tmp_path):
    folder = made.make_campaign(tmp_path / "c")
    made.finish(folder, 0)
    folder.receipt(0).write_bytes(folder.receipt(0).read_bytes()[:100])
    answer = make_client(campaign=CampaignPage(folder.path)).get("/report")
    assert answer.status_code == 409
    assert str(folder.receipt(0)) in answer.text
    assert answer.headers["Content-Type"].startswith("text/plain")


def test_all_generations_are_offered_and_play(played, played_campaign):
    offered = [entry["model"] for entry in played.get("/api/networks").json()]
    path = played_campaign.path
    assert offered[:5] == [
        str(path), f"{path}@champion", f"{path}@2", f"{path}@1", f"{path}@0"
    ]
    with played.websocket_connect(SOCKET) as socket:
        answers = [Browser(socket).search(model=model, simulations=2) for model in offered[:5]]
    assert [answer["model"] for answer in answers][2:] == offered[2:5]


def test_a_registry_that_does_not_answer_is_named_and_the_rest_is_offered(make_client):
    def ask():
        raise TrackingError("the store is away")

    client = make_client(versions=RegisteredVersions(ask, "chess"))
    offered = []
    while not offered or offered[-1]["model"]:
        offered = client.get("/api/networks").json()
    assert (offered[-1]["model"], offered[-1]["game"]) == ("", "chess")
    assert "the store is away" in offered[-1]["label"]
    assert offered[0]["model"].startswith("shipped/")
    with client.websocket_connect(SOCKET) as socket:
        answer = Browser(socket).search(model="shipped/chess", simulations=2)
        assert answer["type"] == "result", answer


def test_a_folder_that_disappears_is_one_line(make_client, played_campaign, tmp_path):
    copied = tmp_path / "copied"
    shutil.copytree(played_campaign.path, copied)
    assert open_collection(copied).num_games == 12
    client = make_client(campaign=CampaignPage(copied))
    shutil.rmtree(copied)
    answer = client.get("/api/campaign")
    assert answer.status_code == 409
    assert answer.json()["code"] == "campaign"
    assert "\n" not in answer.json()["message"]
    assert client.get("/report").status_code == 409
