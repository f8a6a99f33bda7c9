package boot

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// surviveSignals keeps `kill 1` from ending the machine: Go's runtime would exit, where the kernel's rule for PID 1 is
// to ignore what has no handler. They are caught and not ignored, because children inherit what is ignored.
func surviveSignals() {
	caught := make(chan os.Signal, 1) // never read; what does not fit is dropped
	for number := unix.Signal(1); number <= 31; number++ {
		switch number {
		case unix.SIGKILL, unix.SIGSTOP: // can't be caught
		case unix.SIGCHLD: // the reaper's
		case unix.SIGURG, unix.SIGPROF: // the runtime's own
		default:
			signal.Notify(caught, number)
		}
	}
}
