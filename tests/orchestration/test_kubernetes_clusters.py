"""A campaign that asks Kubernetes for pods: the client is real, what it speaks to is a stand-in."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytestmark = [pytest.mark.orchestration, pytest.mark.timeout(120)]
pytest.importorskip("distributed")
pytest.importorskip("prefect")
pytest.importorskip("dask_kubernetes")
yaml = pytest.importorskip("yaml")

from chess_snn.campaign import CampaignFolder, load_config  # noqa: E402
from chess_snn.errors import ClusterError  # noqa: E402
from flows.cluster import campaign_crew  # noqa: E402
from tasks.cluster import kubernetes  # noqa: E402
from tasks.cluster.security import make_certificates  # noqa: E402

SETTINGS = (
    "cluster.kind=kubernetes", "cluster.image=registry/chess-snn-worker:0.1.0", "cluster.jobs=5",
    "cluster.certificates_secret=chess-snn-certificates", "cluster.namespace=learning",
)
NAME = "chess-snn-1a2b"
PLACE = f"DaskCluster {NAME} in namespace learning"
RESOURCES = "/apis/kubernetes.dask.org/v1/namespaces/learning/daskclusters"


class Api(ThreadingHTTPServer):
    """A stand-in for Kubernetes' API, which knows the resources of one kind."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.reset()

    def reset(self):
        self.calls: list[tuple[str, str]] = []
        self.resources: dict[str, dict] = {}
        self.gone_at_s: dict[str, float] = {}
        self.pods_end_after_s = 0.0
        self.refuses = self.hangs_up = False

    def sweep(self):
        """Forget resources whose pods have ended."""
        for name, at_s in list(self.gone_at_s.items()):
            if time.monotonic() >= at_s:
                del self.resources[name], self.gone_at_s[name]


class Handler(BaseHTTPRequestHandler):
    server: Api

    def log_message(self, *args):
        pass

    def answer(self, status: int, body: dict) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def refuse(self, status: int, reason: str, name: str) -> None:
        self.answer(status, {
            "kind": "Status", "status": "Failure", "code": status, "reason": reason,
            "message": f'daskclusters.kubernetes.dask.org "{name}": {reason}',
        })

    def body(self) -> dict:
        return json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")

    def do_GET(self):
        self.answer(200, {"gitVersion": "v1.34.0"})

    def do_POST(self):
        self.server.sweep()
        resource = self.body()
        name = resource["metadata"]["name"]
        self.server.calls.append(("POST", name))
        assert self.path == RESOURCES
        if self.server.hangs_up:
            return
        if self.server.refuses:
            self.refuse(403, "Forbidden", name)
        elif name in self.server.resources:
            self.refuse(409, "AlreadyExists", name)
        else:
            self.server.resources[name] = resource
            self.answer(201, resource)

    def do_DELETE(self):
        self.server.sweep()
        folder, _, name = self.path.rpartition("/")
        policy = self.body().get("propagationPolicy", "Background")
        self.server.calls.append(("DELETE", policy))
        assert folder == RESOURCES
        if self.server.refuses:
            self.refuse(403, "Forbidden", name)
        elif name not in self.server.resources:
            self.refuse(404, "NotFound", name)
        else:
            self.server.gone_at_s.setdefault(name, time.monotonic() + self.server.pods_end_after_s)
            self.answer(200, {"kind": "Status", "status": "Success"})


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """One for all tests: the client keeps what it has once read of its configuration."""
    with Api() as server, pytest.MonkeyPatch.context() as monkeypatch:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        file = tmp_path_factory.mktemp("kubernetes") / "config"
        file.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{
                "name": "here", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"},
            }],
            "users": [{"name": "me", "user": {"token": "none"}}],
            "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
        }))
        monkeypatch.setenv("KUBECONFIG", str(file))
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def api(served):
    served.reset()
    return served


@pytest.fixture
def asked(api):
    """What a campaign of the stand-in asks for, and the lines that it is told by."""
    config = load_config(settings=[*SETTINGS])
    said = []

    def asked():
        return kubernetes.kubernetes_cluster(NAME, config.cluster, config.execution, said.append)

    asked.said = said
    return asked


@pytest.fixture
def folder(tmp_path):
    certificates = tmp_path / "certs"
    make_certificates(certificates)
    return CampaignFolder.create(tmp_path / "campaign", load_config(settings=[
        *SETTINGS, f"cluster.certificates={certificates}", "cluster.wait_s=6",
    ]))


def test_the_scheduler_of_pods_is_waited_for_and_they_end_with_the_campaign(api, folder):
    said = []
    name = f"chess-snn-{folder.campaign_id[:8]}"
    address = f"tls://{name}-scheduler.learning.svc.cluster.local:8786"
    with (
        pytest.raises(ClusterError, match=f"cannot reach a scheduler at {address}"),
        campaign_crew(folder, said.append),
    ):
        pass
    assert said == [
        "5 pods of workers are asked for, and one of a scheduler",
        f"waiting for the scheduler at {address}, at most 6 s",
    ]
    assert [call for call, _ in api.calls] == ["POST", "DELETE"]
    api.sweep()
    assert not api.resources


def test_what_a_killed_campaign_has_left_makes_room(api, asked):
    left = api.resources[NAME] = {"metadata": {"name": NAME}}
    api.pods_end_after_s = 1.5
    with asked() as address:
        assert address.startswith(f"tls://{NAME}-scheduler.")
        assert api.resources[NAME] is not left
        assert api.resources[NAME]["spec"]["worker"]["replicas"] == 5
        assert api.calls[:2] == [("POST", NAME), ("DELETE", "Foreground")]
        assert {call for call, _ in api.calls[2:]} == {"POST"}
    assert api.calls[-1] == ("DELETE", "Foreground")
    assert asked.said == [
        f"{PLACE} is left of an earlier run of this campaign; it is deleted and made anew"
    ]


def test_what_does_not_go_is_named_with_the_way_out(api, asked, monkeypatch):
    monkeypatch.setattr(kubernetes, "_GONE_WITHIN_S", 1.0)
    api.resources[NAME] = {"metadata": {"name": NAME}}
    api.pods_end_after_s = 60.0
    with pytest.raises(ClusterError) as error, asked():
        pass
    assert str(error.value).startswith(f"{PLACE} is left of an earlier run, and not gone 1 s after")
    assert str(error.value).endswith(f"kubectl --namespace learning describe daskcluster {NAME}")


def test_one_that_somebody_else_has_deleted_is_no_error(api, asked):
    with asked():
        api.resources.clear()
    assert asked.said == []


@pytest.mark.parametrize(("trouble", "said"), [
    ("refuses", "Forbidden"), ("hangs_up", "disconnected"),
])
def test_what_kubernetes_does_not_take_is_one_line(api, asked, trouble, said):
    setattr(api, trouble, True)
    line = f"did not take the resource {PLACE}: .*{said}"
    with pytest.raises(ClusterError, match=line), asked():
        pass


def test_what_stays_behind_is_told(api, asked):
    with asked():
        api.refuses = True
    (line,) = asked.said
    assert line.startswith(f"{PLACE} is not deleted, and its pods stay: ")
    assert line.endswith(f"kubectl --namespace learning delete daskcluster {NAME}")
