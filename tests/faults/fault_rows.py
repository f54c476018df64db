"""The faults that a campaign survives: what is promised for each, and how tests inject it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault; its tests are marked ``@pytest.mark.fault(number)``."""

    number: int
    fault: str
    promise: str
    injection: str

    def __str__(self) -> str:
        """The row of the table in docs/reliability.md."""
        return f"| {self.number} | {self.fault} | {self.promise} | {self.injection} |"


ROWS = tuple(FaultRow(number, *texts) for number, texts in enumerate((
    ("A self-play worker is killed",
     "reported within 10 s; only the shard it was playing is played again",
     "kill -9 during self-play, during its start, and at every failpoint that workers pass"),
    ("A worker freezes",
     "reported and killed after 60 s of silence; its shard is played again",
     "SIGSTOP"),
    ("The campaign's process is killed",
     "`resume` repeats no committed work, closes the open runs in Prefect, and reaches the games "
     "and weights of an uninterrupted campaign",
     "kill -9 at every failpoint, and between stages"),
    ("The Prefect server is away, for 15 s and for good",
     "the campaign continues; it stops with one line, and `resume` continues",
     "kill -9 of the server; after 15 s another one starts on its database"),
    ("A launcher, or the parent of workers, is killed",
     "within 5 s no process is left that could hold a device",
     "kill -9 of the campaign, of torch's agent, of the guard of a Prefect worker"),
    ("MLflow is away, then back",
     "training continues; metrics and versions arrive later, each once",
     "a server stopped and started again, a corrupt database, an address without a server"),
    ("A training rank is killed",
     "it is named; the task is retried from the last generation and gives the same weights",
     "kill -9 of a rank, of rank 0 and of their launcher"),
    ("A training rank hangs",
     "it is named after a timeout, and the others end",
     "SIGSTOP, and a sleep in its main thread"),
    ("A writer is killed while it writes a shard",
     "no partial shard is ever visible; its temporary files are removed",
     "10 kills at random times, 25 in the slow tests"),
    ("A chunk is truncated, emptied, deleted, or has a flipped bit",
     "never used: quarantined with the reason and played again, or else dropped from training; "
     "either is reported",
     "edits of the file"),
    ("A checkpoint is truncated, or has a flipped bit",
     "never used: quarantined with the reason and trained again from the generation before it, "
     "to the same weights; this is reported",
     "edits of the file"),
    ("The disk is full, or a file reaches its size limit",
     "one line says so; committed work is intact, and `resume` continues when there is room",
     "a small tmpfs under a campaign's games; RLIMIT_FSIZE"),
    ("The device's memory runs out",
     "a training step is retried with half the micro-batch (at least 2), an evaluation in "
     "self-play with half the positions (at least 32); both are recorded",
     "`torch.OutOfMemoryError` in the backward pass, on one process and on one of several ranks, "
     "and in the network's answer"),
    ("The machine's memory runs out",
     "reported as such; if four workers die over the same work, the campaign stops resumably",
     "RLIMIT_AS; repeated kill -9; a simulated count of the kernel's kills"),
    ("A loss is NaN or infinite",
     "the step changes nothing; after `training.skip_limit` in a row the campaign stops with the "
     "reason and discards that generation",
     "a poisoned target in one batch, in all; poisoned moments under a running campaign"),
    ("Two campaigns run in one folder",
     "the second one refuses and names the holder; a killed holder holds nothing",
     "a second start while the first runs, and after it was killed"),
    ("The configuration was changed before `resume`",
     "refused with the old and the new value of every changed setting",
     "edits of `campaign.toml`"),
    ("One shard is played twice",
     "one commit wins, and both return it",
     "two processes, the slower one held at a failpoint; threads at a barrier"),
    ("The clock jumps",
     "nothing times out; the order follows sequence numbers",
     "`time.time` an hour ahead, then back, in every Python process of a campaign"),
    ("Malformed FEN, PGN or UCI",
     "one line for each; no crash, no partial import",
     "a corpus, and generated lines and texts"),
    ("An engine plays an illegal move, dies or is silent",
     "a forfeit or a void game, a bounded wait, a restart",
     "test engines that do so"),
    ("SIGTERM or Ctrl-C",
     "an orderly stop with exit code 130, and `resume` continues; a second signal ends it at once",
     "each signal, to the process and to its whole group, and twice"),
    ("A folder is missing or not writable",
     "refused in one line before any work",
     "removed permissions; root without its privileges"),
    ("A checkpoint is a pickle",
     "refused and never loaded",
     "a `__reduce__` that would leave a trace"),
    ("Data has an older schema",
     "read, or refused by name; never misread",
     "stored fixtures"),
), start=1))
