"""The faults that a campaign is to survive: what is promised of each, and how tests inject it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FaultRow:
    """One fault; tests of it are marked ``@pytest.mark.fault(number)``."""

    number: int
    fault: str
    promise: str
    injection: str


ROWS = tuple(FaultRow(number, *texts) for number, texts in enumerate((
    ("A self-play worker is killed",
     "it is told within 10 s; only the shard that it had is played again",
     "kill -9 in the middle of self-play, while it starts, at every failpoint that workers pass"),
    ("A worker freezes",
     "told and killed after 60 s of silence; its shard is played again",
     "SIGSTOP"),
    ("The campaign's process is killed",
     "`resume` does nothing again that was committed, closes the runs left open in Prefect, and "
     "comes to the games and weights of a campaign that nobody touched",
     "kill -9 at every failpoint, and between stages"),
    ("The Prefect server is away, for 15 s and for good",
     "it goes on; it stops with one line, and `resume` goes on",
     "kill -9 of the server; for 15 s, then another on its database"),
    ("A launcher, or the parent of workers, is killed",
     "within 5 s no process is left that could hold a device",
     "kill -9 of the campaign, of torch's agent, of what guards a worker of Prefect"),
    ("MLflow is away, then back",
     "training goes on; metrics and versions come later, each once",
     "a server stopped and started again, a damaged database, an address where nobody is"),
    ("A training rank is killed",
     "it is named; the task is tried again from the last generation, to the same weights",
     "kill -9 of a rank, of rank 0 and of their launcher"),
    ("A training rank hangs",
     "after a timeout it is named, and the others end",
     "SIGSTOP, and a sleep in its main thread alone"),
    ("A writer is killed in the middle of a shard",
     "no partial shard is ever visible; what it left is swept",
     "10 kills at random times, 25 among the slow tests"),
    ("A chunk is truncated, emptied, deleted, or has a flipped bit",
     "never used: moved to `quarantine/` with the reason, and played again; where that cannot be, "
     "windows go without it; either is told",
     "edits of the file"),
    ("A checkpoint is truncated, or has a flipped bit",
     "never used: moved to `quarantine/` with the reason, and trained again from the generation "
     "before it, to the same weights; that is told",
     "edits of the file"),
    ("The disk is full, or a file may grow no more",
     "one line says so; what was committed is intact, and `resume` goes on when there is room",
     "a small tmpfs under a campaign's games; RLIMIT_FSIZE"),
    ("The device's memory runs out",
     "a step is taken again with half the micro-batch, at most down to 2, a call of the network in "
     "play with half the positions, at most down to 32; both are recorded",
     "`torch.OutOfMemoryError` in the backward pass, alone and on one of several ranks, and in the "
     "network's answer"),
    ("The machine's memory runs out",
     "told as such; work that four workers died of stops the campaign resumably",
     "RLIMIT_AS; kill -9 again and again; a simulated count of the kernel's kills"),
    ("A loss is NaN or infinite",
     "the step changes nothing; after `training.skip_limit` in a row the campaign halts with the "
     "reason, and nothing of that generation is kept or promoted",
     "a poisoned target in one batch, in all; poisoned moments under a running campaign"),
    ("Two campaigns run in one folder",
     "the second refuses and names the holder; a killed holder holds nothing",
     "a second start while the first runs, and after it was killed"),
    ("The configuration was changed before `resume`",
     "refused with the old and the new value of every changed setting",
     "edits of `campaign.toml`"),
    ("One shard is played twice",
     "one commit wins, and both return it",
     "two processes, the slower one held at a failpoint; threads at a barrier"),
    ("The clock jumps",
     "nothing times out; order is by sequence number",
     "`time.time` an hour ahead, then back, in every Python process of a campaign"),
    ("Malformed FEN, PGN or UCI",
     "one line each; no crash, nothing imported in part",
     "a corpus, and generated lines and texts"),
    ("An engine plays an illegal move, dies or is silent",
     "a forfeit or a void game, a bounded wait, a fresh start",
     "made engines that do so"),
    ("SIGTERM or Ctrl-C",
     "it stops in order with exit code 130, and `resume` goes on; a second one ends it at once",
     "each signal, to the process and to its whole group, and twice"),
    ("A folder is missing or cannot be written",
     "refused in one line before any work",
     "permissions taken away; root without its privileges"),
    ("A checkpoint is a pickle",
     "refused and never loaded",
     "a `__reduce__` that would leave a trace"),
    ("Data of an older schema",
     "read, or refused by name; never misread",
     "stored fixtures"),
), start=1))
