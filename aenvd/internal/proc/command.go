package proc

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aenvd/internal/users"
)

// defaultPath is PATH where neither the image nor the request sets one.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// startError is a command that can't be started; it ends with the code that a shell would give.
type startError struct {
	code    int32
	message string
}

func (e startError) Error() string { return e.message }

// environment merges variables; later maps win.
func environment(user users.User, layers ...map[string]string) map[string]string {
	env := map[string]string{"PATH": defaultPath, "HOME": user.Home, "USER": user.Name, "LOGNAME": user.Name}
	for _, layer := range layers {
		maps.Copy(env, layer)
	}
	return env
}

func environmentList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for _, key := range slices.Sorted(maps.Keys(env)) {
		list = append(list, key+"="+env[key])
	}
	return list
}

// checkStrings refuses what the kernel can't take as an argument or a variable.
func checkStrings(cmd string, args []string, env map[string]string) error {
	if cmd == "" {
		return fmt.Errorf("process.cmd is empty")
	}
	for _, text := range append([]string{cmd}, args...) {
		if strings.ContainsRune(text, 0) {
			return fmt.Errorf("an argument contains a NUL byte")
		}
	}
	for key, value := range env {
		if key == "" || strings.ContainsAny(key, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("environment variable '%s': a name may not be empty or contain '=', and neither part a NUL byte", key)
		}
	}
	return nil
}

// lookPath finds the program as execvp(3) does: in PATH when the name has no slash, else relative to cwd.
func lookPath(cmd, path, cwd string) (string, error) {
	if strings.Contains(cmd, "/") {
		if !filepath.IsAbs(cmd) {
			cmd = filepath.Join(cwd, cmd)
		}
		return cmd, checkProgram(cmd)
	}
	var refused error
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		candidate := filepath.Join(dir, cmd)
		err := checkProgram(candidate)
		if err == nil {
			return candidate, nil
		}
		if failure, ok := err.(startError); ok && failure.code == exitNotExecutable && refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", startError{exitNotFound, fmt.Sprintf("%s: command not found", cmd)}
}

func checkProgram(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil && os.IsPermission(err):
		return startError{exitNotExecutable, fmt.Sprintf("%s: permission denied", path)}
	case err != nil:
		return startError{exitNotFound, fmt.Sprintf("%s: no such file or directory", path)}
	case info.IsDir():
		return startError{exitNotExecutable, fmt.Sprintf("%s: is a directory", path)}
	case info.Mode()&0o111 == 0:
		return startError{exitNotExecutable, fmt.Sprintf("%s: permission denied", path)}
	}
	return nil
}

// describeStart words the failure of the fork or the exec itself.
func describeStart(cmd string, err error) startError {
	code := int32(exitNotExecutable)
	if os.IsNotExist(err) {
		code = exitNotFound // the interpreter of a script, or the loader of a program, is missing
	}
	if pathError, ok := err.(*fs.PathError); ok {
		err = pathError.Err
	}
	return startError{code, fmt.Sprintf("%s: %v", cmd, err)}
}
