// Package paths turns what a request calls a path into an absolute one.
package paths

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Resolve makes path absolute and clean. `~`, `~/…` and relative paths start at home; an empty path is the default work
// directory, or home without one. Paths of other users (`~name`) are refused.
func Resolve(path, home, workdir string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("path contains a NUL byte")
	}
	if path == "" {
		path = workdir
	}
	switch {
	case path == "" || path == "~":
		return filepath.Clean(home), nil
	case strings.HasPrefix(path, "~/"):
		return filepath.Join(home, path[2:]), nil
	case strings.HasPrefix(path, "~"):
		return "", fmt.Errorf("path '%s': the home of another user has no short form here; give the absolute path", path)
	case filepath.IsAbs(path):
		return filepath.Clean(path), nil
	}
	return filepath.Join(home, path), nil
}
