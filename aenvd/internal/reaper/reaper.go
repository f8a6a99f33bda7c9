// Package reaper starts children and waits for them: as PID 1 together with every orphan of the machine, which only a
// wait for "any child" collects.
package reaper

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reaper knows which children are ours. The zero value is not usable; see New.
type Reaper struct {
	// adopt: we are PID 1.
	adopt bool
	// Held from the fork until the child is known, so that its end is not taken for an orphan's.
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

// New returns a reaper; with adopt it also collects orphans, as PID 1 has to.
func New(adopt bool) *Reaper {
	r := &Reaper{adopt: adopt, waiting: map[int]chan syscall.WaitStatus{}}
	if adopt {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, unix.SIGCHLD)
		go r.run(signals)
	}
	return r
}

// Start starts a process. The channel gives its status once, when it has ended.
func (r *Reaper) Start(path string, argv []string, attr *os.ProcAttr) (int, <-chan syscall.WaitStatus, error) {
	ended := make(chan syscall.WaitStatus, 1)
	if !r.adopt {
		process, err := os.StartProcess(path, argv, attr)
		if err != nil {
			return 0, nil, err
		}
		go wait(process, ended)
		return process.Pid, ended, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	process, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return 0, nil, err
	}
	pid := process.Pid
	r.waiting[pid] = ended
	_ = process.Release() // the reaper waits for it
	return pid, ended, nil
}

func wait(process *os.Process, ended chan<- syscall.WaitStatus) {
	state, err := process.Wait()
	if err != nil {
		ended <- syscall.WaitStatus(uint32(syscall.SIGKILL)) // somebody else waited for it: nothing better is known
		return
	}
	ended <- state.Sys().(syscall.WaitStatus)
}

func (r *Reaper) run(signals <-chan os.Signal) {
	for range signals {
		for r.collect() {
		}
	}
}

// collect reaps one child; false when none has ended.
func (r *Reaper) collect() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if ended, ok := r.waiting[pid]; ok {
		delete(r.waiting, pid)
		ended <- status
	}
	return true
}
