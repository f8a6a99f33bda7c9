package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/user"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/http2"

	"aenvd/internal/gen/filesystem/filesystempbconnect"
	pb "aenvd/internal/gen/process"
	"aenvd/internal/gen/process/processpbconnect"
)

// guest is a server as a plain process, and what tests do with it.
type guest struct {
	t         *testing.T
	url       string
	address   string
	processes processpbconnect.ProcessClient
	files     filesystempbconnect.FilesystemClient
}

func newGuest(t *testing.T) *guest {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := New(Options{Version: "0.0.0-test"})
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	g := &guest{t: t, address: listener.Addr().String(), url: "http://" + listener.Addr().String()}
	g.use(http.DefaultTransport)
	current, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	g.init(map[string]any{"defaultUser": current.Username}, "", http.StatusNoContent)
	return g
}

// use makes the clients go through transport.
func (g *guest) use(transport http.RoundTripper, options ...connect.ClientOption) {
	client := &http.Client{Transport: transport}
	g.processes = processpbconnect.NewProcessClient(client, g.url, options...)
	g.files = filesystempbconnect.NewFilesystemClient(client, g.url, options...)
}

// cleartext speaks HTTP/2 without TLS.
func cleartext() http.RoundTripper {
	return &http2.Transport{AllowHTTP: true, DialTLSContext: func(ctx context.Context, network, address string, _ *tls.Config) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
}

func (g *guest) init(body map[string]any, key string, want int) {
	g.t.Helper()
	content, err := json.Marshal(body)
	if err != nil {
		g.t.Fatal(err)
	}
	header := http.Header{}
	if key != "" {
		header.Set(initKeyHeader, key)
	}
	if status, answer := g.do("POST", "/init", header, bytes.NewReader(content)); status != want {
		g.t.Fatalf("init: %d %s, expected %d", status, answer, want)
	}
}

// do makes a request and gives status and body.
func (g *guest) do(method, path string, header http.Header, body io.Reader) (int, string) {
	g.t.Helper()
	response, content := g.request(method, path, header, body)
	return response.StatusCode, content
}

func (g *guest) request(method, path string, header http.Header, body io.Reader) (*http.Response, string) {
	g.t.Helper()
	request, err := http.NewRequest(method, g.url+path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	if header != nil {
		request.Header = header
	}
	// The test sees what is on the wire.
	response, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return response, string(content)
}

// run is one stream of events.
type run struct {
	g       *guest
	pid     uint32
	receive func() bool
	event   func() *pb.ProcessEvent
	err     func() error
}

func shell(script string) *pb.StartRequest {
	off := false
	return &pb.StartRequest{Process: &pb.ProcessConfig{Cmd: "/bin/sh", Args: []string{"-c", script}}, Stdin: &off}
}

// start starts a process and waits for its first event.
func (g *guest) start(ctx context.Context, message *pb.StartRequest, headers ...string) *run {
	g.t.Helper()
	request := connect.NewRequest(message)
	for i := 0; i < len(headers); i += 2 {
		request.Header().Set(headers[i], headers[i+1])
	}
	stream, err := g.processes.Start(ctx, request)
	if err != nil {
		g.t.Fatal(err)
	}
	r := &run{g: g, receive: stream.Receive, event: func() *pb.ProcessEvent { return stream.Msg().GetEvent() }, err: stream.Err}
	r.first()
	return r
}

func (g *guest) connect(ctx context.Context, selector *pb.ProcessSelector) *run {
	g.t.Helper()
	stream, err := g.processes.Connect(ctx, connect.NewRequest(&pb.ConnectRequest{Process: selector}))
	if err != nil {
		g.t.Fatal(err)
	}
	r := &run{g: g, receive: stream.Receive, event: func() *pb.ProcessEvent { return stream.Msg().GetEvent() }, err: stream.Err}
	r.first()
	return r
}

func (r *run) first() {
	r.g.t.Helper()
	if !r.receive() || r.event().GetStart() == nil {
		r.g.t.Fatalf("no start event: %v", r.err())
	}
	r.pid = r.event().GetStart().GetPid()
}

// result is everything that a process gave.
type result struct {
	stdout, stderr, pty bytes.Buffer
	keepalives          int
	end                 *pb.ProcessEvent_EndEvent
	err                 error
}

func (r *run) wait() *result {
	result := &result{}
	for r.receive() {
		event := r.event()
		result.stdout.Write(event.GetData().GetStdout())
		result.stderr.Write(event.GetData().GetStderr())
		result.pty.Write(event.GetData().GetPty())
		if event.GetKeepalive() != nil {
			result.keepalives++
		}
		if event.GetEnd() != nil {
			result.end = event.GetEnd()
		}
	}
	result.err = r.err()
	return result
}

// readUntil collects terminal output until it contains text.
func (r *run) readUntil(text string) string {
	r.g.t.Helper()
	var output bytes.Buffer
	for r.receive() {
		data := r.event().GetData()
		output.Write(data.GetPty())
		output.Write(data.GetStdout())
		if bytes.Contains(output.Bytes(), []byte(text)) {
			return output.String()
		}
	}
	r.g.t.Fatalf("%q did not come; %q did, then %v", text, output.String(), r.err())
	return ""
}

func byPID(pid uint32) *pb.ProcessSelector {
	return &pb.ProcessSelector{Selector: &pb.ProcessSelector_Pid{Pid: pid}}
}

func byTag(tag string) *pb.ProcessSelector {
	return &pb.ProcessSelector{Selector: &pb.ProcessSelector_Tag{Tag: tag}}
}

func (g *guest) signal(pid uint32, signal pb.Signal) error {
	_, err := g.processes.SendSignal(context.Background(), connect.NewRequest(&pb.SendSignalRequest{Process: byPID(pid), Signal: signal}))
	return err
}

func (g *guest) send(pid uint32, input *pb.ProcessInput) error {
	_, err := g.processes.SendInput(context.Background(), connect.NewRequest(&pb.SendInputRequest{Process: byPID(pid), Input: input}))
	return err
}

func stdin(text string) *pb.ProcessInput {
	return &pb.ProcessInput{Input: &pb.ProcessInput_Stdin{Stdin: []byte(text)}}
}

func keys(text string) *pb.ProcessInput {
	return &pb.ProcessInput{Input: &pb.ProcessInput_Pty{Pty: []byte(text)}}
}

// eventually waits for a condition that other processes bring about.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 5 s: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func timeout(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func wantCode(t *testing.T, err error, code connect.Code, message string) {
	t.Helper()
	if connect.CodeOf(err) != code || (message != "" && !bytes.Contains([]byte(err.Error()), []byte(message))) {
		t.Errorf("got %v, want %s with %q", err, code, message)
	}
}
