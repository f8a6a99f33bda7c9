package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "aenvd/internal/gen/process"
)

func TestLargeOutputIsExact(t *testing.T) {
	g := newGuest(t)
	copied := filepath.Join(t.TempDir(), "copy")
	script := fmt.Sprintf("head -c 20000000 /dev/urandom | tee %s; sha256sum < %s >&2", copied, copied)
	for name, transport := range map[string]http.RoundTripper{"HTTP/1.1": http.DefaultTransport, "h2c": cleartext()} {
		g.use(transport)
		got := g.start(timeout(t, 30*time.Second), shell(script)).wait()
		sum := sha256.Sum256(got.stdout.Bytes())
		if want, _, _ := strings.Cut(got.stderr.String(), " "); got.stdout.Len() != 20_000_000 || hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s: %d bytes, %v", name, got.stdout.Len(), got.err)
		}
	}
}

// A client that never reads holds up neither another one nor the process.
func TestAStalledClient(t *testing.T) {
	g := newGuest(t)
	process := g.start(timeout(t, 60*time.Second), &pb.StartRequest{Process: &pb.ProcessConfig{
		Cmd: "/bin/sh", Args: []string{"-c", "read go; head -c 30000000 /dev/zero"},
	}})
	conn := stalledConnect(t, g.address, process.pid)
	defer conn.Close()
	if err := g.send(process.pid, stdin("\n")); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	got := process.wait()
	if got.stdout.Len() != 30_000_000 || got.end.GetExitCode() != 0 {
		t.Errorf("the healthy client got %d bytes, %v, %v", got.stdout.Len(), got.end, got.err)
	}
	if took := time.Since(started); took > 10*time.Second {
		t.Errorf("the healthy client waited %s", took)
	}
	if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	received, err := io.Copy(io.Discard, conn) // what was on its way, and then the end
	if received >= 30_000_000 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stalled client was not cut off: %d bytes, %v", received, err)
	}
}

// stalledConnect attaches to a process through a connection from which nothing is read after the first event.
func stalledConnect(t *testing.T, address string, pid uint32) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"process":{"pid":%d}}`, pid)
	envelope := append([]byte{0, 0, 0, 0, byte(len(body))}, body...)
	fmt.Fprintf(conn, "POST /process.Process/Connect HTTP/1.1\r\nHost: x\r\nContent-Type: application/connect+json\r\nConnect-Protocol-Version: 1\r\nContent-Length: %d\r\n\r\n%s", len(envelope), envelope)
	status, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
	if err != nil || !strings.Contains(status, "200") {
		t.Fatalf("%q, %v", status, err)
	}
	return conn
}

func terminal(cmd string, args ...string) *pb.StartRequest {
	return &pb.StartRequest{
		Process: &pb.ProcessConfig{Cmd: cmd, Args: args, Envs: map[string]string{"PS1": "> ", "TERM": "xterm"}},
		Pty:     &pb.PTY{Size: &pb.PTY_Size{Cols: 90, Rows: 30}},
	}
}

func TestTerminal(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 20*time.Second), terminal("/bin/sh", "-i"))
	step := func(input, want string) {
		t.Helper()
		if err := g.send(run.pid, keys(input)); err != nil {
			t.Fatal(err)
		}
		run.readUntil(want)
	}
	step("stty size\n", "30 90\r\n")
	size := &pb.PTY{Size: &pb.PTY_Size{Cols: 120, Rows: 40}}
	if _, err := g.processes.Update(timeout(t, 10*time.Second), connect.NewRequest(&pb.UpdateRequest{Process: byPID(run.pid), Pty: size})); err != nil {
		t.Fatal(err)
	}
	step("stty size\n", "40 120\r\n")
	step("test -t 0 && test -t 1 && test -t 2 && echo all''three\n", "allthree\r\n")
	step("echo cat''runs; cat\n", "catruns\r\n")
	step("typed\n", "typed\r\ntyped\r\n") // the terminal's echo, then cat's
	step("\x03", "> ")                    // ^C ends cat, not the shell
	step("echo still''here\n", "stillhere\r\n")
	if err := g.send(run.pid, keys("exit 7\n")); err != nil {
		t.Fatal(err)
	}
	if got := run.wait(); got.end.GetExitCode() != 7 || !got.end.GetExited() {
		t.Errorf("got %v, %v", got.end, got.err)
	}
}

func TestClosingInputOfATerminal(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 10*time.Second), terminal("cat"))
	if _, err := g.processes.CloseStdin(timeout(t, 10*time.Second), connect.NewRequest(&pb.CloseStdinRequest{Process: byPID(run.pid)})); err != nil {
		t.Fatal(err)
	}
	if got := run.wait(); got.end.GetExitCode() != 0 || got.end == nil {
		t.Errorf("got %v, %v", got.end, got.err)
	}
}

func TestATerminalEndsWithItsLeader(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 10*time.Second), terminal("/bin/sh", "-c", "trap '' HUP; sleep 1000 & echo pid=$!; exit 5"))
	got := run.wait()
	if got.end.GetExitCode() != 5 {
		t.Errorf("got %v, %v", got.end, got.err)
	}
	_, text, _ := bytes.Cut(got.pty.Bytes(), []byte("pid="))
	if background, err := strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		t.Errorf("output %q", got.pty.String())
	} else {
		_ = unix.Kill(background, unix.SIGKILL)
	}
}

func TestKillingATerminalKillsItsJobs(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 10*time.Second), terminal("/bin/sh", "-i"))
	if err := g.send(run.pid, keys("sleep 1000 & echo job''=$!.''end\n")); err != nil {
		t.Fatal(err)
	}
	output := run.readUntil(".end\r\n")
	_, text, _ := strings.Cut(output, "job=")
	text, _, _ = strings.Cut(text, ".")
	job, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("output %q", output)
	}
	if err := g.signal(run.pid, pb.Signal_SIGNAL_SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := run.wait(); got.end.GetStatus() != "signal: killed" {
		t.Errorf("got %v, %v", got.end, got.err)
	}
	eventually(t, "the job ends", func() bool { return unix.Kill(job, 0) != nil || zombie(job) })
}

func TestManyAtOnce(t *testing.T) {
	g := newGuest(t)
	const count = 30
	failed := make(chan error, count)
	for i := range count {
		go func() {
			want := strconv.Itoa(i)
			stream, err := g.processes.Start(context.Background(), connect.NewRequest(shell("echo "+want)))
			if err != nil {
				failed <- err
				return
			}
			var output bytes.Buffer
			for stream.Receive() {
				output.Write(stream.Msg().GetEvent().GetData().GetStdout())
			}
			if output.String() != want+"\n" {
				failed <- fmt.Errorf("process %d said %q, %v", i, output.String(), stream.Err())
				return
			}
			failed <- nil
		}()
	}
	for range count {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
