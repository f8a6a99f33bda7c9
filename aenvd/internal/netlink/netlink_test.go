package netlink

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// inNamespace runs work in a network namespace of its own. Its thread is not used again.
func inNamespace(t *testing.T, work func() error) {
	t.Helper()
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			result <- err
			return
		}
		result <- work()
	}()
	err := <-result
	if errors.Is(err, unix.EPERM) {
		t.Skipf("skipped: a network namespace needs root: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestConfigureAnInterface(t *testing.T) {
	var addresses []net.Addr
	var flags net.Flags
	var routes string
	inNamespace(t, func() error {
		connection, err := Open()
		if err != nil {
			return err
		}
		defer connection.Close()
		lo, err := net.InterfaceByName("lo")
		if err != nil {
			return err
		}
		for range 2 { // twice: what is there already is fine
			if err := configure(connection, lo.Index); err != nil {
				return err
			}
		}
		if lo, err = net.InterfaceByName("lo"); err != nil {
			return err
		}
		flags = lo.Flags
		if addresses, err = lo.Addrs(); err != nil {
			return err
		}
		content, err := os.ReadFile("/proc/thread-self/net/route")
		routes = string(content)
		return err
	})
	if flags&net.FlagUp == 0 {
		t.Errorf("flags: %v", flags)
	}
	var texts []string
	for _, address := range addresses {
		texts = append(texts, address.String())
	}
	if got := strings.Join(texts, " "); !strings.Contains(got, "169.254.0.21/30") {
		t.Errorf("addresses: %s", got)
	}
	if !strings.Contains(routes, "lo\t00000000\t1600FEA9\t0003") {
		t.Errorf("routes: %s", routes)
	}
}

func configure(connection *Conn, index int) error {
	return errors.Join(
		connection.LinkUp(index),
		connection.AddAddress(index, netip.MustParsePrefix("169.254.0.21/30")),
		connection.AddDefaultRoute(index, netip.MustParseAddr("169.254.0.22")),
	)
}

func TestErrorsOfTheKernel(t *testing.T) {
	inNamespace(t, func() error {
		connection, err := Open()
		if err != nil {
			return err
		}
		defer connection.Close()
		if err := connection.LinkUp(4711); !errors.Is(err, unix.ENODEV) {
			t.Errorf("an interface that is not there: %v", err)
		}
		return nil
	})
}

func TestParseAck(t *testing.T) {
	ack := func(kind uint16, sequence uint32, code int32) []byte {
		reply := binary.NativeEndian.AppendUint32(nil, 36)
		reply = binary.NativeEndian.AppendUint16(reply, kind)
		reply = binary.NativeEndian.AppendUint16(reply, 0)
		reply = binary.NativeEndian.AppendUint32(reply, sequence)
		reply = binary.NativeEndian.AppendUint32(reply, 0)
		return binary.NativeEndian.AppendUint32(reply, uint32(code))
	}
	if err := parseAck(ack(unix.NLMSG_ERROR, 7, 0), 7); err != nil {
		t.Error(err)
	}
	if err := parseAck(ack(unix.NLMSG_ERROR, 7, -int32(unix.EEXIST)), 7); !errors.Is(err, unix.EEXIST) {
		t.Errorf("got %v", err)
	}
	for _, bad := range [][]byte{nil, ack(unix.NLMSG_DONE, 7, 0), ack(unix.NLMSG_ERROR, 8, 0), ack(unix.NLMSG_ERROR, 7, 0)[:18]} {
		if parseAck(bad, 7) == nil {
			t.Errorf("%x was accepted", bad)
		}
	}
}

func FuzzParseAck(f *testing.F) {
	f.Add([]byte{36, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, reply []byte) {
		if parseAck(reply, 1) == nil && len(reply) < unix.SizeofNlMsghdr+4 {
			t.Errorf("%x was accepted", reply)
		}
	})
}
