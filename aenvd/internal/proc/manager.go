// Package proc runs the processes of the sandbox.
package proc

import (
	"cmp"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	pb "aenvd/internal/gen/process"
	"aenvd/internal/reaper"
	"aenvd/internal/users"
)

const (
	// How long the end of a process can still be asked for.
	memory = 30 * time.Second
	// Numbers for commands that never got a pid: above all that Linux gives (2^22).
	firstPseudoPID = 1 << 30
	// Children go before aenvd when memory runs out.
	oomScore = "100"
)

// Spec is what to start.
type Spec struct {
	Config *pb.ProcessConfig
	User   users.User
	// Cwd is absolute.
	Cwd string
	Env map[string]string
	Tag *string
	// Size of the terminal; without one there are pipes.
	Size *Size
	// Stdin is /dev/null without it.
	Stdin bool
}

// Manager knows all processes that were started through it.
type Manager struct {
	reaper *reaper.Reaper

	mu         sync.Mutex
	running    []*Process // oldest first
	finished   []*Process
	nextPseudo uint32
}

// NewManager starts processes through reaper.
func NewManager(reaper *reaper.Reaper) *Manager {
	return &Manager{reaper: reaper, nextPseudo: firstPseudoPID}
}

// Start starts a process; the subscription has its output from the first byte. A command that can't be started is a
// process too: one that has ended already, with 127 or 126.
func (m *Manager) Start(spec Spec) (*Process, *Subscription, error) {
	path, err := lookPath(spec.Config.GetCmd(), spec.Env["PATH"], spec.Cwd)
	if failure := (startError{}); errors.As(err, &failure) {
		return m.failed(spec, failure)
	}
	files, err := openFiles(spec)
	if err != nil {
		return nil, nil, err
	}
	defer files.closeChild()
	attr := &os.ProcAttr{Dir: spec.Cwd, Env: environmentList(spec.Env), Files: files.child, Sys: attributes(spec)}
	argv := append([]string{spec.Config.GetCmd()}, spec.Config.GetArgs()...)
	pid, ended, err := m.reaper.Start(path, argv, attr)
	if err != nil {
		files.closeParent()
		return m.failed(spec, describeStart(spec.Config.GetCmd(), err))
	}
	preferForOOM(pid)
	process := &Process{
		PID: uint32(pid), Tag: spec.Tag, Config: spec.Config, output: newFanout(),
		tty: files.tty, sources: files.sources, input: files.input, done: make(chan struct{}),
	}
	sub := process.Subscribe()
	m.add(process)
	go func() {
		end := process.run(ended)
		// First: who has seen the end must not find it running.
		m.retire(process)
		process.finish(end)
	}()
	return process, sub, nil
}

func attributes(spec Spec) *syscall.SysProcAttr {
	// A session of its own: signals to the group reach all of it and nobody else.
	attr := &syscall.SysProcAttr{Setsid: true, Setctty: spec.Size != nil}
	if os.Getuid() == 0 {
		attr.Credential = &syscall.Credential{Uid: spec.User.UID, Gid: spec.User.GID, Groups: spec.User.Groups}
	}
	return attr
}

func preferForOOM(pid int) {
	if os.Getuid() != 0 {
		return
	}
	path := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
	if err := os.WriteFile(path, []byte(oomScore), 0); err != nil && !os.IsNotExist(err) && !errors.Is(err, syscall.ESRCH) {
		log.Printf("process %d: %v", pid, err)
	}
}

func (m *Manager) failed(spec Spec, failure startError) (*Process, *Subscription, error) {
	m.mu.Lock()
	pid := m.nextPseudo
	m.nextPseudo++
	m.mu.Unlock()
	process := &Process{PID: pid, Tag: spec.Tag, Config: spec.Config, output: newFanout(), done: make(chan struct{})}
	sub := process.Subscribe()
	kind := Stderr
	if spec.Size != nil {
		kind = Terminal
	}
	process.output.publish(Output{kind, []byte(failure.message + "\n")})
	m.retire(process)
	process.finish(exitEvent(failure.code, failure.message))
	return process, sub, nil
}

func (m *Manager) add(process *Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = append(m.running, process)
}

// retire remembers a process for a while after its end.
func (m *Manager) retire(process *Process) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = without(m.running, process)
	m.finished = append(m.finished, process)
	time.AfterFunc(memory, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.finished = without(m.finished, process)
	})
}

func without(list []*Process, process *Process) []*Process {
	return slices.DeleteFunc(list, func(other *Process) bool { return other == process })
}

// List has the running processes, by pid.
func (m *Manager) List() []*pb.ProcessInfo {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*pb.ProcessInfo, 0, len(m.running))
	for _, process := range m.running {
		list = append(list, process.Info())
	}
	slices.SortFunc(list, func(a, b *pb.ProcessInfo) int { return cmp.Compare(a.Pid, b.Pid) })
	return list
}

// NotFoundError says that no such process runs.
type NotFoundError struct{ what string }

func (e NotFoundError) Error() string { return fmt.Sprintf("process with %s not found", e.what) }

// Find gives the running process that the selector names; the newest, when several have the tag. With ended it also
// finds one that ended a short while ago.
func (m *Manager) Find(selector *pb.ProcessSelector, ended bool) (*Process, error) {
	matches, what, err := matcher(selector)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	lists := [][]*Process{m.running}
	if ended {
		lists = append(lists, m.finished)
	}
	for _, list := range lists {
		for _, process := range slices.Backward(list) {
			if matches(process) {
				return process, nil
			}
		}
	}
	return nil, NotFoundError{what}
}

var errNoSelector = errors.New("the request names no process: give a pid or a tag")

func matcher(selector *pb.ProcessSelector) (matches func(*Process) bool, what string, err error) {
	switch by := selector.GetSelector().(type) {
	case *pb.ProcessSelector_Pid:
		return func(p *Process) bool { return p.PID == by.Pid }, fmt.Sprintf("pid %d", by.Pid), nil
	case *pb.ProcessSelector_Tag:
		return func(p *Process) bool { return p.Tag != nil && *p.Tag == by.Tag }, "tag " + by.Tag, nil
	}
	return nil, "", errNoSelector
}
