package server

import (
	"context"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	pb "aenvd/internal/gen/filesystem"
)

// asNobody gives a guest whose default user is another one than ours.
func asNobody(t *testing.T) *guest {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("skipped: acting as another user needs root")
	}
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil || !strings.Contains(string(passwd), "\nnobody:") {
		t.Skip("skipped: there is no user nobody here")
	}
	g := newGuest(t)
	g.init(map[string]any{"defaultUser": "nobody"}, "", http.StatusNoContent)
	return g
}

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"))
}

func TestProcessesRunAsTheUser(t *testing.T) {
	g := asNobody(t)
	got := g.start(timeout(t, 10*time.Second), shell("id -un; echo $USER $LOGNAME; cat /root/x; touch /root/x")).wait()
	if !strings.HasPrefix(got.stdout.String(), "nobody\nnobody nobody\n") || got.end.GetExitCode() == 0 {
		t.Errorf("got %q, %v", got.stdout.String(), got.end)
	}
	got = g.start(timeout(t, 10*time.Second), shell("id -un; echo $HOME; id -G"), "Authorization", basic("root")).wait()
	if !strings.HasPrefix(got.stdout.String(), "root\n/root\n0") {
		t.Errorf("got %q", got.stdout.String())
	}
	g.init(map[string]any{"defaultUser": "4242:4343"}, "", http.StatusNoContent) // as an image's configuration has it
	got = g.start(timeout(t, 10*time.Second), shell("id -u; id -g; id -G")).wait()
	if got.stdout.String() != "4242\n4343\n4343\n" {
		t.Errorf("numbers: %q", got.stdout.String())
	}
}

func TestATerminalBelongsToTheUser(t *testing.T) {
	g := asNobody(t)
	got := g.start(timeout(t, 10*time.Second), terminal("/bin/sh", "-c", `stat -c %U "$(tty)"; echo ok > "$(tty)"`)).wait()
	if got.pty.String() != "nobody\r\nok\r\n" {
		t.Errorf("got %q", got.pty.String())
	}
}

func TestNewFilesBelongToTheUser(t *testing.T) {
	g := asNobody(t)
	dir := t.TempDir()
	g.upload(dir+"/a/b/file", []byte("x"), 200)
	if _, err := g.files.MakeDir(context.Background(), connect.NewRequest(&pb.MakeDirRequest{Path: dir + "/made/dir"})); err != nil {
		t.Fatal(err)
	}
	nobody, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	_, entry, _ := strings.Cut(string(nobody), "\nnobody:")
	uid := strings.Split(entry, ":")[1]
	for _, path := range []string{"a", "a/b", "a/b/file", "made", "made/dir"} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		if owner := info.Sys().(*syscall.Stat_t).Uid; uid != strconv.FormatUint(uint64(owner), 10) {
			t.Errorf("%s belongs to %d", path, owner)
		}
	}
	if status, _ := g.do("POST", filesURL(dir+"/rootfile")+"&username=root", http.Header{"Content-Type": {"application/octet-stream"}}, strings.NewReader("x")); status != 200 {
		t.Fatalf("as root: %d", status)
	}
	if entry, err := g.stat(dir + "/rootfile"); err != nil || entry.Owner != "root" || entry.Group != "root" {
		t.Errorf("%v, %v", entry, err)
	}
}
