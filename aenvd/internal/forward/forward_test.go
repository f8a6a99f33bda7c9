package forward

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"reflect"
	"testing"
	"time"
)

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestParseListeners(t *testing.T) {
	table := tableHead +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n" +
		"   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1\n" +
		"   2: 0100007F:1F91 0100007F:D431 01 00000000:00000000 00:00000000 00000000     0        0 1 1\n" +
		"   3: 00000000000000000000000001000000:0BB8 00000000000000000000000000000000:0000 0A 0 0 0\n" +
		"   4: 0000000000000000FFFF00000100007F:0BB9 00000000000000000000000000000000:0000 0A 0 0 0\n" +
		"   5: 01:0016 0:0 0A\n"
	want := []string{"127.0.0.1:8080", "0.0.0.0:22", "[::1]:3000", "127.0.0.1:3001"}
	var got []string
	for _, address := range parseListeners(table) {
		got = append(got, address.String())
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestWanted(t *testing.T) {
	all := []netip.AddrPort{
		netip.MustParseAddrPort("[::1]:3000"), netip.MustParseAddrPort("127.0.0.1:3000"),
		netip.MustParseAddrPort("127.0.0.1:80"), netip.MustParseAddrPort("[::]:80"),
		netip.MustParseAddrPort("169.254.0.21:81"), netip.MustParseAddrPort("0.0.0.0:82"),
		netip.MustParseAddrPort("[::1]:83"),
	}
	got := wanted(all, netip.MustParseAddr("169.254.0.21"))
	want := map[uint16]netip.AddrPort{3000: netip.MustParseAddrPort("127.0.0.1:3000"), 83: netip.MustParseAddrPort("[::1]:83")}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// echoServer listens on 127.0.0.1; 127.0.0.2 plays the network card.
func echoServer(t *testing.T) uint16 {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				content, _ := io.ReadAll(conn) // until the client is done writing
				_, _ = conn.Write(append([]byte("echo "), content...))
			}()
		}
	}()
	return uint16(listener.Addr().(*net.TCPAddr).Port)
}

func dial(t *testing.T, port uint16) *net.TCPConn {
	t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.2:%d", port))
		if err == nil {
			t.Cleanup(func() { conn.Close() })
			return conn.(*net.TCPConn)
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func startForwarder(t *testing.T) *Forwarder {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := New(netip.MustParseAddr("127.0.0.2"))
	done := make(chan struct{})
	go func() { f.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return f
}

func TestForwarding(t *testing.T) {
	port := echoServer(t)
	startForwarder(t)
	conn := dial(t, port)
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "echo hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestDropResets(t *testing.T) {
	port := echoServer(t)
	f := startForwarder(t)
	conn := dial(t, port)
	if _, err := conn.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, f.Drop)
	if err := conn.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || err == io.EOF {
		t.Errorf("got %v, expected a reset", err)
	}
}

func FuzzParseListeners(f *testing.F) {
	f.Add(tableHead + "0: 0100007F:1F90 0 0A\n")
	f.Fuzz(func(t *testing.T, table string) {
		for _, address := range parseListeners(table) {
			if !address.IsValid() {
				t.Errorf("an invalid address from %q", table)
			}
		}
	})
}
