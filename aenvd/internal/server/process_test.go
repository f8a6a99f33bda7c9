package server

import (
	"context"
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

func TestRunOverEveryProtocol(t *testing.T) {
	g := newGuest(t)
	cases := map[string]struct {
		transport http.RoundTripper
		options   []connect.ClientOption
	}{
		"HTTP/1.1 binary": {http.DefaultTransport, nil},
		"HTTP/1.1 JSON":   {http.DefaultTransport, []connect.ClientOption{connect.WithProtoJSON()}},
		"h2c binary":      {cleartext(), nil},
		"h2c JSON":        {cleartext(), []connect.ClientOption{connect.WithProtoJSON()}},
		"h2c gRPC":        {cleartext(), []connect.ClientOption{connect.WithGRPC()}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			g.use(c.transport, c.options...)
			got := g.start(timeout(t, 10*time.Second), shell(`printf 'a\000b'; printf err >&2; exit 3`)).wait()
			if got.err != nil || got.stdout.String() != "a\x00b" || got.stderr.String() != "err" {
				t.Errorf("got %q, %q, %v", got.stdout.String(), got.stderr.String(), got.err)
			}
			if got.end.GetExitCode() != 3 || !got.end.GetExited() || got.end.GetStatus() != "exit status 3" || got.end.GetError() != "exit status 3" {
				t.Errorf("end: %v", got.end)
			}
		})
	}
}

func TestSuccessHasNoError(t *testing.T) {
	got := newGuest(t).start(timeout(t, 10*time.Second), shell("true")).wait()
	if got.end.GetExitCode() != 0 || !got.end.GetExited() || got.end.Error != nil {
		t.Errorf("end: %v", got.end)
	}
}

func TestCommandsThatCannotStart(t *testing.T) {
	g := newGuest(t)
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		cmd     string
		code    int32
		message string
	}{
		{"no-such-command", 127, "no-such-command: command not found"},
		{"/no/such/file", 127, "/no/such/file: no such file or directory"},
		{plain, 126, plain + ": permission denied"},
		{"/tmp", 126, "/tmp: is a directory"},
	}
	for _, c := range cases {
		run := g.start(timeout(t, 10*time.Second), &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: c.cmd}})
		got := run.wait()
		if got.err != nil || got.end.GetExitCode() != c.code || !got.end.GetExited() || got.end.GetError() != c.message {
			t.Errorf("%s: %v, %v", c.cmd, got.end, got.err)
		}
		if got.stderr.String() != c.message+"\n" {
			t.Errorf("%s: stderr %q", c.cmd, got.stderr.String())
		}
		wantCode(t, g.signal(run.pid, pb.Signal_SIGNAL_SIGKILL), connect.CodeNotFound, "")
	}
}

func TestRefusedRequests(t *testing.T) {
	g := newGuest(t)
	nowhere := "/no/such/dir"
	cases := []struct {
		message *pb.StartRequest
		header  string
		code    connect.Code
		text    string
	}{
		{&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "true", Cwd: &nowhere}}, "", connect.CodeInvalidArgument, "cwd '/no/such/dir' does not exist"},
		{&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "a\x00b"}}, "", connect.CodeInvalidArgument, "NUL"},
		{&pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "true", Envs: map[string]string{"A=B": "c"}}}, "", connect.CodeInvalidArgument, "A=B"},
		{&pb.StartRequest{}, "", connect.CodeInvalidArgument, "no process"},
		{shell("true"), "Basic bm9ib2R5LWhlcmU6", connect.CodeUnauthenticated, "invalid username: 'nobody-here'"},
	}
	for _, c := range cases {
		request := connect.NewRequest(c.message)
		if c.header != "" {
			request.Header().Set("Authorization", c.header)
		}
		stream, err := g.processes.Start(timeout(t, 10*time.Second), request)
		if err != nil {
			t.Fatal(err)
		}
		if stream.Receive() {
			t.Errorf("%v: got %v", c.message, stream.Msg())
		}
		wantCode(t, stream.Err(), c.code, c.text)
	}
}

