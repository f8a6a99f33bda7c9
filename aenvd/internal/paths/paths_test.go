package paths

import (
	"path/filepath"
	"testing"
)

func TestResolve(t *testing.T) {
	cases := []struct{ path, workdir, want string }{
		{"/etc/../tmp/x", "", "/tmp/x"},
		{"a/b", "/work", "/home/user/a/b"},
		{"../x", "", "/home/x"},
		{"~", "/work", "/home/user"},
		{"~/a", "", "/home/user/a"},
		{"", "/work", "/work"},
		{"", "", "/home/user"},
		{"", "~/sub", "/home/user/sub"},
	}
	for _, c := range cases {
		got, err := Resolve(c.path, "/home/user", c.workdir)
		if err != nil || got != c.want {
			t.Errorf("%q in %q: got %q, %v; want %q", c.path, c.workdir, got, err, c.want)
		}
	}
	for _, path := range []string{"~other/x", "~other", "a\x00b"} {
		if got, err := Resolve(path, "/home/user", ""); err == nil {
			t.Errorf("%q became %q", path, got)
		}
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("~/../..//x", "/w")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, path, workdir string) {
		got, err := Resolve(path, "/home/user", workdir)
		if err == nil && (!filepath.IsAbs(got) || filepath.Clean(got) != got) {
			t.Errorf("%q in %q became %q", path, workdir, got)
		}
	})
}
