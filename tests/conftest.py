"""What every test may rely on."""

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell script's background jobs inherit this, and would hand it on to every process that a
    # test starts and then interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)