func TestEnvironment(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"envVars": map[string]string{"A": "global", "B": "global"}, "sandboxId": "i1", "templateId": "t1"}, "", http.StatusNoContent)
	message := shell(`echo "$A $B $C|$E2B_SANDBOX $E2B_SANDBOX_ID $E2B_TEMPLATE_ID|$AENVD_TEST_LEAK|$HOME"`)
	message.Process.Envs = map[string]string{"B": "own", "C": "own"}
	t.Setenv("AENVD_TEST_LEAK", "leaked")
	got := g.start(timeout(t, 10*time.Second), message).wait().stdout.String()
	if !strings.HasPrefix(got, "global own own|true i1 t1||/") {
		t.Errorf("got %q", got)
	}
	g.init(map[string]any{"envVars": map[string]string{"C": "new"}}, "", http.StatusNoContent)
	if got := g.start(timeout(t, 10*time.Second), shell(`echo "$A-$C"`)).wait().stdout.String(); got != "-new\n" {
		t.Errorf("envVars are not replaced: %q", got)
	}
}

func TestStandardInput(t *testing.T) {
	g := newGuest(t)
	cat := g.start(timeout(t, 20*time.Second), &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "cat"}})
	text := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB, more than a pipe holds
	sent := make(chan error, 1)
	go func() {
		for range 3 {
			if err := g.send(cat.pid, stdin(text)); err != nil {
				sent <- err
				return
			}
		}
		_, err := g.processes.CloseStdin(context.Background(), connect.NewRequest(&pb.CloseStdinRequest{Process: byPID(cat.pid)}))
		sent <- err
	}()
	got := cat.wait()
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if got.stdout.String() != strings.Repeat(text, 3) || got.end.GetExitCode() != 0 {
		t.Errorf("got %d bytes, %v", got.stdout.Len(), got.end)
	}
	wantCode(t, g.send(cat.pid, stdin("x")), connect.CodeNotFound, "not found")
}

func TestWithoutStandardInput(t *testing.T) {
	g := newGuest(t)
	if got := g.start(timeout(t, 10*time.Second), shell("cat; echo end")).wait(); got.stdout.String() != "end\n" {
		t.Errorf("got %q, %v", got.stdout.String(), got.err)
	}
	sleep := g.start(timeout(t, 10*time.Second), shell("sleep 100"))
	wantCode(t, g.send(sleep.pid, stdin("x")), connect.CodeFailedPrecondition, "without standard input")
	wantCode(t, g.send(sleep.pid, keys("x")), connect.CodeFailedPrecondition, "no terminal")
	if err := g.signal(sleep.pid, pb.Signal_SIGNAL_SIGTERM); err != nil {
		t.Fatal(err)
	}
	if got := sleep.wait(); got.end.GetStatus() != "signal: terminated" || got.end.GetExitCode() != -1 {
		t.Errorf("got %v", got.end)
	}
}

func TestStreamInput(t *testing.T) {
	g := newGuest(t)
	cat := g.start(timeout(t, 10*time.Second), &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "head", Args: []string{"-c", "4"}}})
	stream := g.processes.StreamInput(timeout(t, 10*time.Second))
	messages := []*pb.StreamInputRequest{
		{Event: &pb.StreamInputRequest_Start{Start: &pb.StreamInputRequest_StartEvent{Process: byPID(cat.pid)}}},
		{Event: &pb.StreamInputRequest_Keepalive{Keepalive: &pb.StreamInputRequest_KeepAlive{}}},
		{Event: &pb.StreamInputRequest_Data{Data: &pb.StreamInputRequest_DataEvent{Input: stdin("ab")}}},
		{Event: &pb.StreamInputRequest_Data{Data: &pb.StreamInputRequest_DataEvent{Input: stdin("cd")}}},
	}
	for _, message := range messages {
		if err := stream.Send(message); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := stream.CloseAndReceive(); err != nil {
		t.Fatal(err)
	}
	if got := cat.wait(); got.stdout.String() != "abcd" {
		t.Errorf("got %q", got.stdout.String())
	}
}

func TestKillEndsTheWholeGroup(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 10*time.Second), shell(`sleep 1000 & echo $!; sleep 1000`))
	child, err := strconv.Atoi(strings.TrimSpace(run.readUntil("\n")))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.signal(run.pid, pb.Signal_SIGNAL_SIGKILL); err != nil {
		t.Fatal(err)
	}
	got := run.wait()
	if got.end.GetExitCode() != -1 || got.end.GetExited() || got.end.GetStatus() != "signal: killed" || got.end.GetError() != "signal: killed" {
		t.Errorf("end: %v", got.end)
	}
	eventually(t, "the child ends", func() bool { return unix.Kill(child, 0) != nil || zombie(child) })
	wantCode(t, g.signal(run.pid, pb.Signal_SIGNAL_SIGKILL), connect.CodeNotFound, "not found")
}

