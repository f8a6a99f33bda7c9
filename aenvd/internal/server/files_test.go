package server

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func filesURL(path string) string { return "/files?path=" + url.QueryEscape(path) }

func (g *guest) upload(path string, content []byte, want int) string {
	g.t.Helper()
	status, body := g.do("POST", filesURL(path), http.Header{"Content-Type": {"application/octet-stream"}}, bytes.NewReader(content))
	if status != want {
		g.t.Fatalf("upload to %s: %d %s, expected %d", path, status, body, want)
	}
	return body
}

func compressed(t *testing.T, content []byte) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	if _, err := writer.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func TestUploadAndDownloadAreExact(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	for _, size := range []int{0, 1, 511, 64 << 10, 5<<20 + 3} {
		content := make([]byte, size)
		if _, err := rand.Read(content); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "new", "sub dir", "f"+strconv.Itoa(size))
		want := `[{"name":"f` + strconv.Itoa(size) + `","path":"` + path + `","type":"file"}]`
		if got := g.upload(path, content, 200); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		response, got := g.request("GET", filesURL(path), nil, nil)
		if got != string(content) || response.Header.Get("Content-Length") != strconv.Itoa(size) || response.Header.Get("Content-Encoding") != "" {
			t.Errorf("size %d: %d bytes, %v", size, len(got), response.Header)
		}
		response, got = g.request("GET", filesURL(path), http.Header{"Accept-Encoding": {"gzip"}}, nil)
		if size == 0 {
			if response.Header.Get("Content-Length") != "0" || got != "" {
				t.Errorf("empty: %v", response.Header)
			}
			continue
		}
		reader, err := gzip.NewReader(strings.NewReader(got))
		if err != nil {
			t.Fatal(err)
		}
		if plain, err := io.ReadAll(reader); err != nil || !bytes.Equal(plain, content) {
			t.Errorf("gzip of size %d: %d bytes, %v", size, len(plain), err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "new", "sub dir", "f1"))
	if err != nil || info.Mode() != 0o644 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "new")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
}

func TestRanges(t *testing.T) {
	g := newGuest(t)
	path := filepath.Join(t.TempDir(), "f.txt")
	g.upload(path, []byte("0123456789"), 200)
	response, body := g.request("GET", filesURL(path), http.Header{"Range": {"bytes=2-4"}, "Accept-Encoding": {"gzip"}}, nil)
	if response.StatusCode != 206 || body != "234" || response.Header.Get("Content-Range") != "bytes 2-4/10" {
		t.Errorf("%d %q %v", response.StatusCode, body, response.Header)
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/plain") || response.Header.Get("Content-Disposition") != "inline; filename=f.txt" {
		t.Errorf("headers: %v", response.Header)
	}
	if status, _ := g.do("GET", filesURL(path), http.Header{"Range": {"bytes=20-"}}, nil); status != 416 {
		t.Errorf("a range behind the end: %d", status)
	}
	modified := response.Header.Get("Last-Modified")
	if status, _ := g.do("GET", filesURL(path), http.Header{"If-Modified-Since": {modified}}, nil); status != 304 {
		t.Errorf("not modified: %d", status)
	}
}

func TestDownloadErrors(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		path   string
		header http.Header
		status int
		text   string
	}{
		{dir + "/none", nil, 404, "path '" + dir + "/none' does not exist"},
		{dir, nil, 400, "is a directory"},
		{fifo, nil, 400, "is not a regular file"},
		{fifo + "/below", nil, 404, "does not exist"},
		{"/" + strings.Repeat("n", 300), nil, 400, "name too long"},
		{"a\x00b", nil, 400, "NUL"},
		{dir + "/none", http.Header{"Accept-Encoding": {"br, identity;q=0"}}, 406, "neither gzip nor identity"},
	}
	for _, c := range cases {
		status, body := g.do("GET", filesURL(c.path), c.header, nil)
		if status != c.status || !strings.Contains(body, c.text) || !strings.HasPrefix(body, `{"code":`+strconv.Itoa(c.status)+`,"message":`) {
			t.Errorf("%.40q: %d %s", c.path, status, body)
		}
	}
	if status, body := g.do("GET", filesURL(dir)+"&username=nobody-here", nil, nil); status != 401 || !strings.Contains(body, "invalid username: 'nobody-here'") {
		t.Errorf("unknown user: %d %s", status, body)
	}
}

