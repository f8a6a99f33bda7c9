package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// killSession kills every process of a terminal session: an interactive shell gives each of its jobs a group of its own.
func killSession(session int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, of, ok := parseStat(stat)
		if ok && of == session {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// parseStat takes pid and session from proc(5)'s stat: `pid (comm) state ppid pgrp session …`; comm may contain
// anything, so the fields are counted from its last parenthesis.
func parseStat(stat []byte) (pid, session int, ok bool) {
	before, _, found := bytes.Cut(stat, []byte(" ("))
	end := bytes.LastIndexByte(stat, ')')
	if !found || end < 0 {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[end+1:])
	if len(fields) < 4 {
		return 0, 0, false
	}
	pid, pidErr := strconv.Atoi(string(before))
	session, sessionErr := strconv.Atoi(string(fields[3]))
	return pid, session, pidErr == nil && sessionErr == nil
}