// zombie: in a container without an init, nobody collects orphans.
func zombie(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestKillDoesNotWaitForWhoHoldsThePipe(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 10*time.Second), shell(`setsid sleep 1000 & echo $!; sleep 1000`))
	outsider, err := strconv.Atoi(strings.TrimSpace(run.readUntil("\n")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Kill(outsider, unix.SIGKILL) })
	time.Sleep(50 * time.Millisecond) // until it has a session of its own
	started := time.Now()
	if err := g.signal(run.pid, pb.Signal_SIGNAL_SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := run.wait(); got.end == nil || time.Since(started) > 2*time.Second {
		t.Errorf("end %v after %s: %v", got.end, time.Since(started), got.err)
	}
}

func TestDeadlineKills(t *testing.T) {
	g := newGuest(t)
	run := g.start(timeout(t, 300*time.Millisecond), shell("sleep 1000"))
	wantCode(t, run.wait().err, connect.CodeDeadlineExceeded, "")
	eventually(t, "the process is gone", func() bool { return g.signal(run.pid, pb.Signal_SIGNAL_SIGTERM) != nil })
}

func TestDeadlineKillsAlsoWithoutClient(t *testing.T) {
	g := newGuest(t)
	ctx, cancel := context.WithCancel(timeout(t, time.Second))
	run := g.start(ctx, shell("sleep 1000"))
	cancel()
	time.Sleep(200 * time.Millisecond)
	if err := unix.Kill(int(run.pid), 0); err != nil {
		t.Fatal("the client's leaving killed the process")
	}
	eventually(t, "the process is gone", func() bool { return unix.Kill(int(run.pid), 0) != nil })
}

func TestConnectAndList(t *testing.T) {
	g := newGuest(t)
	message := &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "cat"}}
	tag := "my-tag"
	message.Tag = &tag
	ctx, leave := context.WithCancel(timeout(t, 20*time.Second))
	first := g.start(ctx, message)
	leave() // a client that goes leaves the process alone
	second, third := g.connect(timeout(t, 20*time.Second), byPID(first.pid)), g.connect(timeout(t, 20*time.Second), byTag(tag))
	list, err := g.processes.List(timeout(t, 10*time.Second), connect.NewRequest(&pb.ListRequest{}))
	if err != nil || len(list.Msg.Processes) != 1 || list.Msg.Processes[0].GetTag() != tag || list.Msg.Processes[0].GetConfig().GetCmd() != "cat" {
		t.Fatalf("list: %v, %v", list, err)
	}
	if err := g.send(first.pid, stdin("hello")); err != nil {
		t.Fatal(err)
	}
	if _, err := g.processes.CloseStdin(timeout(t, 10*time.Second), connect.NewRequest(&pb.CloseStdinRequest{Process: byTag(tag)})); err != nil {
		t.Fatal(err)
	}
	for _, run := range []*run{second, third} {
		if got := run.wait(); got.stdout.String() != "hello" || got.end.GetExitCode() != 0 {
			t.Errorf("got %q, %v, %v", got.stdout.String(), got.end, got.err)
		}
	}
	late := g.connect(timeout(t, 10*time.Second), byPID(first.pid)).wait()
	if late.stdout.Len() != 0 || late.end == nil {
		t.Errorf("after the end: %q, %v", late.stdout.String(), late.end)
	}
	stream, err := g.processes.Connect(timeout(t, 10*time.Second), connect.NewRequest(&pb.ConnectRequest{Process: byPID(4_000_000)}))
	if err != nil {
		t.Fatal(err)
	}
	stream.Receive()
	wantCode(t, stream.Err(), connect.CodeNotFound, "process with pid 4000000 not found")
}

func TestKeepalive(t *testing.T) {
	g := newGuest(t)
	got := g.start(timeout(t, 10*time.Second), shell("sleep 1.6"), "Keepalive-Ping-Interval", "1").wait()
	if got.keepalives != 1 || got.end == nil {
		t.Errorf("%d keepalives, %v", got.keepalives, got.err)
	}
}
