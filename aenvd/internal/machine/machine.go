// Package machine changes what belongs to the guest as a whole: clock, entropy, names, trusted certificates.
package machine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// A clock this far behind is set; less is what the request itself took.
	maxBehind = 50 * time.Millisecond
	// One that is ahead may be: the request was on its way. Setting it back disturbs programs more than it helps.
	maxAhead = 500 * time.Millisecond
)

var (
	hostnamePattern  = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]{0,62}[a-zA-Z0-9])?(\.[a-zA-Z0-9]([a-zA-Z0-9-]{0,62}[a-zA-Z0-9])?)*$`)
	machineIDPattern = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// Root is where the files are changed; tests set it to a directory of their own.
type Root string

// ClockIsOff tells whether a clock showing `now` should be set to `want`.
func ClockIsOff(now, want time.Time) bool {
	ahead := now.Sub(want)
	return ahead < -maxBehind || ahead > maxAhead
}

// SetClock sets the wall clock when it is off.
func SetClock(want time.Time) error {
	if !ClockIsOff(time.Now(), want) {
		return nil
	}
	spec := unix.NsecToTimespec(want.UnixNano())
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &spec); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

// AddEntropy credits the kernel's random pool with seed and makes it reseed at once: guests restored from one snapshot
// would otherwise draw the same numbers.
func AddEntropy(seed []byte) error {
	if len(seed) == 0 {
		return nil
	}
	file, err := os.OpenFile("/dev/urandom", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	// struct rand_pool_info of random(4): bits of entropy, bytes, the bytes.
	info := make([]uint32, 2+(len(seed)+3)/4)
	info[0], info[1] = uint32(len(seed)*8), uint32(len(seed))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&info[2])), len(seed)), seed)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&info[0])))
	runtime.KeepAlive(info)
	if errno != 0 {
		return fmt.Errorf("add entropy: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, file.Fd(), unix.RNDRESEEDCRNG, 0); errno != 0 {
		return fmt.Errorf("reseed: %w", errno)
	}
	return nil
}

// CheckHostname accepts what hostname(7) does.
func CheckHostname(name string) error {
	if len(name) > 64 || !hostnamePattern.MatchString(name) {
		return fmt.Errorf("hostname '%s': up to 64 letters, digits, '-' and '.' are allowed", name)
	}
	return nil
}

// SetHostname names the machine, in the kernel and in /etc/hostname and /etc/hosts.
func (r Root) SetHostname(name string) error {
	if err := CheckHostname(name); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(name)); err != nil {
		return fmt.Errorf("set the hostname: %w", err)
	}
	return r.WriteHostFiles(name)
}

// WriteHostFiles writes the two files without touching the kernel.
func (r Root) WriteHostFiles(name string) error {
	if err := r.replace("/etc/hostname", name+"\n", 0o644); err != nil {
		return err
	}
	old, err := os.ReadFile(r.path("/etc/hosts"))
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	return r.replace("/etc/hosts", hostsFor(string(old), name), 0o644)
}

const hostsMark = "# the sandbox itself"

// hostsFor gives the content of /etc/hosts with `name` as ours: the lines that we wrote before go, others stay.
func hostsFor(old, name string) string {
	var kept []string
	hasLocalhost := false
	for _, line := range strings.Split(strings.TrimRight(old, "\n"), "\n") {
		if strings.HasSuffix(line, hostsMark) || (line == "" && len(kept) == 0) {
			continue
		}
		fields := strings.Fields(line)
		if len(fields) > 1 && fields[0] == "127.0.0.1" {
			hasLocalhost = true
		}
		kept = append(kept, line)
	}
	if !hasLocalhost {
		kept = append(kept, "127.0.0.1 localhost", "::1 localhost ip6-localhost ip6-loopback")
	}
	kept = append(kept, fmt.Sprintf("127.0.1.1 %s %s", name, hostsMark))
	return strings.Join(kept, "\n") + "\n"
}

// SetMachineID gives /etc/machine-id, and D-Bus's copy where it is a file of its own, a new value (32 hex digits).
func (r Root) SetMachineID(id string) error {
	if !machineIDPattern.MatchString(id) {
		return fmt.Errorf("machineId '%s': 32 lower-case hex digits are needed", id)
	}
	if err := r.replace("/etc/machine-id", id+"\n", 0o444); err != nil {
		return err
	}
	const dbus = "/var/lib/dbus/machine-id"
	if info, err := os.Lstat(r.path(dbus)); err == nil && info.Mode().IsRegular() {
		return r.replace(dbus, id+"\n", 0o444)
	}
	return nil
}

const (
	kernelBootID = "/proc/sys/kernel/random/boot_id"
	bootIDFile   = "/run/aenv/boot_id"
)

// NewBootID gives the machine another boot id. Guests restored from one snapshot share the kernel's, which cannot be
// changed, so a file is mounted over it.
func NewBootID() error {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return err
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	text := fmt.Sprintf("%x-%x-%x-%x-%x\n", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	if err := os.MkdirAll(filepath.Dir(bootIDFile), 0o755); err != nil {
		return err
	}
	// In place: it is this file that is mounted.
	if err := os.WriteFile(bootIDFile, []byte(text), 0o444); err != nil {
		return err
	}
	ours, err := os.Stat(bootIDFile)
	if err != nil {
		return err
	}
	if shown, err := os.Stat(kernelBootID); err == nil && os.SameFile(ours, shown) {
		return nil
	}
	if err := unix.Mount(bootIDFile, kernelBootID, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("change the boot id: %w", err)
	}
	return nil
}

// WriteIdentity leaves the ids where programs written for E2B look for them.
func (r Root) WriteIdentity(sandboxID, templateID string) error {
	values := map[string]string{"E2B_SANDBOX": "true", "E2B_SANDBOX_ID": sandboxID, "E2B_TEMPLATE_ID": templateID}
	var errs []error
	for name, value := range values {
		if value != "" {
			errs = append(errs, r.replace("/run/e2b/."+name, value, 0o644))
		}
	}
	return errors.Join(errs...)
}

func (r Root) path(absolute string) string { return filepath.Join(string(r), absolute) }

// replace writes a whole file at once: a crash, or a reader, never meets half of it. A symbolic link is replaced too.
func (r Root) replace(absolute, content string, mode os.FileMode) error {
	path := r.path(absolute)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	temporary := path + ".aenvd"
	if err := os.WriteFile(temporary, []byte(content), mode); err != nil {
		return err
	}
	if err := os.Chmod(temporary, mode); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
