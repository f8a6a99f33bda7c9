package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	pb "aenvd/internal/gen/process"
)

const (
	readSize = 32 << 10
	// After a kill, and on a terminal, others may still hold the output open. What is in the pipe is read: until nothing
	// came for lastOutputGrace, or lastOutputBytes did.
	lastOutputGrace = 100 * time.Millisecond
	lastOutputBytes = 256 << 10
	endOfTransmit   = 4 // ^D
)

var errNoInput = errors.New("the process was started without standard input, or it is closed")

// Process is one that we started.
type Process struct {
	PID    uint32
	Tag    *string
	Config *pb.ProcessConfig

	output *fanout
	tty    *os.File
	// What can be read from the process; the terminal, or two pipes.
	sources []source

	inputMu sync.Mutex
	input   *os.File

	exited  atomic.Bool
	killed  atomic.Bool
	lasting atomic.Bool
	// Closed when the end is known and all output was published.
	done chan struct{}
	end  *pb.ProcessEvent_EndEvent
}

type source struct {
	kind Kind
	file *os.File
}

// Subscribe watches the output from now on.
func (p *Process) Subscribe() *Subscription { return p.output.Subscribe() }

// Done is closed when the process has ended and all its output was handed out.
func (p *Process) Done() <-chan struct{} { return p.done }

// End is how it ended; only after Done.
func (p *Process) End() *pb.ProcessEvent_EndEvent { return p.end }

// run publishes the output and tells how the process ended.
func (p *Process) run(ended <-chan syscall.WaitStatus) *pb.ProcessEvent_EndEvent {
	var readers sync.WaitGroup
	for _, src := range p.sources {
		readers.Add(1)
		go func() {
			defer readers.Done()
			p.read(src)
		}()
	}
	status := <-ended
	p.exited.Store(true)
	if p.tty != nil || status.Signaled() || p.killed.Load() {
		p.readLast()
	}
	readers.Wait()
	p.closeInput()
	for _, src := range p.sources {
		src.file.Close()
	}
	return endEvent(status)
}

func (p *Process) finish(end *pb.ProcessEvent_EndEvent) {
	p.end = end
	close(p.done)
	p.output.close()
}

func (p *Process) read(src source) {
	buffer := make([]byte, readSize)
	for rest := lastOutputBytes; rest > 0; {
		lasting := p.lasting.Load()
		if lasting {
			_ = src.file.SetReadDeadline(time.Now().Add(lastOutputGrace))
		}
		n, err := src.file.Read(buffer)
		if n > 0 {
			p.output.publish(Output{src.kind, append([]byte(nil), buffer[:n]...)})
		}
		if lasting {
			rest -= n
		} else if errors.Is(err, os.ErrDeadlineExceeded) {
			continue // woken by readLast
		}
		if err != nil {
			return // the end of the output; EIO on a terminal that nobody has open
		}
	}
}

// readLast makes the readers finish with what there is.
func (p *Process) readLast() {
	if p.lasting.Swap(true) {
		return
	}
	for _, src := range p.sources {
		_ = src.file.SetReadDeadline(time.Now())
	}
}

// Signal goes to the whole process group; on a terminal, a kill goes to all groups of the session.
func (p *Process) Signal(signal syscall.Signal) error {
	if signal == unix.SIGKILL {
		p.killed.Store(true)
	}
	err := unix.Kill(-int(p.PID), signal)
	if p.tty != nil && signal == unix.SIGKILL {
		killSession(int(p.PID))
	}
	if p.exited.Load() && signal == unix.SIGKILL {
		p.readLast()
		return nil
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}

// Kill is Signal(SIGKILL) for those who can't do anything about an error.
func (p *Process) Kill() { _ = p.Signal(unix.SIGKILL) }

// Write gives the process input. It waits for the process to take it, as long as ctx allows.
func (p *Process) Write(ctx context.Context, data []byte) error {
	p.inputMu.Lock()
	defer p.inputMu.Unlock()
	if p.input == nil {
		return errNoInput
	}
	input := p.input
	_ = input.SetWriteDeadline(time.Time{})
	stop := context.AfterFunc(ctx, func() { _ = input.SetWriteDeadline(time.Now()) })
	defer stop()
	_, err := input.Write(data)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.EIO), errors.Is(err, os.ErrClosed):
		return errNoInput
	}
	return err
}

// CloseInput lets the process read the end of its input; on a terminal by typing ^D.
func (p *Process) CloseInput(ctx context.Context) error {
	if p.tty != nil {
		return p.Write(ctx, []byte{endOfTransmit})
	}
	if !p.closeInput() {
		return errNoInput
	}
	return nil
}

func (p *Process) closeInput() bool {
	p.inputMu.Lock()
	defer p.inputMu.Unlock()
	if p.input == nil {
		return false
	}
	p.input.Close()
	p.input = nil
	return true
}

// Info describes the process for a list.
func (p *Process) Info() *pb.ProcessInfo {
	return &pb.ProcessInfo{Config: proto.Clone(p.Config).(*pb.ProcessConfig), Pid: p.PID, Tag: p.Tag}
}

func endEvent(status syscall.WaitStatus) *pb.ProcessEvent_EndEvent {
	if status.Exited() {
		return exitEvent(int32(status.ExitStatus()), "")
	}
	text := "signal: " + status.Signal().String()
	if status.CoreDump() {
		text += " (core dumped)"
	}
	return &pb.ProcessEvent_EndEvent{ExitCode: -1, Status: text, Error: &text}
}

// exitEvent is the end of a process that exited; the reason, if any, replaces the text.
func exitEvent(code int32, reason string) *pb.ProcessEvent_EndEvent {
	event := &pb.ProcessEvent_EndEvent{ExitCode: code, Exited: true, Status: "exit status " + strconv.Itoa(int(code))}
	if reason == "" {
		reason = event.Status
	}
	if code != 0 {
		event.Error = &reason
	}
	return event
}
