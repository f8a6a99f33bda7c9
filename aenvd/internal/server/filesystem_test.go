package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"

	pb "aenvd/internal/gen/filesystem"
)

func (g *guest) stat(path string) (*pb.EntryInfo, error) {
	response, err := g.files.Stat(context.Background(), connect.NewRequest(&pb.StatRequest{Path: path}))
	if err != nil {
		return nil, err
	}
	return response.Msg.Entry, nil
}

func TestStat(t *testing.T) {
	g := newGuest(t)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	g.upload(dir+"/file", []byte("12345"), 200)
	for link, target := range map[string]string{"link": "file", "dirlink": ".", "dangling": "nowhere", "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	file, err := g.stat(dir + "/../" + filepath.Base(dir) + "/file")
	if err != nil {
		t.Fatal(err)
	}
	if file.Name != "file" || file.Path != dir+"/file" || file.Type != pb.FileType_FILE_TYPE_FILE || file.Size != 5 || file.Mode != 0o644 || file.Permissions != "-rw-r--r--" || file.SymlinkTarget != nil {
		t.Errorf("file: %v", file)
	}
	if file.Owner == "" || file.Group == "" || time.Since(file.ModifiedTime.AsTime()) > time.Minute {
		t.Errorf("file: %v", file)
	}
	cases := []struct {
		name, target string
		kind         pb.FileType
	}{
		{"link", dir + "/file", pb.FileType_FILE_TYPE_FILE},
		{"dirlink", dir, pb.FileType_FILE_TYPE_DIRECTORY},
		{"dangling", "nowhere", pb.FileType_FILE_TYPE_SYMLINK},
		{"loop", "loop", pb.FileType_FILE_TYPE_SYMLINK},
	}
	for _, c := range cases {
		entry, err := g.stat(dir + "/" + c.name)
		if err != nil || entry.Name != c.name || entry.Type != c.kind || entry.GetSymlinkTarget() != c.target || entry.Permissions[0] != 'L' {
			t.Errorf("%s: %v, %v", c.name, entry, err)
		}
	}
	_, err = g.stat(dir + "/none")
	wantCode(t, err, connect.CodeNotFound, "path '"+dir+"/none' does not exist")
	_, err = g.stat(dir + "/file/below")
	wantCode(t, err, connect.CodeInvalidArgument, "")
}

func TestMakeDirMoveRemove(t *testing.T) {
	g := newGuest(t)
	ctx := timeout(t, 10*time.Second)
	dir := t.TempDir()
	makeDir := func(path string) error {
		_, err := g.files.MakeDir(ctx, connect.NewRequest(&pb.MakeDirRequest{Path: path}))
		return err
	}
	move := func(from, to string) error {
		_, err := g.files.Move(ctx, connect.NewRequest(&pb.MoveRequest{Source: from, Destination: to}))
		return err
	}
	remove := func(path string) error {
		_, err := g.files.Remove(ctx, connect.NewRequest(&pb.RemoveRequest{Path: path}))
		return err
	}
	if err := makeDir(dir + "/a/b"); err != nil {
		t.Fatal(err)
	}
	wantCode(t, makeDir(dir+"/a/b"), connect.CodeAlreadyExists, "already exists")
	g.upload(dir+"/file", []byte("x"), 200)
	wantCode(t, makeDir(dir+"/file"), connect.CodeInvalidArgument, "not a directory")
	wantCode(t, makeDir(dir+"/file/x"), connect.CodeInvalidArgument, "")
	if err := move(dir+"/file", dir+"/new/place/moved"); err != nil {
		t.Fatal(err)
	}
	if _, err := g.stat(dir + "/new/place/moved"); err != nil {
		t.Error(err)
	}
	wantCode(t, move(dir+"/file", dir+"/x"), connect.CodeNotFound, "")
	wantCode(t, move(dir+"/new/place/moved", dir+"/a"), connect.CodeFailedPrecondition, "")
	for range 2 { // absent is fine
		if err := remove(dir + "/a"); err != nil {
			t.Error(err)
		}
	}
	wantCode(t, remove("/"), connect.CodeInvalidArgument, "")
}

func TestListDir(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	for _, path := range []string{"b/c/d", "b/a", "z", "a"} {
		g.upload(filepath.Join(dir, path), nil, 200)
	}
	if err := os.Symlink("b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("loop", filepath.Join(dir, "loop")); err != nil {
		t.Fatal(err)
	}
	list := func(path string, depth uint32) (names []string, err error) {
		response, err := g.files.ListDir(context.Background(), connect.NewRequest(&pb.ListDirRequest{Path: path, Depth: depth}))
		if err != nil {
			return nil, err
		}
		for _, entry := range response.Msg.Entries {
			names = append(names, strings.TrimPrefix(entry.Path, dir+"/"))
		}
		return names, nil
	}
	cases := []struct {
		path  string
		depth uint32
		want  []string
	}{
		{dir, 0, []string{"a", "b", "link", "loop", "z"}},
		{dir, 1, []string{"a", "b", "link", "loop", "z"}},
		{dir, 2, []string{"a", "b", "b/a", "b/c", "link", "loop", "z"}},
		{dir, 1 << 31, []string{"a", "b", "b/a", "b/c", "b/c/d", "link", "loop", "z"}},
		{dir + "/link", 1, []string{"link/a", "link/c"}},
	}
	for _, c := range cases {
		if got, err := list(c.path, c.depth); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s, depth %d: %v, %v", c.path, c.depth, got, err)
		}
	}
	_, err := list(dir+"/none", 1)
	wantCode(t, err, connect.CodeNotFound, "does not exist")
	_, err = list(dir+"/a", 1)
	wantCode(t, err, connect.CodeInvalidArgument, "is not a directory")
	_, err = list(dir+"/loop", 1)
	wantCode(t, err, connect.CodeFailedPrecondition, "")
}

