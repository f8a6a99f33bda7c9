package server

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "aenvd/internal/gen/process"
)

const wantUnauthorized = `{"code":401,"message":"unauthorized access, please provide a valid access token or method signing if supported"}`

func TestAccessToken(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"accessToken": "secret"}, "", http.StatusNoContent)
	for _, path := range []string{"/metrics", "/envs"} {
		for _, token := range []string{"", "wrong"} {
			if status, body := g.do("GET", path, http.Header{tokenHeader: {token}}, nil); status != 401 || body != wantUnauthorized {
				t.Errorf("%s with %q: %d %s", path, token, status, body)
			}
		}
		if status, body := g.do("GET", path, http.Header{tokenHeader: {"secret"}}, nil); status != 200 {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := g.do("GET", "/health", nil, nil); status != 204 {
		t.Errorf("health: %d", status)
	}
	request := connect.NewRequest(&pb.ListRequest{})
	_, err := g.processes.List(timeout(t, 10*time.Second), request)
	wantCode(t, err, connect.CodeUnauthenticated, "")
	request.Header().Set(tokenHeader, "secret")
	if _, err := g.processes.List(timeout(t, 10*time.Second), request); err != nil {
		t.Error(err)
	}
	// Without an init key, who wants to change the token must have the old one.
	g.init(map[string]any{"accessToken": "stolen"}, "", http.StatusUnauthorized)
}

func TestInitKey(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"initKey": "k1", "accessToken": "a"}, "", http.StatusNoContent)
	g.init(map[string]any{"accessToken": "b"}, "", http.StatusUnauthorized)
	g.init(map[string]any{"accessToken": "b"}, "k2", http.StatusUnauthorized)
	g.init(map[string]any{"accessToken": "b", "initKey": "k2", "futureField": 1}, "k1", http.StatusNoContent)
	g.init(nil, "k1", http.StatusUnauthorized)
	if status, _ := g.do("GET", "/envs", http.Header{tokenHeader: {"b"}}, nil); status != 200 {
		t.Errorf("the second token does not work: %d", status)
	}
	if status, _ := g.do("POST", "/init", http.Header{initKeyHeader: {"k2"}}, nil); status != 204 {
		t.Errorf("an empty body: %d", status)
	}
	for body, want := range map[string]int{"{": 400, `{"envVars":[]}`: 400, strings.Repeat(" ", maxInitBody+1): 413} {
		if status, _ := g.do("POST", "/init", http.Header{initKeyHeader: {"k2"}}, strings.NewReader(body)); status != want {
			t.Errorf("%.10s: %d, want %d", body, status, want)
		}
	}
}

func TestHostOnly(t *testing.T) {
	g := newGuest(t)
	if status, _ := g.do("POST", "/sync", http.Header{initKeyHeader: {""}}, nil); status != 401 {
		t.Errorf("before there is a key: %d", status)
	}
	g.init(map[string]any{"initKey": "k"}, "", http.StatusNoContent)
	for key, want := range map[string]int{"": 401, "x": 401, "k": 204} {
		if status, _ := g.do("POST", "/sync", http.Header{initKeyHeader: {key}}, nil); status != want {
			t.Errorf("key %q: %d, want %d", key, status, want)
		}
	}
}

func TestDropEndsStreamsAndKeepsProcesses(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"initKey": "k"}, "", http.StatusNoContent)
	first := g.start(timeout(t, 20*time.Second), shell("sleep 1000"))
	idle, err := net.Dial("tcp", g.address)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	g.use(cleartext())
	overHTTP2 := g.connect(timeout(t, 20*time.Second), byPID(first.pid))
	g.init(map[string]any{"dropStreams": true}, "k", http.StatusNoContent)
	for _, stream := range []*run{first, overHTTP2} {
		if got := stream.wait(); got.end != nil || got.err == nil {
			t.Errorf("the stream ended with %v, %v", got.end, got.err)
		}
	}
	if err := idle.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := idle.Read(make([]byte, 1)); !errors.Is(err, unix.ECONNRESET) {
		t.Errorf("an idle connection ended with %v", err)
	}
	g.use(&http.Transport{})
	again := g.connect(timeout(t, 20*time.Second), byPID(first.pid))
	if err := g.signal(first.pid, pb.Signal_SIGNAL_SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := again.wait(); got.end.GetStatus() != "signal: killed" {
		t.Errorf("got %v, %v", got.end, got.err)
	}
}

func TestDropEndsAnUpload(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"initKey": "k"}, "", http.StatusNoContent)
	path := t.TempDir() + "/file"
	reader, writer := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		response, err := http.Post(g.url+"/files?path="+path, "application/octet-stream", reader)
		if err == nil {
			response.Body.Close()
			err = errors.New(response.Status)
		}
		failed <- err
	}()
	if _, err := writer.Write([]byte("begin")); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	g.init(map[string]any{"dropStreams": true}, "k", http.StatusNoContent)
	if took := time.Since(started); took > dropSlack {
		t.Errorf("drop took %s", took)
	}
	writer.Close()
	if err := <-failed; err == nil {
		t.Error("the upload succeeded")
	}
}

const dropSlack = 500 * time.Millisecond

func TestOrigins(t *testing.T) {
	g := newGuest(t)
	response, _ := g.request("OPTIONS", "/process.Process/Start", http.Header{
		"Origin": {"https://example.com"}, "Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"x-access-token, authorization"},
	}, nil)
	if response.StatusCode != 204 || response.Header.Get("Access-Control-Allow-Origin") != "*" || response.Header.Get("Access-Control-Allow-Headers") != "x-access-token, authorization" {
		t.Errorf("preflight: %d %v", response.StatusCode, response.Header)
	}
	response, _ = g.request("GET", "/health", http.Header{"Origin": {"https://example.com"}}, nil)
	if response.StatusCode != 204 || response.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("request: %d %v", response.StatusCode, response.Header)
	}
}

func TestMetricsAndEnvs(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"envVars": map[string]string{"A": "b"}}, "", http.StatusNoContent)
	if _, body := g.do("GET", "/envs", nil, nil); body != `{"A":"b"}` {
		t.Errorf("envs: %s", body)
	}
	_, body := g.do("GET", "/metrics", nil, nil)
	var values map[string]float64
	if err := json.Unmarshal([]byte(body), &values); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ts", "cpu_count", "mem_total", "mem_used", "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"} {
		if values[name] <= 0 {
			t.Errorf("%s is %v in %s", name, values[name], body)
		}
	}
}

func TestUnknownPath(t *testing.T) {
	g := newGuest(t)
	for _, path := range []string{"/", "/freeze", "/process.Process/Nothing"} {
		if status, _ := g.do("POST", path, nil, nil); status != 404 {
			t.Errorf("%s: %d", path, status)
		}
	}
}
