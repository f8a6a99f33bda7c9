package boot

import (
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	newRoot = "/newroot"
	// The virtio devices show up some milliseconds after their modules; a disk that is missing for this long is not there.
	rootDeviceTimeout = 10 * time.Second
)

type mount struct {
	source, target, fsType string
	flags                  uintptr
	data                   string
	// Mode of the mount point, should it have to be made.
	mode os.FileMode
}

// earlyMounts are needed to find the root device; they move along to the image's root.
var earlyMounts = []mount{
	{"proc", "/proc", "proc", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "", 0o555},
	{"sysfs", "/sys", "sysfs", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "", 0o555},
	{"devtmpfs", "/dev", "devtmpfs", unix.MS_NOSUID, "mode=0755", 0o755},
}

// lateMounts come after the switch. /tmp is not among them: it stays on the disk, where a large file has room and the
// image's own content shows.
var lateMounts = []mount{
	{"devpts", "/dev/pts", "devpts", unix.MS_NOSUID | unix.MS_NOEXEC, "gid=5,mode=0620,ptmxmode=0666", 0o755},
	{"tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=1777", 0o1777},
	{"tmpfs", "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=0755", 0o755},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC, "", 0o755},
}

func mountAll(mounts []mount) error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, m.mode); err != nil {
			return err
		}
		if err := unix.Mount(m.source, m.target, m.fsType, m.flags, m.data); err != nil && !errors.Is(err, unix.EBUSY) {
			return fmt.Errorf("mount %s at %s: %w", m.fsType, m.target, err)
		}
	}
	return nil
}

// mountRoot waits for the root device and mounts it at newRoot.
func mountRoot(config Config) error {
	deadline := time.Now().Add(rootDeviceTimeout)
	for !exists(config.Root) {
		if time.Now().After(deadline) {
			return fmt.Errorf("root device %s did not appear within %s; is its driver among the modules?", config.Root, rootDeviceTimeout)
		}
		time.Sleep(2 * time.Millisecond)
	}
	if err := os.MkdirAll(newRoot, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(config.Root, newRoot, config.RootFSType, 0, ""); err != nil {
		return fmt.Errorf("mount root %s (%s): %w", config.Root, config.RootFSType, err)
	}
	return nil
}

// switchRoot makes newRoot the root directory and frees what the initramfs held. This binary keeps running: its
// pages are mapped, and it needs no file.
func switchRoot() error {
	for _, m := range earlyMounts {
		target := filepath.Join(newRoot, m.target)
		if err := os.MkdirAll(target, m.mode); err != nil {
			return err
		}
		if err := unix.Mount(m.target, target, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", m.target, err)
		}
	}
	_ = os.RemoveAll("/lib/modules") // memory, not correctness
	_ = os.Remove("/init")
	if err := os.Chdir(newRoot); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return os.Chdir("/")
}

// finishRoot completes what programs expect of a running system and an image need not have.
func finishRoot() {
	if err := os.MkdirAll("/tmp", 0o1777); err != nil {
		log.Printf("/tmp: %v", err)
	} else if err := os.Chmod("/tmp", os.ModeSticky|0o777); err != nil {
		log.Printf("/tmp: %v", err)
	}
	links := map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0",
		"/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	}
	for link, target := range links {
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, os.ErrExist) {
			log.Printf("%s: %v", link, err)
		}
	}
	for _, dir := range []string{"/run/lock", "/run/user"} {
		_ = os.MkdirAll(dir, 0o755) // convenience of some programs
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