func TestMetadata(t *testing.T) {
	g := newGuest(t)
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, "user.e2b.old", []byte("x"), 0); err != nil {
		t.Skipf("skipped: the file system of %s has no user attributes: %v", path, err)
	}
	header := http.Header{"Content-Type": {"application/octet-stream"}, "X-Metadata-Author": {"Me"}}
	if status, body := g.do("POST", filesURL(path), header, strings.NewReader("x")); status != 200 || !strings.Contains(body, `"metadata":{"author":"Me"}`) {
		t.Fatalf("%d %s", status, body)
	}
	if entry, err := g.stat(path); err != nil || len(entry.Metadata) != 1 || entry.Metadata["author"] != "Me" {
		t.Errorf("%v, %v", entry, err)
	}
	g.upload(path, []byte("y"), 200)
	if entry, err := g.stat(path); err != nil || entry.Metadata != nil {
		t.Errorf("after an upload without: %v, %v", entry, err)
	}
}

// summary is what a watch says, without repeated writes and changes of mode, whose number is up to the kernel.
func summary(event *pb.FilesystemEvent) string {
	return strings.ToLower(strings.TrimPrefix(event.GetType().String(), "EVENT_TYPE_")) + " " + event.GetName()
}

func TestWatchDir(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	g.upload(dir+"/sub/old", nil, 200)
	stream, err := g.files.WatchDir(timeout(t, 10*time.Second), connect.NewRequest(&pb.WatchDirRequest{Path: dir, Recursive: true, IncludeEntry: true}))
	if err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() || stream.Msg().GetStart() == nil {
		t.Fatalf("no start: %v", stream.Err())
	}
	expect := func(want string) *pb.EntryInfo {
		t.Helper()
		var seen []string
		for stream.Receive() {
			event := stream.Msg().GetFilesystem()
			if summary(event) == want {
				return event.GetEntry()
			}
			seen = append(seen, summary(event))
		}
		t.Fatalf("no %q among %v: %v", want, seen, stream.Err())
		return nil
	}
	g.upload(dir+"/file", []byte("123"), 200)
	expect("create file")
	if entry := expect("write file"); entry.GetPath() != dir+"/file" {
		t.Errorf("entry: %v", entry)
	}
	if err := os.Rename(dir+"/sub/old", dir+"/sub/new"); err != nil {
		t.Fatal(err)
	}
	if entry := expect("rename sub/old"); entry != nil {
		t.Errorf("a name that is gone has an entry: %v", entry)
	}
	expect("create sub/new")
	g.upload(dir+"/x/y/z", nil, 200)
	expect("create x")
	expect("create x/y")
	expect("create x/y/z")
	if err := os.Chmod(dir+"/file", 0o600); err != nil {
		t.Fatal(err)
	}
	if entry := expect("chmod file"); entry.GetMode() != 0o600 {
		t.Errorf("entry: %v", entry)
	}
	if err := os.Remove(dir + "/file"); err != nil {
		t.Fatal(err)
	}
	expect("remove file")
}

func TestWatchErrors(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	g.upload(dir+"/file", nil, 200)
	for path, code := range map[string]connect.Code{dir + "/none": connect.CodeNotFound, dir + "/file": connect.CodeInvalidArgument} {
		_, err := g.files.CreateWatcher(context.Background(), connect.NewRequest(&pb.CreateWatcherRequest{Path: path}))
		wantCode(t, err, code, path)
	}
}

func TestPolledWatcher(t *testing.T) {
	g := newGuest(t)
	ctx := timeout(t, 20*time.Second)
	dir := t.TempDir()
	created, err := g.files.CreateWatcher(ctx, connect.NewRequest(&pb.CreateWatcherRequest{Path: dir}))
	if err != nil {
		t.Fatal(err)
	}
	id := created.Msg.WatcherId
	g.upload(dir+"/file", []byte("x"), 200)
	var got []string
	eventually(t, "create and write are reported", func() bool {
		response, err := g.files.GetWatcherEvents(ctx, connect.NewRequest(&pb.GetWatcherEventsRequest{WatcherId: id}))
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range response.Msg.Events {
			got = append(got, summary(event))
		}
		return slices.Contains(got, "create file") && slices.Contains(got, "write file")
	})
	if _, err := g.files.RemoveWatcher(ctx, connect.NewRequest(&pb.RemoveWatcherRequest{WatcherId: id})); err != nil {
		t.Fatal(err)
	}
	_, err = g.files.GetWatcherEvents(ctx, connect.NewRequest(&pb.GetWatcherEventsRequest{WatcherId: id}))
	wantCode(t, err, connect.CodeNotFound, id)
}