func TestProcFilesAreReadToTheEnd(t *testing.T) {
	g := newGuest(t)
	want, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	for _, encoding := range []string{"", "gzip", "gzip, deflate"} {
		if _, got := g.do("GET", filesURL("/proc/sys/kernel/random/boot_id"), http.Header{"Accept-Encoding": {encoding}}, nil); got != string(want) {
			t.Errorf("%q: got %q", encoding, got)
		}
	}
}

type part struct{ name, filename, content string }

func form(t *testing.T, parts ...part) (http.Header, *bytes.Buffer) {
	t.Helper()
	var body bytes.Buffer
	writer := multipart.NewWriter(&body)
	for _, p := range parts {
		disposition := `form-data; name="` + p.name + `"`
		if p.filename != "" {
			disposition += `; filename="` + p.filename + `"`
		}
		w, err := writer.CreatePart(textproto.MIMEHeader{"Content-Disposition": {disposition}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, p.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return http.Header{"Content-Type": {writer.FormDataContentType()}}, &body
}

func TestMultipart(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	header, body := form(t, part{"file", dir + "/a/one", "1"}, part{"other", "x", "ignored"}, part{"file", dir + "/two", "22"})
	want := `[{"name":"one","path":"` + dir + `/a/one","type":"file"},{"name":"two","path":"` + dir + `/two","type":"file"}]`
	if status, got := g.do("POST", "/files", header, body); status != 200 || got != want {
		t.Fatalf("%d %s", status, got)
	}
	if content, err := os.ReadFile(dir + "/a/one"); err != nil || string(content) != "1" {
		t.Errorf("got %q, %v", content, err)
	}
	header, body = form(t, part{"file", "", "text"}) // as a browser's form.append('file', 'text')
	if status, got := g.do("POST", filesURL(dir+"/three"), header, body); status != 200 || !strings.Contains(got, `"name":"three"`) {
		t.Errorf("%d %s", status, got)
	}
	header, body = form(t, part{"file", dir + "/packed", "text"})
	header.Set("Content-Encoding", "gzip")
	if status, got := g.do("POST", "/files", header, bytes.NewReader(compressed(t, body.Bytes()))); status != 200 {
		t.Errorf("gzip: %d %s", status, got)
	}
}

func TestUploadErrors(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	g.upload(dir+"/file", []byte("old"), 200)
	octets := http.Header{"Content-Type": {"application/octet-stream"}}
	packed := http.Header{"Content-Type": {"application/octet-stream"}, "Content-Encoding": {"gzip"}}
	odd := http.Header{"Content-Type": {"application/octet-stream"}, "Content-Encoding": {"br"}}
	cases := []struct {
		url    string
		header http.Header
		status int
		text   string
	}{
		{filesURL(dir), octets, 400, "is a directory"},
		{filesURL(dir + "/file/below"), octets, 400, "is a file"},
		{"/files", octets, 400, "needs the query parameter path"},
		{filesURL(dir + "/x"), http.Header{"Content-Type": {"application/json"}}, 400, "multipart/form-data"},
		{filesURL(dir + "/x"), nil, 400, "multipart/form-data"},
		{filesURL(dir + "/x"), packed, 400, "not gzip"},
		{filesURL(dir + "/x"), odd, 415, "Content-Encoding 'br'"},
		{filesURL(dir+"/x") + "&username=nobody-here", octets, 401, "invalid username"},
		{filesURL(dir + "/x"), http.Header{"Content-Type": {"multipart/form-data; boundary=b"}}, 400, "multipart body is broken"},
	}
	for _, c := range cases {
		if status, body := g.do("POST", c.url, c.header, strings.NewReader("content")); status != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", c.url, status, body)
		}
	}
	header, body := form(t, part{"file", dir + "/same", "1"}, part{"file", dir + "/./same", "2"})
	if status, got := g.do("POST", "/files", header, body); status != 400 || !strings.Contains(got, "twice") {
		t.Errorf("the same path twice: %d %s", status, got)
	}
	header, body = form(t, part{"file", "a", "1"}, part{"file", "b", "2"})
	if status, got := g.do("POST", filesURL(dir+"/one"), header, body); status != 400 || !strings.Contains(got, "for one file") {
		t.Errorf("two files for one path: %d %s", status, got)
	}
	half := compressed(t, bytes.Repeat([]byte("x"), 1<<20))
	if status, got := g.do("POST", filesURL(dir+"/half"), packed, bytes.NewReader(half[:len(half)/2])); status != 400 || !strings.Contains(got, "ended early") {
		t.Errorf("half a body: %d %s", status, got)
	}
	if _, err := os.Stat(dir + "/half"); !os.IsNotExist(err) {
		t.Errorf("half a file stays: %v", err)
	}
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		t.Skipf("skipped: mounting a small file system needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	g := newGuest(t)
	big := bytes.Repeat([]byte("x"), 4<<20)
	g.upload(dir+"/kept", []byte("old"), 200)
	if body := g.upload(dir+"/kept", big, 507); !strings.HasPrefix(body, `{"code":507,`) {
		t.Errorf("got %s", body)
	}
	if content, err := os.ReadFile(dir + "/kept"); err != nil || string(content) != "old" {
		t.Errorf("what could be known beforehand cost the old content: %q, %v", content, err)
	}
	header, body := form(t, part{"file", dir + "/unknown-size", string(big)})
	if status, got := g.do("POST", "/files", header, body); status != 507 {
		t.Errorf("multipart: %d %s", status, got)
	}
	if _, err := os.Stat(dir + "/unknown-size"); !os.IsNotExist(err) {
		t.Errorf("half a file stays: %v", err)
	}
}

func TestCompose(t *testing.T) {
	g := newGuest(t)
	dir := t.TempDir()
	g.upload(dir+"/1", []byte("one "), 200)
	g.upload(dir+"/2", []byte("two"), 200)
	post := func(body string) (int, string) { return g.do("POST", "/files/compose", nil, strings.NewReader(body)) }
	body := `{"source_paths":["` + dir + `/1","` + dir + `/2"],"destination":"` + dir + `/new/all"}`
	if status, got := post(body); status != 200 || got != `{"name":"all","path":"`+dir+`/new/all","type":"file"}` {
		t.Fatalf("%d %s", status, got)
	}
	if content, err := os.ReadFile(dir + "/new/all"); err != nil || string(content) != "one two" {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := os.Stat(dir + "/1"); !os.IsNotExist(err) {
		t.Errorf("a source stays: %v", err)
	}
	bad := map[string]int{body: 404, `{`: 400, `{"source_paths":[],"destination":"x"}`: 400, `{"source_paths":["/tmp"],"destination":"` + dir + `/x"}`: 400,
		`{"source_paths":["` + dir + `/new/all"],"destination":"` + dir + `/new/all"}`: 400}
	for body, want := range bad {
		if status, got := post(body); status != want {
			t.Errorf("%s: %d %s", body, status, got)
		}
	}
	if left, err := filepath.Glob(dir + "/.compose-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSignedURL(t *testing.T) {
	g := newGuest(t)
	g.init(map[string]any{"accessToken": "token"}, "", http.StatusNoContent)
	if status, body := g.do("GET", "/files?path=x", nil, nil); status != 401 || body != `{"code":401,"message":"missing signature query parameter"}` {
		t.Errorf("%d %s", status, body)
	}
}
