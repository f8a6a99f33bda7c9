package reaper

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func start(t *testing.T, r *Reaper, script string) <-chan syscall.WaitStatus {
	t.Helper()
	_, ended, err := r.Start("/bin/sh", []string{"sh", "-c", script}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	return ended
}

func status(t *testing.T, ended <-chan syscall.WaitStatus) syscall.WaitStatus {
	t.Helper()
	select {
	case status := <-ended:
		return status
	case <-time.After(10 * time.Second):
		t.Fatal("the end was not reported")
		return 0
	}
}

func TestStatuses(t *testing.T) {
	r := New(false)
	if got := status(t, start(t, r, "exit 7")); !got.Exited() || got.ExitStatus() != 7 {
		t.Errorf("got %v", got)
	}
	if got := status(t, start(t, r, "kill -9 $$")); !got.Signaled() || got.Signal() != syscall.SIGKILL {
		t.Errorf("got %v", got)
	}
	if _, _, err := r.Start("/no/such/program", nil, &os.ProcAttr{}); err == nil {
		t.Error("a program that is not there was started")
	}
}

const asReaper = "AENVD_TEST_AS_REAPER"

// An adopting reaper waits for all children of its process, so it gets a process of its own. With the attribute
// "subreaper", orphans come to it as they come to PID 1.
func TestAdoption(t *testing.T) {
	if os.Getenv(asReaper) != "" {
		adopt(t)
		return
	}
	command := exec.Command(os.Args[0], "-test.run=^TestAdoption$", "-test.v")
	command.Env = append(os.Environ(), asReaper+"=1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

func adopt(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	r := New(true)
	const count = 100
	ends := make([]<-chan syscall.WaitStatus, 0, count)
	for range count {
		ends = append(ends, start(t, r, "(sleep 0.05; exit 9) & exit 3")) // leaves an orphan
		ends = append(ends, start(t, r, "exit 3"))
	}
	for _, ended := range ends {
		if got := status(t, ended); !got.Exited() || got.ExitStatus() != 3 {
			t.Errorf("got %v", got)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for children(t) != "" {
		if time.Now().After(deadline) {
			t.Fatalf("left: %s", children(t))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func children(t *testing.T) string {
	t.Helper()
	output := ""
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		content, err := os.ReadFile("/proc/self/task/" + task.Name() + "/children")
		if err == nil {
			output += string(content)
		}
	}
	return strings.TrimSpace(output)
}
